//! An editor who would take a deployment back, or down, without an approval: by a pin, by its end, by both.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, says, wait};

use super::world::{ON_A, Tenant, user};

const NAME: &str = "backward";
const SPEC: &str = "approval: {mode: Manual, scope: Plan}, confirmDeletion: Always, \
                    members: [{role: Approver, subjects: [{kind: User, name: olga}]}]";

/// Applies the deployment with this word as its tenant.
async fn deploy(tenant: &Tenant, version: &str, word: &str, spec: &str) -> Result<()> {
    let note = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: note}}\ndata: {{say: {word}}}\n");
    let charts = [chart("note", version, &[("templates/note.yaml", &note)])?];
    chart_map(tenant.bed, NAME, "charts", &charts).await?;
    tenant.apply(&deployment(NAME, "shop", &charts, &format!("{ON_A}\n{spec}"))).await
}

/// Waits for what waits for an approval, and answers its digest.
async fn waits(tenant: &Tenant, revision: i64) -> Result<String> {
    let check = |status: &DeploymentIntentGroupStatus| {
        let waits = status.condition(types::APPROVED).is_some_and(|found| found.status == "False");
        let pending = status.pending.as_ref().filter(|pending| waits && pending.revision == revision);
        pending.map(|pending| pending.digest.clone())
    };
    wait(tenant.bed, NAME, "shop", |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status")?;
        let is_seen = status.observed_generation == dig.metadata.generation;
        check(status).filter(|_| is_seen).ok_or_else(|| format!("{status:?}"))
    })
    .await
}

async fn approve(olga: &Kubectl, digest: &str) -> Result<()> {
    let approval = format!(
        "{{apiVersion: emco.io/v1alpha1, kind: DeploymentApproval, metadata: {{generateName: back-, namespace: {NAME}}}, \
         spec: {{deploymentIntentGroupRef: {{name: shop}}, digest: \"{digest}\", approvedBy: olga}}}}"
    );
    olga.run_with(&["create", "-f", "-"], &approval).await.map(drop).context("olga may approve")
}

/// The word on the cluster; empty where the object is not there.
async fn word(tenant: &Tenant) -> Result<String> {
    let get = ["get", "cm", "note", "-n", NAME, "--ignore-not-found", "-o", "jsonpath={.data.say}"];
    tenant.bed.edge("a").kubectl().run(&get).await
}

async fn patch(tenant: &Tenant, spec: &str) -> Result<()> {
    let patch = format!(r#"{{"spec":{spec}}}"#);
    tenant.kubectl.run(&["patch", "dig", "shop", "-n", NAME, "--type=merge", "-p", &patch]).await.map(drop)
}

/// Waits until this revision runs.
async fn runs(tenant: &Tenant, revision: i64) -> Result<()> {
    wait(tenant.bed, NAME, "shop", |dig: &DeploymentIntentGroup| {
        let runs = dig.status.as_ref().and_then(|status| status.revision);
        if runs == Some(revision) { Ok(()) } else { Err(format!("{:?}", dig.status)) }
    })
    .await
}

#[tokio::test]
async fn who_may_edit_takes_nothing_back_or_down_without_an_approval() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], SPEC).await.unwrap();
    let bed = tenant.bed;
    bed.explain(Box::pin(async {
        tenant.ready("default").await?;
        let olga = user(bed, "olga").await?;
        let may = ["auth", "can-i", "create", "deploymentapprovals.emco.io", "-n", NAME];
        olga.until(&may, "", true).await?;
        for (version, text, revision) in [("1.0.0", "one", 1), ("2.0.0", "two", 2)] {
            deploy(&tenant, version, text, "").await?;
            approve(&olga, &waits(&tenant, revision).await?).await?;
            deployed(bed, NAME, "shop", revision).await?;
        }
        // A pin waits for an approval of its own, though its revision was approved once.
        patch(&tenant, r#"{"revision":1}"#).await?;
        let pin = waits(&tenant, 1).await?;
        ensure!(word(&tenant).await? == "two", "the pin is carried out without an approval");
        approve(&olga, &pin).await?;
        runs(&tenant, 1).await?;
        let there = ["wait", "cm/note", "-n", NAME, "--for=jsonpath={.data.say}=one", "--timeout=30s"];
        bed.edge("a").kubectl().run(&there).await?;
        // What ran before comes back without one, beside an edit that waits.
        deploy(&tenant, "3.0.0", "three", "revision: 1").await?;
        patch(&tenant, r#"{"revision":null}"#).await?;
        waits(&tenant, 3).await?;
        runs(&tenant, 2).await?;
        let back = ["wait", "cm/note", "-n", NAME, "--for=jsonpath={.data.say}=two", "--timeout=30s"];
        bed.edge("a").kubectl().run(&back).await?;
        ends(&tenant).await
    }))
    .await;
}

/// Neither the end of it, nor a deletion of what is to end, removes anything.
async fn ends(tenant: &Tenant) -> Result<()> {
    patch(tenant, r#"{"desiredState":"Terminated"}"#).await?;
    waits(tenant, 0).await?;
    ensure!(word(tenant).await? == "two", "it ended without an approval");
    tenant.kubectl.run(&["delete", "dig", "shop", "-n", NAME, "--wait=false"]).await?;
    let ready = types::READY;
    says::<DeploymentIntentGroup, _>(tenant.bed, NAME, "shop", ready, "RemovalNeedsConfirmation").await?;
    ensure!(word(tenant).await? == "two", "it was deleted without a confirmation");
    Ok(())
}
