//! Waiting for a wave of a rollout, and approving and rejecting it from the command line.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, says};

use super::looks::{EVERYWHERE, deploy};
use super::rig::{STAGE, run};

const WAVES: &str =
    "rollout: {waves: [{name: canary, clusters: [{provider: acme, cluster: a}], approval: After}]}";

async fn note(bed: &Bed, edge: &str) -> Result<String> {
    let get = ["get", "cm", "till-note", "-n", "wavy", "-o", "jsonpath={.data.key}"];
    bed.edge(edge).kubectl().run(&get).await
}

#[tokio::test]
async fn a_wave_is_awaited_rejected_and_approved_by_commands() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "wavy", EVERYWHERE).await?;
        let approve = ["approve", "wavy/till", "--wave", "canary"];
        run(bed, &approve).await?.is(1, &["it has no spec.rollout, and goes everywhere at once"]);
        let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
        let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{key: two}}}}]\n{WAVES}");
        bed.hub().kubectl().apply(&deployment("wavy", "till", &charts, &spec)).await?;
        let wait = ["wait", "wavy/till", "--for=wave=canary", "--timeout=2m", "-o", "json"];
        let said = run(bed, &wait).await?;
        said.is(0, &[]);
        let answer = said.json();
        ensure!(
            answer["for"] == "wave=canary" && answer["met"] == true && answer["revision"] == 2,
            "{answer:#}"
        );
        run(bed, &["wait", "wavy/till", "--for=applied", "--timeout=0s"]).await?.is(3, &["is not applied"]);
        ensure!(note(bed, "a").await? == "two", "its wave is done");
        ensure!(note(bed, "b").await? == "one", "its wave began before the gate was opened");

        for (words, why) in [
            (["approve", "wavy/till", "--wave", "canaries"], "it has no wave canaries; there are canary"),
            (["approve", "wavy/till", "--wave", "the rest"], "wave the rest waits for no approval"),
        ] {
            run(bed, &words).await?.is(1, &[why]);
        }
        let rejected = run(bed, &["reject", "wavy/till", "--wave", "canary", "-o", "json"]).await?;
        rejected.is(0, &[]);
        let rejected = rejected.json();
        ensure!(rejected["decision"] == "Rejected" && rejected["wave"] == "canary", "{rejected:#}");
        let name = rejected["approval"].as_str().context("it does not name what it made")?;
        let ready = types::READY;
        let why = says::<DeploymentIntentGroup, _>(bed, "wavy", "till", ready, "RolloutPaused").await?;
        ensure!(why.contains(name), "{why}");
        let never = "wavy/till is not applied, and will not be before something is changed: ";
        run(bed, &["wait", "wavy/till", "--for=applied"]).await?.is(1, &[never, name]);
        let held = format!("it is not carried out while DeploymentApproval {name} rejects it");
        run(bed, &approve).await?.is(0, &["wavy/till: wave canary of digest ", " is approved by ", &held]);
        ensure!(note(bed, "b").await? == "one", "an approval counts beside a rejection");

        bed.hub().kubectl().run(&["delete", "deploymentapprovals.emco.io", name, "-n", "wavy"]).await?;
        deployed(bed, "wavy", "till", 2).await?;
        ensure!(note(bed, "b").await? == "two");
        run(bed, &approve).await?.is(0, &["(it was so before)"]);
        run(bed, &["wait", "wavy/till", "--for=wave=canary", "--timeout=0s"])
            .await?
            .is(0, &["wavy/till is done with wave canary"]);
        Ok(())
    }))
    .await;
}
