//! Tests on real control planes what is held back: removals beyond the budget of a project, deletions that nobody confirmed, and
//! clusters whose wave has not begun.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, project, wait};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{EDGES, EVERYWHERE, STAGE};

pub const ON_ONE: &str = "allOf: [{provider: acme, cluster: e0}]";
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: one}\n";

/// Applies the deployment `shop` of a project.
pub async fn deploy(bed: &Bed, tenant: &str, placement: &str) -> Result<()> {
    deploy_chart(bed, tenant, ("1.0.0", NOTE), placement, "").await
}

pub async fn deploy_chart(
    bed: &Bed,
    tenant: &str,
    (version, note): (&str, &str),
    placement: &str,
    more: &str,
) -> Result<()> {
    let charts = [chart("note", version, &[("templates/note.yaml", note)])?];
    chart_map(bed, tenant, "charts", &charts).await?;
    let spec = format!("placement: {{{placement}}}\n{more}");
    bed.hub().kubectl().apply(&deployment(tenant, "shop", &charts, &spec)).await.map(drop)
}

/// Waits until a condition has this reason.
pub async fn says(bed: &Bed, tenant: &str, type_: &str, reason: &str) -> Result<DeploymentIntentGroup> {
    wait(bed, tenant, "shop", |dig: &DeploymentIntentGroup| {
        let condition = dig.status.as_ref().and_then(|status| status.condition(type_));
        match condition {
            Some(found) if found.reason == reason => Ok(dig.clone()),
            found => Err(format!("{found:?}")),
        }
    })
    .await
}

/// What the note on an edge says.
pub async fn note(bed: &Bed, edge: &str, tenant: &str) -> Result<String> {
    let note = bed.edge(edge).api::<ConfigMap>(tenant).await?.get("note").await?;
    Ok(note.data.and_then(|mut data| data.remove("say")).unwrap_or_default())
}

async fn gone(bed: &Bed, edge: &str, tenant: &str) -> Result<()> {
    wait_until_gone(bed.edge(edge).api::<ConfigMap>(tenant).await?, "note", SOON).await
}

#[tokio::test]
async fn a_plan_beyond_the_removal_budget_waits_for_its_own_approval() {
    let _turn = serial().await;
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "budget").await?;
        deploy(bed, "budget", EVERYWHERE).await?;
        deployed(bed, "budget", "shop", 1).await?;
        deploy(bed, "budget", ON_ONE).await?;
        let held = says(bed, "budget", types::APPROVED, "RemovalNeedsConfirmation").await?;
        let status = held.status.context("it has no status")?;
        let message = status.condition(types::APPROVED).map(|found| found.message.clone());
        let message = message.unwrap_or_default();
        ensure!(message.starts_with("app note leaves 3 of the 4 clusters"), "{message}");
        for edge in EDGES {
            note(bed, edge, "budget").await?;
        }
        let digest = status.pending.context("nothing is pending")?.digest;
        let kubectl = bed.hub().kubectl();
        let who = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        let approval = format!(
            "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {{name: leave, namespace: budget}}
spec: {{deploymentIntentGroupRef: {{name: shop}}, digest: \"{digest}\", approvedBy: \"{who}\"}}
"
        );
        kubectl.apply(&approval).await?;
        deployed(bed, "budget", "shop", 2).await?;
        for edge in ["e1", "e2", "e3"] {
            gone(bed, edge, "budget").await?;
        }
        note(bed, "e0", "budget").await.map(drop)
    }))
    .await;
}

#[tokio::test]
async fn a_deletion_removes_nothing_until_its_command_confirms_it() {
    let _turn = serial().await;
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "confirms").await?;
        deploy(bed, "confirms", ON_ONE).await?;
        deployed(bed, "confirms", "shop", 1).await?;
        let kubectl = bed.hub().kubectl();
        let always = r#"{"spec":{"confirmDeletion":"Always"}}"#;
        kubectl.run(&["patch", "eproj", "confirms", "--type=merge", "-p", always]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/confirms", seen, "--timeout=30s"]).await?;
        kubectl.run(&["delete", "dig", "shop", "-n", "confirms", "--wait=false"]).await?;
        let held = says(bed, "confirms", types::READY, "RemovalNeedsConfirmation").await?;
        let status = held.status.context("it has no status")?;
        let message = status.condition(types::READY).map(|found| found.message.clone()).unwrap_or_default();
        note(bed, "e0", "confirms").await?;
        let command = message.split_once("before: kubectl ").context(message.clone())?.1;
        kubectl.run_with(&command.split(' ').collect::<Vec<_>>(), "").await?;
        let end = ["wait", "dig/shop", "-n", "confirms", "--for=delete", "--timeout=30s"];
        kubectl.run(&end).await?;
        gone(bed, "e0", "confirms").await
    }))
    .await;
}

#[tokio::test]
async fn an_update_goes_to_one_cluster_and_on_when_its_gate_is_approved() {
    let _turn = serial().await;
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "waves").await?;
        deploy(bed, "waves", EVERYWHERE).await?;
        deployed(bed, "waves", "shop", 1).await?;
        let canary = "{name: canary, clusters: [{provider: acme, cluster: e1}], approval: After}";
        let rollout = format!("rollout: {{waves: [{canary}]}}");
        // Before the chart changes: the app's change alone would be a revision without waves, where it is seen first.
        deploy_chart(bed, "waves", ("1.0.0", NOTE), EVERYWHERE, &rollout).await?;
        deployed(bed, "waves", "shop", 2).await?;
        deploy_chart(bed, "waves", ("1.1.0", &NOTE.replace("one", "two")), EVERYWHERE, &rollout).await?;
        let held = wait(bed, "waves", "shop", |dig: &DeploymentIntentGroup| {
            let rollout = dig.status.as_ref().and_then(|status| status.rollout.as_ref());
            let waits = rollout.filter(|rollout| rollout.waits_for.ends_with("--wave canary"));
            waits.map(|_| dig.clone()).ok_or_else(|| format!("{rollout:?}"))
        })
        .await?;
        for edge in EDGES {
            let wanted = if edge == "e1" { "two" } else { "one" };
            ensure!(note(bed, edge, "waves").await? == wanted, "{edge} before the gate is approved");
        }
        let digest = held.status.and_then(|status| status.digest).context("it has no digest")?;
        let kubectl = bed.hub().kubectl();
        let who = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        let gate = format!(
            "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {{name: canary, namespace: waves}}
spec: {{deploymentIntentGroupRef: {{name: shop}}, digest: \"{digest}\", wave: canary, approvedBy: \"{who}\"}}
"
        );
        kubectl.apply(&gate).await?;
        deployed(bed, "waves", "shop", 3).await?;
        for edge in EDGES {
            ensure!(note(bed, edge, "waves").await? == "two", "{edge} after it");
        }
        Ok(())
    })
    .await;
}
