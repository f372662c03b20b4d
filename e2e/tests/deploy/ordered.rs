//! In: all objects of a tenant and its provider, applied and deleted in a random order. Out: it runs, and then nothing is left.

use std::collections::BTreeMap;

use anyhow::ensure;
use emco_crds::{Cluster, ClusterProvider, Project};
use emco_e2e::bed::{BedSpec, PlaneSpec};
use emco_e2e::operator::{SOON, SharedOperator, chart_map, cluster, deployed, deployment, ours, secret};
use emco_e2e::random::Random;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::note;

/// In the gate `everything_in_any_order_ends_with_the_same_edges` does so in memory.
mod soak {
    #[tokio::test]
    async fn everything_applied_in_any_order_runs_and_deleted_in_any_order_goes() {
        Box::pin(super::ordered(&[3, 17, 40])).await;
    }
}

/// An edge that nobody registered.
static STAGE: SharedOperator =
    SharedOperator::new(|| BedSpec::bare_hub().with(PlaneSpec::light("c", &[])), &[]);

/// Applies everything and deletes it, in an order of each seed.
async fn ordered(seeds: &[u64]) {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        for seed in seeds {
            eprintln!("seed {seed}");
            let mut random = Random(seed * 7919);
            let (provider, tenant) = (format!("p{seed}"), format!("t{seed}"));
            let hub = bed.hub().kubectl();
            // The API server itself wants namespaces first.
            hub.apply(&format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: {provider}, labels: {{emco.io/provider: {provider}}}}}}}\n---\n\
                 {{apiVersion: v1, kind: Namespace, metadata: {{name: {tenant}, labels: {{emco.io/project: {tenant}}}}}}}\n"
            ))
            .await?;
            let note = note("note")?;
            let spec = format!(
                "compositeProfileRef: {{name: shop}}\nplacement: {{allOf: [{{provider: {provider}, selector: {{matchLabels: {{tier: edge}}}}}}]}}"
            );
            let group = deployment(&tenant, "shop", std::slice::from_ref(&note), &spec);
            let mut parts: Vec<String> = group.split("---\n").map(str::to_owned).collect();
            parts.push(cluster(&provider, "c"));
            parts.push(format!(
                "{{apiVersion: emco.io/v1alpha1, kind: Project, metadata: {{name: {tenant}}}, spec: {{logicalCloud: {{level: Admin}}}}}}"
            ));
            parts.push(format!(
                "{{apiVersion: emco.io/v1alpha1, kind: ClusterProvider, metadata: {{name: {provider}}}, \
                 spec: {{grants: [{{name: one, projects: [{tenant}], maxLevel: Admin}}]}}}}"
            ));
            parts.push(format!(
                "{{apiVersion: emco.io/v1alpha1, kind: CompositeProfile, metadata: {{name: shop, namespace: {tenant}}}, \
                 spec: {{apps: [{{app: note, values: {{say: seed}}}}]}}}}"
            ));
            parts.push("charts".to_owned());
            parts.push("kubeconfig".to_owned());
            random.shuffle(&mut parts);
            for part in &parts {
                match part.as_str() {
                    "charts" => chart_map(bed, &tenant, "charts", std::slice::from_ref(&note)).await?,
                    "kubeconfig" => secret(bed, &provider, "c", &bed.edge("c").kubeconfig()?).await?,
                    yaml => drop(hub.apply(yaml).await?),
                }
            }
            deployed(bed, &tenant, "shop", 1).await?;
            let map = bed.edge("c").api::<ConfigMap>(&tenant).await?.get("shop-note").await?;
            assert_eq!(map.data, Some(BTreeMap::from([("say".to_owned(), "seed".to_owned())])));

            let (p, t) = (provider.as_str(), tenant.as_str());
            let mut ends = [
                ["clusterproviders.emco.io", p, ""],
                ["clusters.emco.io", "c", p],
                ["projects.emco.io", t, ""],
                ["compositeapps.emco.io", "shop", t],
                ["compositeprofiles.emco.io", "shop", t],
                ["deploymentintentgroups.emco.io", "shop", t],
            ];
            random.shuffle(&mut ends);
            for [kind, name, namespace] in ends {
                let mut args = vec!["delete", kind, name, "--wait=false", "--ignore-not-found"];
                if !namespace.is_empty() {
                    args.extend(["-n", namespace]);
                }
                hub.run(&args).await?;
            }
            let client = bed.hub().client().await?;
            wait_until_gone(Api::<Project>::all(client.clone()), t, SOON).await?;
            wait_until_gone(Api::<Cluster>::namespaced(client.clone(), p), "c", SOON).await?;
            wait_until_gone(Api::<ClusterProvider>::all(client), p, SOON).await?;
            let left = ours(bed, "c", "configmaps,namespaces", None).await?;
            ensure!(left.is_empty(), "left on the edge: {left:?}");
        }
        Ok(())
    })
    .await;
}
