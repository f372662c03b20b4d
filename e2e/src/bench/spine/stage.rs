//! Sets the stage of several measurements: a hub, eight edges and an application of many objects.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator, is};
use emco_e2e::supervisor::Process;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::arrivals::Arrivals;
use super::mix;

/// The edges: API servers alone, since nothing has to run.
pub const EDGES: [&str; 8] = ["edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8"];
/// Project, its namespace, and the prefix of deployments.
pub const NAME: &str = "many";
const PROVIDER: &str = "fleet";

/// A bed with the operator at work, the application known and nothing deployed.
pub async fn start(program: &Path, objects: usize, audit: Audit) -> Result<(Bed, Operator)> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).own_etcd().audit(audit);
    let edge = |name: &str| PlaneSpec::new(name, Parts::ApiServer).audit(audit);
    let spec = EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name)));
    let bed = Bed::start(spec).await?;
    let operator = Operator::start(&bed, program).await?;
    operator::unless_ended(operator.process(), prepare(&bed, objects)).await?;
    Ok((bed, operator))
}

async fn prepare(bed: &Bed, objects: usize) -> Result<()> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    operator::project(bed, NAME).await?;
    let chart = mix::chart(objects)?;
    operator::chart_map(bed, NAME, "charts", &[chart]).await?;
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": NAME, "namespace": NAME},
        "spec": {"apps": [{"name": mix::APP, "chart": {"configMapRef": {"name": "charts", "key": "mix-1.0.0.tgz"}}}]},
    });
    bed.hub().kubectl().apply(&app.to_string()).await?;
    operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await?;
    operator::wait::<emco_crds::CompositeApp, _>(bed, NAME, NAME, |app| {
        is(app.status.as_ref(), types::READY, "True")
    })
    .await
}

/// A deployment of the application, whose objects are called after it, with `extra` more than the application has.
pub fn deployment(name: &str, extra: usize) -> Result<DeploymentIntentGroup> {
    let spec: Value = json!({
        "compositeAppRef": {"name": NAME}, "release": name, "placement": {"allOf": [{"selector": {}}]},
        "overrideValues": [{"app": mix::APP, "values": {"extra": extra}}],
    });
    let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": name, "namespace": NAME}, "spec": spec});
    serde_json::from_value(object).context("a deployment of our own")
}

/// Waits until everything of a deployment is applied everywhere. Nothing gets ready: nothing runs.
pub async fn applied(bed: &Bed, name: &str) -> Result<()> {
    operator::wait::<DeploymentIntentGroup, _>(bed, NAME, name, |dig| {
        let status = dig.status.as_ref().ok_or("it has no status yet")?;
        if status.observed_generation != dig.metadata.generation {
            return Err("the last change was not looked at yet".to_owned());
        }
        is(Some(status), types::DEPLOYED, "True")
    })
    .await
}

/// Deploys the application. Answers when all of its `objects` were seen on every edge.
pub async fn deploy(
    digs: &Api<DeploymentIntentGroup>,
    name: &str,
    objects: usize,
    seen: &mut Arrivals,
) -> Result<()> {
    digs.create(&PostParams::default(), &deployment(name, 0)?).await?;
    let prefix = format!("{name}-");
    seen.until(objects * EDGES.len(), |object| object.starts_with(&prefix)).await.map(drop)
}

/// Adds a manifest. Answers when the hub had accepted that.
pub async fn change(digs: &Api<DeploymentIntentGroup>, name: &str, extra: usize) -> Result<Instant> {
    let values = json!({"spec": {"overrideValues": [{"app": mix::APP, "values": {"extra": extra}}]}});
    digs.patch(name, &PatchParams::default(), &Patch::Merge(values)).await?;
    Ok(Instant::now())
}

/// Processor time used so far by the programs of the bed and an operator that just began, if any.
pub async fn cpu(bed: &Bed, operator: Option<&Process>) -> Result<[(&'static str, Duration); 4]> {
    let hub = bed.hub().usage().await?;
    let of = |program: &str| hub.get(program).map(|usage| usage.cpu).unwrap_or_default();
    let mut edges = Duration::ZERO;
    for edge in EDGES {
        edges += bed.edge(edge).usage().await?.values().map(|usage| usage.cpu).sum::<Duration>();
    }
    Ok([
        ("the hub's API server", of("kube-apiserver")),
        ("its etcd", of("etcd")),
        (
            "the operator",
            operator.map(Process::usage).transpose()?.map(|usage| usage.cpu).unwrap_or_default(),
        ),
        ("all edges", edges),
    ])
}
