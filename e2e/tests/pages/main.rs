//! In: the pages of the book that have commands. Out: their commands, each run in a shell as it is printed, in
//! the order of the page, on real control planes. A command that is added to a page and not run here fails the test.

mod actions;
mod approving;
mod backup;
mod cli;
mod clusters;
mod first;
mod held;
mod install;
mod kind;
mod members;
mod more;
mod notes;
mod page;
mod traffic;
mod values;

use anyhow::Result;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{Operator, as_account, install_charts, program, project, register};

/// One kubeconfig as people have it: a context for each plane, by plane and name, the hub's the current one.
fn kubeconfig(bed: &Bed, contexts: &[(&str, &str)]) -> Result<String> {
    let mut merged = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub", "clusters": [], "users": [], "contexts": [],
    });
    for (plane, name) in contexts {
        let one: serde_json::Value = serde_yaml::from_str(&bed.edge(plane).kubeconfig()?)?;
        for (list, key) in [("clusters", "cluster"), ("users", "user")] {
            let entry = serde_json::json!({"name": name, key: one[list][0][key]});
            merged[list].as_array_mut().into_iter().for_each(|all| all.push(entry.clone()));
        }
        let context = serde_json::json!({"name": name, "context": {"cluster": name, "user": name}});
        merged["contexts"].as_array_mut().into_iter().for_each(|all| all.push(context.clone()));
    }
    Ok(serde_yaml::to_string(&merged)?)
}

/// The pages of installing, registering and deploying are followed from the first to the last, and those on kind in each run.
mod soak {
    use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};

    use super::{actions, backup, cli, clusters, first, install, kubeconfig, more, page, traffic, values};

    /// `other` is a hub without anything; on `hub`, Pods become ready.
    fn spec() -> BedSpec {
        BedSpec::default()
            .with(PlaneSpec::edge("hub").own_etcd())
            .with(PlaneSpec::new("other", Parts::ApiServer))
            .with(PlaneSpec::new("berlin", Parts::Controllers).audit(Audit::Writes))
            .with_helm()
    }

    #[tokio::test]
    async fn whoever_follows_the_pages_installs_registers_a_cluster_deploys_and_restores_a_hub() {
        let bed = Bed::start(spec()).await.unwrap();
        bed.explain(Box::pin(async {
            let contexts = ["hub", "other", "berlin"].map(|name| (name, name));
            tokio::fs::write(page::folder(&bed)?.join("all.kubeconfig"), kubeconfig(&bed, &contexts)?)
                .await?;
            let operator = install::follow(&bed).await?;
            clusters::follow(&bed).await?;
            first::follow(&bed).await?;
            more::observability(&bed).await?;
            cli::follow(&bed).await?;
            values::follow(&bed).await?;
            actions::follow(&bed).await?;
            traffic::follow(&bed).await?;
            backup::follow(&bed, operator).await
        }))
        .await;
    }
}

/// What is installed and registered on the pages before is made by other means. All pages share one hub: a control plane costs as much as
/// the commands of several pages.
#[tokio::test]
async fn pages_on_a_hub_with_a_cluster_can_be_followed() {
    let light = |name: &str| PlaneSpec::new(name, Parts::ApiServer);
    let spec = BedSpec::bare_hub().with(PlaneSpec::new("berlin", Parts::Controllers));
    let bed = Bed::start(spec.with(light("oslo")).with(light("berlin-1")).with_helm()).await.unwrap();
    bed.explain(Box::pin(async {
        let contexts = ["hub", "berlin", "berlin-1"].map(|name| (name, name));
        tokio::fs::write(page::folder(&bed)?.join("all.kubeconfig"), kubeconfig(&bed, &contexts)?).await?;
        let installed = install_charts(&bed).await?;
        let _operator = Operator::start_as(&bed, &program()?, as_account(&bed).await?, installed).await?;
        register(&bed, "acme", &["berlin"]).await?;
        project(&bed, "shop").await?;
        cli::follow(&bed).await?;
        values::follow(&bed).await?;
        actions::follow(&bed).await?;
        traffic::follow(&bed).await?;
        backup::commands(&bed).await?;
        more::observability(&bed).await?;
        register(&bed, "acme", &["oslo"]).await?;
        decisions_and_tenants(&bed).await
    }))
    .await;
}

/// Pages on who decides, what waits, and what others have. Each leaves things as they were; the last one registers another cluster.
async fn decisions_and_tenants(bed: &Bed) -> Result<()> {
    approving::approvals(bed).await?;
    approving::rollouts(bed).await?;
    approving::plans(bed).await?;
    held::suspend(bed).await?;
    held::dependencies(bed).await?;
    held::health_rules(bed).await?;
    members::projects(bed).await?;
    held::moving_in(bed).await?;
    members::helm_compatibility(bed).await?;
    members::git_clusters(bed).await
}
