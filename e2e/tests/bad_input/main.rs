//! In: what people get wrong. Out: a condition that names the object, what is wrong and what to do, and the cure at work.

mod certificates;
mod charts;
mod clusters;
mod deployments;
mod leaks;
mod limits;
mod repository;

use anyhow::Result;
use emco_crds::conditions::types;
use emco_crds::{Cluster, CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, BedSpec, PlaneSpec};
use emco_e2e::operator::{SharedOperator, chart, chart_map, project, says};
use emco_e2e::package::Package;

/// No Pod runs on these edges: what is deployed here is ready when it is there, a workload when it wants no Pod. `d` is registered by one test after the other, and may
/// be cut off by the one whose turn it is.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name| PlaneSpec::light(name, &["deployment-controller", "replicaset-controller"]);
        BedSpec::bare_hub().with(edge("a")).with(edge("b")).with(PlaneSpec::light("d", &[]).proxied())
    },
    &["a", "b"],
);

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Chart.Version | quote }}}\n";

fn of_one_file(name: &str, template: &str) -> Result<Package> {
    chart(name, "1.0.0", &[("templates/thing.yaml", template)])
}

/// A project with a ConfigMap of charts.
async fn start(name: &str, charts: &[Package]) -> &'static Bed {
    let started = async {
        let (bed, _) = STAGE.get().await?;
        project(bed, name).await?;
        chart_map(bed, name, "charts", charts).await?;
        Ok::<_, anyhow::Error>(bed)
    };
    started.await.unwrap()
}

/// A provider whose clusters are granted to one project.
async fn provider(bed: &Bed, name: &str, project: &str) -> Result<()> {
    bed.hub()
        .kubectl()
        .apply(&format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/provider: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {{name: {name}}}
spec: {{grants: [{{name: one, projects: [{project}], maxLevel: Admin}}]}}
"
        ))
        .await
        .map(drop)
}

/// The message of Ready of a deployment that was refused for `reason`.
async fn dig_says(bed: &Bed, namespace: &str, type_: &str, reason: &str) -> Result<String> {
    says::<DeploymentIntentGroup, _>(bed, namespace, "shop", type_, reason).await
}

async fn app_says(bed: &Bed, namespace: &str, reason: &str) -> Result<String> {
    says::<CompositeApp, _>(bed, namespace, "shop", types::READY, reason).await
}

async fn cluster_says(bed: &Bed, provider: &str, name: &str, reason: &str) -> Result<String> {
    says::<Cluster, _>(bed, provider, name, types::READY, reason).await
}

fn has(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}
