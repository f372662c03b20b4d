//! Tests updates on real control planes: `spec.sync` (pruning first, fields that cannot be changed, objects of others), apps that
//! depend on others, hooks, another CompositeApp, revisions of the past, what is suspended halfway, what others change between
//! updates, unions, and nulls.
//! Changes of charts are compared with Helm's doing on the same edge.

mod adopt;
mod anew;
mod beside;
mod depends;
mod drift;
mod gates;
mod halt;
mod hooks;
mod kept;
mod migrate;
mod nulls;
mod past;
mod prune;
mod unions;

use std::time::Duration;

use anyhow::Result;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::audit::AuditMark;
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec};
use emco_e2e::operator::{self, SharedOperator, chart_map, deployment, is, project, wait};
use emco_e2e::package::Package;
use kube::api::{Patch, PatchParams};
use serde_json::Value;
use tokio::sync::RwLock;

static STAGE: SharedOperator = SharedOperator::new(|| edges(BedSpec::bare_hub()), &["a", "b"]);

fn edges(hub: BedSpec) -> BedSpec {
    hub.with(PlaneSpec::edge("a").audit(Audit::Writes)).with(PlaneSpec::edge("b").proxied()).with_helm()
}

/// Tests that need the edge `b` read; the one that cuts it off writes.
static B_ANSWERS: RwLock<()> = RwLock::const_new(());

/// The time in which nothing may happen: a write that others' changes bring comes within a second, and what was met with a pause is
/// looked at again after 30 s. Silence has no event to wait for.
const SILENCE: Duration = Duration::from_secs(4);

/// A project whose namespace is on the edge, with the charts.
async fn start(name: &str, chart: &Package) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    project(bed, name).await?;
    chart_map(bed, name, "charts", std::slice::from_ref(chart)).await?;
    wait(bed, name, "default", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
        .await?;
    Ok(bed)
}

/// Applies the deployment `shop` with values of its app and `spec.sync`.
async fn deploy(bed: &Bed, namespace: &str, chart: &Package, values: &str, sync: &str) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{provider: acme, cluster: a}}]}}\noverrideValues: [{{app: web, values: {values}}}]\nsync: {sync}"
    );
    let chart = std::slice::from_ref(chart);
    bed.hub().kubectl().apply(&deployment(namespace, "shop", chart, &spec)).await.map(drop)
}

/// Changes the spec of the deployment `shop`, in YAML on one line.
async fn change(bed: &Bed, namespace: &str, spec: &str) -> Result<()> {
    let patch: Value = serde_yaml::from_str(&format!("spec: {spec}"))?;
    let digs = bed.hub().api::<DeploymentIntentGroup>(namespace).await?;
    let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
    digs.patch("shop", &params.validation_strict(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until the deployment is ready as the revision that it is pinned to.
async fn pinned(bed: &Bed, namespace: &str) -> Result<()> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let status =
            dig.status.as_ref().filter(|status| status.observed_generation == dig.metadata.generation);
        let ready = status.and_then(|status| status.condition(types::READY));
        let is_pinned = ready.is_some_and(|ready| ready.status == "True" && ready.reason == "Pinned");
        if is_pinned { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await
}

/// Waits until the deployment fails on the edge for a reason, and answers the message.
async fn fails(bed: &Bed, namespace: &str, reason: &str) -> Result<String> {
    fails_of(bed, namespace, "shop", reason).await
}

/// The same of another deployment.
async fn fails_of(bed: &Bed, namespace: &str, name: &str, reason: &str) -> Result<String> {
    wait(bed, namespace, name, |dig: &DeploymentIntentGroup| message(dig, reason)).await
}

/// Waits until what is said for a reason passes a check.
async fn says(bed: &Bed, namespace: &str, reason: &str, check: impl Fn(&str) -> Result<()>) -> Result<()> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let message = message(dig, reason)?;
        check(&message).map_err(|error| format!("{error:#}"))
    })
    .await
}

fn message(dig: &DeploymentIntentGroup, reason: &str) -> Result<String, String> {
    let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
    let found = failing.iter().find(|one| one.reason == reason).map(|one| one.message.clone());
    found.ok_or_else(|| format!("{failing:?}"))
}

/// Waits until nothing fails.
async fn well(bed: &Bed, namespace: &str) -> Result<()> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let settled = dig.status.as_ref().is_some_and(|status| {
            status.observed_generation == dig.metadata.generation
                && !status.failing.iter().any(|one| one.reason == "ImmutableField")
        });
        if settled { Ok(()) } else { Err(format!("{:?}", dig.status.as_ref().map(|status| &status.failing))) }
    })
    .await
}

/// What the operator wrote in a namespace of the edge, as `VERB RESOURCE NAME`.
fn writes(bed: &Bed, namespace: &str, since: AuditMark) -> Result<Vec<String>> {
    let ours = |event: &emco_e2e::audit::AuditEvent| {
        let written = event.is_write() && event.code < 300 && !event.is_dry();
        event.user == "emco" && written && event.namespace == namespace
    };
    let events = bed.edge("a").audit_since(since)?;
    Ok(events.into_iter().filter(ours).map(|e| format!("{} {} {}", e.verb, e.resource, e.name)).collect())
}

/// A field of an object on the edge.
async fn field(bed: &Bed, namespace: &str, object: &str, path: &str) -> Result<String> {
    operator::field(bed, "a", namespace, object, path).await
}

async fn uid(bed: &Bed, namespace: &str, object: &str) -> Result<String> {
    field(bed, namespace, object, "{.metadata.uid}").await
}

fn has(message: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        anyhow::ensure!(message.contains(part), "{part:?} is not in: {message}");
    }
    Ok(())
}
