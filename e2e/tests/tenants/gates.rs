//! Plans and waves that a person or a controller's account approves, each in its own name.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_e2e::bed::Bed;
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, wait};

use super::world::{ON_A, Tenant, refused, user};

const NAME: &str = "gated-shop";
/// The account of a controller that measures, by its name on the hub.
const METER: &str = "system:serviceaccount:default:meter";
const SPEC: &str = "approval: {mode: Manual}, members: [{role: Approver, subjects: [{kind: User, name: wanda}, \
                    {kind: ServiceAccount, name: meter, namespace: default}]}]";
const WAVE: &str =
    "rollout: {waves: [{name: all, clusters: [{provider: acme, cluster: a}], approval: Before}]}";
const CREATE: &[&str] = &["create", "-f", "-"];

/// An approval in a user's name: of a plan, or of a wave with `wave: NAME`.
fn approval(by: &str, digest: &str, wave: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: DeploymentApproval, metadata: {{generateName: gate-, namespace: {NAME}}}, \
         spec: {{deploymentIntentGroupRef: {{name: shop}}, digest: \"{digest}\", approvedBy: \"{by}\", {wave}}}}}"
    )
}

/// Applies the deployment with this word as its tenant.
async fn deploy(tenant: &Tenant, version: &str, word: &str, spec: &str) -> Result<()> {
    let note = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: note}}\ndata: {{say: {word}}}\n");
    let charts = [chart("note", version, &[("templates/note.yaml", &note)])?];
    chart_map(tenant.bed, NAME, "charts", &charts).await?;
    tenant.apply(&deployment(NAME, "shop", &charts, spec)).await
}

async fn digest(bed: &Bed, check: impl Fn(&DeploymentIntentGroupStatus) -> Option<String>) -> Result<String> {
    wait(bed, NAME, "shop", |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status")?;
        let is_seen = status.observed_generation == dig.metadata.generation;
        check(status).filter(|_| is_seen).ok_or_else(|| format!("{status:?}"))
    })
    .await
}

/// Waits until the plan of this revision waits for an approval, and answers its digest.
async fn plan(bed: &Bed, revision: i64) -> Result<String> {
    digest(bed, |status| {
        let waits = status.condition(types::APPROVED).is_some_and(|found| found.reason == "AwaitingApproval");
        let pending = status.pending.as_ref().filter(|pending| waits && pending.revision == revision);
        pending.map(|pending| pending.digest.clone())
    })
    .await
}

/// Waits until the wave of this revision waits for an approval, and answers its digest.
async fn gate(bed: &Bed, revision: i64) -> Result<String> {
    digest(bed, |status| {
        let rollout = status.rollout.as_ref().filter(|rollout| rollout.waits_for.ends_with("--wave all"));
        let rollout = rollout.filter(|_| status.revision == Some(revision));
        rollout.map(|rollout| rollout.inputs_digest.clone())
    })
    .await
}

async fn says(bed: &Bed) -> Result<String> {
    let get = ["get", "cm", "note", "-n", NAME, "--ignore-not-found", "-o", "jsonpath={.data.say}"];
    bed.edge("a").kubectl().run(&get).await
}

/// kubectl as a service account, which is made.
async fn meter(bed: &Bed) -> Result<Kubectl> {
    let hub = bed.hub().kubectl();
    hub.run(&["create", "serviceaccount", "meter", "-n", "default"]).await?;
    let token = hub.run(&["create", "token", "meter", "-n", "default"]).await?;
    let file = bed.dir().join("meter.kubeconfig");
    tokio::fs::write(&file, bed.hub().kubeconfig_with_token(token.trim())).await?;
    Ok(hub.with_kubeconfig(&file))
}

#[tokio::test]
async fn a_wave_begins_when_a_person_or_a_controllers_account_approves_it() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], SPEC).await.unwrap();
    let bed = tenant.bed;
    bed.explain(Box::pin(async {
        tenant.ready("default").await?;
        let (wanda, meter) = (user(bed, "wanda").await?, meter(bed).await?);
        for approver in [&wanda, &meter] {
            let may = ["auth", "can-i", "create", "deploymentapprovals.emco.io", "-n", NAME];
            approver.until(&may, "", true).await?;
        }
        deploy(&tenant, "1.0.0", "one", ON_A).await?;
        let first = plan(bed, 1).await?;
        ensure!(says(bed).await?.is_empty(), "it was deployed without an approval");
        wanda.run_with(CREATE, &approval("wanda", &first, "")).await.context("wanda may approve")?;
        deployed(bed, NAME, "shop", 1).await?;

        // The plan is a person's to approve, and the wave the account's.
        deploy(&tenant, "2.0.0", "two", &format!("{ON_A}\n{WAVE}")).await?;
        let second = plan(bed, 2).await?;
        wanda.run_with(CREATE, &approval("wanda", &second, "")).await?;
        let wave = gate(bed, 2).await?;
        tenant.refused(CREATE, &approval(NAME, &wave, "wave: all"), "forbidden").await?;
        let own = format!("your own user name: {METER}");
        refused(&meter, CREATE, &approval("wanda", &wave, "wave: all"), &own).await?;
        ensure!(says(bed).await? == "one", "the wave began without an approval");
        meter.run_with(CREATE, &approval(METER, &wave, "wave: all")).await.context("meter may approve")?;
        deployed(bed, NAME, "shop", 2).await?;
        ensure!(says(bed).await? == "two");

        // And the other way round. What opened the wave before opens none of another revision.
        deploy(&tenant, "3.0.0", "three", &format!("{ON_A}\n{WAVE}")).await?;
        let third = plan(bed, 3).await?;
        meter.run_with(CREATE, &approval(METER, &third, "")).await?;
        let wave = gate(bed, 3).await?;
        refused(&wanda, CREATE, &approval(METER, &wave, "wave: all"), "your own user name: wanda").await?;
        ensure!(says(bed).await? == "two", "the wave began without an approval");
        wanda.run_with(CREATE, &approval("wanda", &wave, "wave: all")).await?;
        let dig = deployed(bed, NAME, "shop", 3).await?;
        ensure!(says(bed).await? == "three");
        let approved = dig.status.and_then(|status| status.approval).context("nobody approved it")?;
        ensure!(approved.approved_by.as_deref() == Some(METER), "{approved:?}");
        Ok(())
    }))
    .await;
}
