//! In: a tenant in one folder, every object in a file of its own, the files in random order. Out: applied and deleted again and
//! again until it is accepted, it ends Ready, and then ends.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{Operator, SOON, chart_map, deployed, ours, program, root, unless_ended};
use emco_e2e::package::Package;
use emco_e2e::random::Random;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde::Deserialize as _;
use serde_json::{Value, json};

const CLUSTERS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: acme, labels: {emco.io/provider: acme}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: acme}
spec: {grants: [{name: shop, projects: [shop], maxLevel: Admin}]}
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: a, namespace: acme, labels: {tier: edge}}
spec: {access: {kubeconfigSecretRef: {name: a-kubeconfig}}}
";

/// The example of the page, the clusters for it, and what a secret store and a build would bring.
fn tenant(bed: &Bed) -> Result<Vec<Value>> {
    let page = std::fs::read_to_string(root().join("docs/gitops.md"))?;
    let (_, rest) = page.split_once("```yaml\n").context("the page has no example")?;
    let (example, _) = rest.split_once("```").context("the example has no end")?;
    let mut objects = Vec::new();
    for text in [example, CLUSTERS] {
        for document in serde_yaml::Deserializer::from_str(text) {
            objects.push(Value::deserialize(document)?);
        }
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a-kubeconfig", "namespace": "acme"},
        "stringData": {"kubeconfig": bed.edge("a").kubeconfig()?},
    }));
    ensure!(objects.len() == 9, "there are {} objects", objects.len());
    Ok(objects)
}

/// Writes each object to a file; what a folder is read in is the order of names.
fn write(folder: &Path, objects: &[Value]) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("more"))?;
    for (at, object) in objects.iter().enumerate() {
        let below = if at % 2 == 0 { folder.to_owned() } else { folder.join("more") };
        std::fs::write(below.join(format!("{at:02}.json")), object.to_string())?;
    }
    Ok(())
}

/// Applies the folder until kubectl is content, and answers how often that was.
async fn applied(bed: &Bed, folder: &Path) -> Result<usize> {
    let folder = folder.display().to_string();
    let mut said = String::new();
    for time in 1..=10 {
        let output =
            bed.hub().kubectl().output(&["apply", "--server-side", "--recursive", "-f", &folder], "").await?;
        if output.is_ok() {
            return Ok(time);
        }
        said = output.stderr;
    }
    anyhow::bail!("ten times were not enough: {said}")
}

#[tokio::test]
async fn a_whole_tenant_in_one_folder_is_applied_and_deleted_in_any_order() {
    orders(1).await;
}

mod soak {
    #[tokio::test]
    async fn a_whole_tenant_in_one_folder_is_applied_and_deleted_in_three_orders() {
        super::orders(3).await;
    }
}

/// Applies and deletes the tenant so often, each time in other orders.
async fn orders(times: usize) {
    let bed = Bed::start(BedSpec::hub().edges(&["a"])).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(&bed, &program()?).await?;
        let chart = Package::of_folder(&root().join("config/samples/charts/storefront"))?;
        let folder = bed.dir().join("tenant");
        let mut random = Random(0x7e4a_11c5);
        let mut objects = tenant(&bed)?;
        let mut most = 0;
        for _ in 0..times {
            random.shuffle(&mut objects);
            write(&folder, &objects)?;
            most = most.max(applied(&bed, &folder).await?);
            // The chart comes last, long after what refers to it.
            chart_map(&bed, "shop", "shop-charts", std::slice::from_ref(&chart)).await?;
            unless_ended(operator.process(), deployed(&bed, "shop", "shop", 1)).await?;
            ensure!(!ours(&bed, "a", "deployments", None).await?.is_empty(), "nothing is on the edge");
            bed.edge("a").kubectl().run(&["get", "resourcequota", "emco-all", "-n", "shop"]).await?;

            random.shuffle(&mut objects);
            write(&folder, &objects)?;
            let path = folder.display().to_string();
            bed.hub().kubectl().run(&["delete", "--recursive", "--wait=false", "-f", &path]).await?;
            for namespace in ["shop", "acme"] {
                let api = Api::<Namespace>::all(bed.hub().client().await?);
                unless_ended(operator.process(), wait_until_gone(api, namespace, SOON)).await?;
            }
            assert_eq!(
                ours(&bed, "a", "deployments,services,configmaps,secrets", None).await?,
                Vec::<String>::new()
            );
        }
        ensure!(most > 1, "some order has to be refused once: the random one is none");
        Ok(())
    }))
    .await;
}
