//! In: `kubectl delete namespace` of a provider that deployments use. Out: it takes no new work and loses nothing, and goes with
//! its last user.

use std::time::Duration;

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, ClusterProvider, DeploymentIntentGroup};
use emco_e2e::bed::serial;
use emco_e2e::operator::{SOON, deployment, is, ours, refused, register, wait};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::{EDGES, KINDS, STAGE, cleaned, placed, populate, strangers, untouched, web};

#[tokio::test]
async fn a_providers_namespace_that_is_deleted_takes_no_new_work_and_stays_until_its_last_user_is_gone() {
    let _turn = serial().await;
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        register(bed, "north", &EDGES).await?;
        populate(bed, "north", "users").await?;
        let mut before = Vec::new();
        for edge in EDGES {
            strangers(bed, edge, "users").await?;
            before.push((
                edge,
                ours(bed, edge, KINDS, None).await?,
                untouched(bed, edge, "users").await?,
                bed.edge(edge).audit_mark()?,
            ));
        }
        let kubectl = bed.hub().kubectl();
        kubectl.run(&["delete", "namespace", "north", "--wait=false"]).await?;
        for edge in EDGES {
            wait(bed, "north", edge, |cluster: &Cluster| is(cluster.status.as_ref(), types::IN_USE, "True"))
                .await?;
        }
        // New work is not placed there, and says so.
        kubectl.apply(&deployment("users", "late", &[web()?], &placed("north", "late"))).await?;
        let message = wait(bed, "users", "late", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::READY, "NoClusterMatches")
        })
        .await?;
        ensure!(message.contains("north/a"), "{message}");
        for (edge, names, strange, mark) in &before {
            ensure!(ours(bed, edge, KINDS, None).await? == *names, "{edge}");
            ensure!(untouched(bed, edge, "users").await? == *strange, "{edge}");
            let ended: Vec<_> = bed
                .edge(edge)
                .audit_since(*mark)?
                .into_iter()
                .filter(|e| e.user == "emco" && e.verb == "delete")
                .collect();
            ensure!(ended.is_empty(), "{edge}: {ended:?}");
        }
        // Its users go, and with the last of them the namespace.
        kubectl.run(&["delete", "dig", "--all", "-n", "users", "--timeout=120s"]).await?;
        let namespaces: Api<Namespace> = Api::all(bed.hub().client().await?);
        wait_until_gone(namespaces.clone(), "north", Duration::from_mins(3)).await?;
        for (edge, _, strange, _) in &before {
            cleaned_but_for_the_cloud(bed, edge, "users").await?;
            ensure!(untouched(bed, edge, "users").await? == *strange, "{edge}");
        }
        kubectl.run(&["delete", "cprov", "north", "--timeout=120s"]).await?;
        wait_until_gone(Api::<ClusterProvider>::all(bed.hub().client().await?), "north", SOON).await?;
        kubectl.run(&["delete", "eproj", "users", "--timeout=120s"]).await?;
        kubectl
            .run(&["delete", "namespace", "users", "north", "--ignore-not-found", "--timeout=120s"])
            .await?;
        for edge in EDGES {
            cleaned(bed, edge).await?;
        }
        Ok(())
    })
    .await;
}

/// What deployments had is gone. A logical cloud leaves its clusters, too, while they can be reached.
async fn cleaned_but_for_the_cloud(bed: &emco_e2e::bed::Bed, edge: &str, tenant: &str) -> Result<()> {
    let left = ours(bed, edge, "configmaps,secrets,serviceaccounts", Some(tenant)).await?;
    ensure!(left.is_empty(), "{edge}: {left:?}");
    Ok(())
}
