//! Approving and rejecting from the command line, and that the real hub holds the plan back meanwhile.

use anyhow::Result;
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::PendingRequires;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, wait};

use super::looks::{EVERYWHERE, deploy};
use super::rig::{STAGE, run};

/// Waits until the condition Approved has this reason, and answers the digest that is pending.
pub async fn approved(bed: &Bed, tenant: &str, wanted: &str) -> Result<Option<String>> {
    wait(bed, tenant, "till", |dig: &DeploymentIntentGroup| {
        let Some(status) = &dig.status else { return Err("it has no status".to_owned()) };
        let approved = status.condition(types::APPROVED);
        let said = approved.map(|approved| approved.reason.clone()).unwrap_or_default();
        if said == wanted && status.observed_generation == dig.metadata.generation {
            Ok(status.pending.as_ref().map(|pending| pending.digest.clone()))
        } else {
            Err(said)
        }
    })
    .await
}

async fn edit(bed: &Bed, tenant: &str, key: &str) -> Result<()> {
    let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
    let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{key: {key}}}}}]");
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, &spec)).await.map(drop)
}

#[tokio::test]
async fn a_deletion_is_confirmed_once_it_waits_for_that() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "ends", EVERYWHERE).await?;
        let kubectl = bed.hub().kubectl();
        run(bed, &["confirm", "ends/till"]).await?.is(1, &["ends/till: it is not being deleted"]);
        let always = r#"{"spec":{"confirmDeletion":"Always"}}"#;
        kubectl.run(&["patch", "eproj", "ends", "--type=merge", "-p", always]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/ends", seen, "--timeout=30s"]).await?;
        kubectl.run(&["delete", "dig", "till", "-n", "ends", "--wait=false"]).await?;
        let digest = wait(bed, "ends", "till", |dig: &DeploymentIntentGroup| {
            let pending = dig.status.as_ref().and_then(|status| status.pending.clone());
            let pending = pending.ok_or("nothing is pending")?;
            if pending.requires == PendingRequires::DeletionConfirmation {
                Ok(pending.digest)
            } else {
                Err(format!("{pending:?}"))
            }
        })
        .await?;
        run(bed, &["confirm", "ends/till", "--digest", "000000000000"]).await?.is(1, &["look at it again"]);
        let digits: String = digest.trim_start_matches("sha256:").chars().take(12).collect();
        run(bed, &["confirm", "dig/till", "-n", "ends", "--digest", &digits])
            .await?
            .is(0, &["ends/till: its deletion is confirmed, digest", &digits]);
        kubectl.run(&["wait", "dig/till", "-n", "ends", "--for=delete", "--timeout=60s"]).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_plan_is_carried_out_once_approved_and_refused_once_rejected() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "votes", EVERYWHERE).await?;
        run(bed, &["approve", "votes/till"]).await?.is(1, &["votes/till: no plan of it waits"]);
        let manual = r#"{"spec":{"approval":{"mode":"Manual","scope":"Plan"}}}"#;
        bed.hub().kubectl().run(&["patch", "eproj", "votes", "--type=merge", "-p", manual]).await?;
        // The watch of projects and that of deployments are two.
        let seen = [
            "wait",
            "projects.emco.io/votes",
            "--for=jsonpath={.status.observedGeneration}=2",
            "--timeout=30s",
        ];
        bed.hub().kubectl().run(&seen).await?;
        edit(bed, "votes", "two").await?;
        let digest = approved(bed, "votes", "AwaitingApproval").await?.unwrap_or_default();
        let digits = digest.trim_start_matches("sha256:").get(..12).unwrap_or_default().to_owned();
        run(bed, &["approve", "votes/till", "--digest", "000000000000"])
            .await?
            .is(1, &["the plan that waits has digest", &digits, "look at it again"]);
        let said = run(bed, &["approve", "dig/till", "-n", "votes", "--digest", &digits]).await?;
        said.is(
            0,
            &[&format!("votes/till: digest {digits} is approved by "), "; revision 2, note on 2 clusters"],
        );
        deployed(bed, "votes", "till", 2).await?;
        approved(bed, "votes", "ApprovedBy").await?;
        edit(bed, "votes", "three").await?;
        approved(bed, "votes", "AwaitingApproval").await?;
        run(bed, &["reject", "votes/till", "--comment", "not today"]).await?.is(0, &["is rejected by "]);
        approved(bed, "votes", "Rejected").await?;
        run(bed, &["reject", "votes/till"]).await?.is(0, &["(it was so before)"]);
        // An approval changes nothing then.
        let json = run(bed, &["approve", "votes/till", "-o", "json"]).await?.json();
        assert!(json["created"] == true && json["rejected"].is_string(), "{json:#}");
        approved(bed, "votes", "Rejected").await.map(drop)
    })
    .await;
}
