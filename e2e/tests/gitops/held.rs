//! Deployments that are held on purpose: by an approval, a suspension, a pin, or an app that waits for another one.

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{Conditioned as _, DeploymentApproval, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, is, wait};
use emco_e2e::package::Package;

use super::stages::Stage;

/// What Flux and Argo CD say of them.
pub const STAGES: [Stage; 10] = [
    ("DeploymentIntentGroup", "guarded", "first", "InProgress", "Progressing"),
    // Revision 1 runs and is ready; what is in Git is not there yet.
    ("DeploymentIntentGroup", "guarded", "change", "InProgress", "Progressing"),
    // Somebody said no: only an edit helps.
    ("DeploymentIntentGroup", "guarded", "rejected", "Failed", "Degraded"),
    ("DeploymentIntentGroup", "guarded", "rejected-change", "Failed", "Degraded"),
    ("DeploymentApproval", "guarded", "change", "Current", "Healthy"),
    ("DeploymentApproval", "guarded", "rejected", "Current", "Healthy"),
    ("DeploymentIntentGroup", "shop", "suspended", "Current", "Suspended"),
    ("DeploymentIntentGroup", "shop", "suspended-change", "InProgress", "Suspended"),
    ("DeploymentIntentGroup", "shop", "pinned", "Current", "Healthy"),
    ("DeploymentIntentGroup", "shop", "depends", "InProgress", "Progressing"),
];

const GUARDED: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: guarded, labels: {emco.io/project: guarded}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {name: guarded}
spec: {logicalCloud: {level: Admin}, approval: {mode: Manual, scope: Plan}}
";

/// Another value.
const CHANGE: &str = "spec: {overrideValues: [{app: web, values: {say: two}}]}";

/// Nothing runs it: no node has this label.
const DB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {disk: none}
      containers: [{name: db, image: example.com/db}]
";

/// Makes the objects of [`STAGES`]; `web` is a chart with the value `say`.
pub async fn make(bed: &Bed, web: &Package) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    kubectl.apply(GUARDED).await?;
    let charts = std::slice::from_ref(web);
    chart_map(bed, "guarded", "charts", charts).await?;
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    for name in ["first", "change", "rejected", "rejected-change"] {
        kubectl.apply(&deployment("guarded", name, charts, everywhere)).await?;
    }
    for name in ["suspended", "suspended-change", "pinned"] {
        kubectl.apply(&deployment("shop", name, charts, everywhere)).await?;
    }
    let db = chart("db", "1.0.0", &[("templates/db.yaml", DB)])?;
    chart_map(bed, "shop", "two-charts", &[db.clone(), web.clone()]).await?;
    let depends = deployment("shop", "depends", &[db, web.clone()], everywhere)
        .replace("{name: charts,", "{name: two-charts,")
        .replace("{name: web,", "{name: web, dependsOn: [{app: db, state: Ready}],");
    kubectl.apply(&depends).await?;

    decided(bed, "rejected", "rejected", "Rejected").await?;
    for name in ["change", "rejected-change"] {
        decided(bed, name, name, "Approved").await?;
        deployed(bed, "guarded", name, 1).await?;
        patch(bed, "guarded", name, CHANGE).await?;
    }
    waiting(bed, "change", 2).await?;
    waiting(bed, "rejected-change", 2).await?;
    decided(bed, "rejected-change", "no-change", "Rejected").await?;
    for name in ["rejected", "rejected-change"] {
        wait(bed, "guarded", name, |dig: &DeploymentIntentGroup| {
            is(dig.status.as_ref(), types::STALLED, "True")
        })
        .await?;
    }

    deployed(bed, "shop", "suspended", 1).await?;
    patch(bed, "shop", "suspended", "spec: {suspend: true}").await?;
    deployed(bed, "shop", "suspended-change", 1).await?;
    patch(
        bed,
        "shop",
        "suspended-change",
        "spec: {suspend: true, overrideValues: [{app: web, values: {say: two}}]}",
    )
    .await?;
    for name in ["suspended", "suspended-change"] {
        says(bed, "shop", name, types::READY, "Suspended").await?;
    }
    deployed(bed, "shop", "pinned", 1).await?;
    patch(bed, "shop", "pinned", CHANGE).await?;
    deployed(bed, "shop", "pinned", 2).await?;
    patch(bed, "shop", "pinned", "spec: {revision: 1}").await?;
    wait(bed, "shop", "pinned", |dig: &DeploymentIntentGroup| {
        is(dig.status.as_ref(), types::PINNED, "True")?;
        is(dig.status.as_ref(), types::READY, "True")
    })
    .await?;
    says(bed, "shop", "depends", types::READY, "WaitingForDependency").await
}

async fn patch(bed: &Bed, namespace: &str, name: &str, change: &str) -> Result<()> {
    bed.hub()
        .kubectl()
        .run(&["patch", "dig", name, "-n", namespace, "--type=merge", "-p", change])
        .await
        .map(drop)
}

/// The digest of what waits for a revision.
async fn waiting(bed: &Bed, name: &str, revision: i64) -> Result<String> {
    wait(bed, "guarded", name, |dig: &DeploymentIntentGroup| {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        let found = pending.filter(|pending| pending.revision == revision);
        found.map(|pending| pending.digest.clone()).ok_or_else(|| format!("{pending:?} waits"))
    })
    .await
}

/// Says yes or no to what waits.
async fn decided(bed: &Bed, deployment: &str, name: &str, decision: &str) -> Result<()> {
    let digest = wait(bed, "guarded", deployment, |dig: &DeploymentIntentGroup| {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        pending.map(|pending| pending.digest.clone()).ok_or_else(|| "nothing waits".to_owned())
    })
    .await?;
    let approval = serde_json::json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentApproval", "metadata": {"name": name, "namespace": "guarded"},
        "spec": {
            "deploymentIntentGroupRef": {"name": deployment}, "digest": digest, "decision": decision, "approvedBy": "tester",
        },
    });
    bed.hub().kubectl().apply(&approval.to_string()).await?;
    wait(bed, "guarded", name, |approval: &DeploymentApproval| {
        is(approval.status.as_ref(), types::READY, "True")
    })
    .await
    .with_context(|| format!("the decision on {deployment}"))
}

/// Waits until the newest generation has this reason.
async fn says(bed: &Bed, namespace: &str, name: &str, type_: &str, reason: &str) -> Result<()> {
    wait(bed, namespace, name, |dig: &DeploymentIntentGroup| {
        let condition = dig.status.as_ref().and_then(|status| status.condition(type_));
        let current = |generation: Option<i64>| generation == dig.metadata.generation;
        let said = condition.is_some_and(|said| said.reason == reason && current(said.observed_generation));
        said.then_some(()).ok_or_else(|| format!("{condition:?}"))
    })
    .await
}
