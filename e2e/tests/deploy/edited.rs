//! An intent that changes: what was rendered is edited anew, a rollback brings the edit before back, and an approval covers it.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, deployment, wait};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use super::{AT_WORK, EVERYWHERE, start, web};

const COUNT: &str = "emco_render_duration_seconds_count ";

fn intent(namespace: &str, replicas: u32) -> String {
    let action = json!({
        "name": "size", "app": "web", "type": "JSONPatch",
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"},
        "jsonPatch": [{"op": "test", "path": "/spec/replicas", "value": 3}, {"op": "replace", "path": "/spec/replicas", "value": replicas}],
    });
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "GenericActionIntent",
        "metadata": {"name": "size", "namespace": namespace}, "spec": {"actions": [action]},
    })
    .to_string()
}

/// The shop with three replicas, of which the intent makes one, everywhere.
async fn begin(namespace: &str) -> Result<&'static Bed> {
    let web = web("1.0.0")?;
    let bed = start(namespace, std::slice::from_ref(&web)).await?;
    let kubectl = bed.hub().kubectl();
    kubectl.apply(&intent(namespace, 1)).await?;
    let spec = format!(
        "{EVERYWHERE}\nintents: [{{kind: GenericActionIntent, name: size}}]\noverrideValues: [{{app: web, values: {{replicas: 3}}}}]"
    );
    kubectl.apply(&deployment(namespace, "shop", &[web], &spec)).await?;
    deployed(bed, namespace, "shop", 1).await?;
    replicas(bed, namespace, 1).await?;
    Ok(bed)
}

async fn replicas(bed: &Bed, namespace: &str, wanted: i32) -> Result<()> {
    for edge in ["a", "b"] {
        let found = bed.edge(edge).api::<Deployment>(namespace).await?.get("shop-web").await?;
        let found = found.spec.and_then(|spec| spec.replicas);
        ensure!(found == Some(wanted), "{edge} has {found:?} replicas, not {wanted}");
    }
    Ok(())
}

/// Renderings of the operator so far.
async fn rendered(bed: &Bed) -> Result<u64> {
    let page = bed.metrics().await?;
    let count =
        page.lines().find_map(|line| line.strip_prefix(COUNT)).context("no renderings are counted")?;
    count.trim().parse().with_context(|| format!("{COUNT}{count}"))
}

#[tokio::test]
async fn a_changed_edit_and_its_rollback_render_no_chart() {
    // Nobody else's charts are to be counted.
    let _alone = AT_WORK.write().await;
    let bed = begin("resized").await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        let before = rendered(bed).await?;
        kubectl.apply(&intent("resized", 2)).await?;
        deployed(bed, "resized", "shop", 2).await?;
        replicas(bed, "resized", 2).await?;
        let pin = r#"{"spec": {"revision": 1}}"#;
        kubectl.run(&["patch", "dig", "shop", "-n", "resized", "--type=merge", "-p", pin]).await?;
        wait(bed, "resized", "shop", |dig: &DeploymentIntentGroup| {
            let status =
                dig.status.as_ref().filter(|status| status.observed_generation == dig.metadata.generation);
            let ready = status.and_then(|status| status.condition(types::READY));
            let is_pinned = ready.is_some_and(|ready| ready.status == "True" && ready.reason == "Pinned");
            if is_pinned { Ok(()) } else { Err(format!("{ready:?}")) }
        })
        .await?;
        replicas(bed, "resized", 1).await?;
        ensure!(rendered(bed).await? == before, "a chart was rendered for an edit");
        super::delete_dig(bed, "resized", "shop").await
    }))
    .await;
}

#[tokio::test]
async fn an_edit_of_an_intent_waits_for_its_approval() {
    let _working = AT_WORK.read().await;
    let bed = begin("decided").await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        let manual = r#"{"spec": {"approval": {"mode": "Manual"}}}"#;
        kubectl.run(&["patch", "projects.emco.io", "decided", "--type=merge", "-p", manual]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/decided", seen, "--timeout=30s"]).await?;
        kubectl.apply(&intent("decided", 2)).await?;
        let digest = wait(bed, "decided", "shop", |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().ok_or("it has no status")?;
            let approved = status.condition(types::APPROVED);
            let waits = approved.is_some_and(|approved| approved.reason == "AwaitingApproval");
            let digest = status.pending.as_ref().map(|pending| pending.digest.clone());
            digest.filter(|_| waits).ok_or_else(|| format!("{status:?}"))
        })
        .await?;
        replicas(bed, "decided", 1).await?;
        let who = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        let approval = json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentApproval", "metadata": {"name": "yes", "namespace": "decided"},
            "spec": {"deploymentIntentGroupRef": {"name": "shop"}, "digest": digest, "approvedBy": who.trim()},
        });
        kubectl.apply(&approval.to_string()).await?;
        deployed(bed, "decided", "shop", 2).await?;
        replicas(bed, "decided", 2).await?;
        // Another edit is not covered by it.
        kubectl.apply(&intent("decided", 5)).await?;
        wait(bed, "decided", "shop", |dig: &DeploymentIntentGroup| {
            let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
            let other = pending.is_some_and(|pending| pending.digest != digest);
            if other { Ok(()) } else { Err(format!("{pending:?}")) }
        })
        .await?;
        replicas(bed, "decided", 2).await?;
        super::delete_dig(bed, "decided", "shop").await
    }))
    .await;
}
