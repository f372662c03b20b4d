//! People beside EMCO: somebody else's files stay, and what somebody changes of EMCO's is undone and told.

use anyhow::{Context as _, Result, ensure};
use emco_crds::GitTarget;
use emco_e2e::operator::wait;

use super::fleet::Fleet;

/// Somebody edits our file and adds one of their own.
pub async fn edit(fleet: &Fleet, of_app: &str) -> Result<()> {
    let tip = fleet.published().await?;
    let files = fleet.server.files(&tip).await?;
    let is_it = |file: &&String| file.contains(of_app) && !file.ends_with("kustomization.yaml");
    let ours = files.iter().find(is_it).with_context(|| format!("no file of {of_app}: {files:?}"))?;
    let corrected = |target: &GitTarget| {
        let drift = target.status.as_ref().and_then(|status| status.drift.as_ref());
        drift.map_or(0, |drift| drift.corrected)
    };
    let targets = fleet.bed.hub().api::<GitTarget>(&fleet.name).await?;
    let so_far = corrected(&targets.get("fleet").await?);
    let before = fleet.server.text(ours).await?;
    let edited = before.replace("say: ", "say: not-");
    ensure!(edited != before, "{before}");
    fleet
        .server
        .push(&[(ours, Some(&edited)), ("hub/README.md", Some("ours")), ("hub/clusters.txt", Some("theirs"))])
        .await?;
    wait(fleet.bed, &fleet.name, "fleet", |target: &GitTarget| {
        let now = corrected(target);
        if now == so_far + 1 { Ok(()) } else { Err(format!("{now} changes were undone, {so_far} before")) }
    })
    .await?;
    ensure!(fleet.server.text(ours).await? == before, "it is not as it was");
    for theirs in ["hub/README.md", "hub/clusters.txt"] {
        fleet.server.text(theirs).await.with_context(|| format!("{theirs} is gone"))?;
    }
    let events =
        ["get", "events", "-n", &fleet.name, "--field-selector", "reason=DriftCorrected", "-o", "name"];
    let events = fleet.bed.hub().kubectl().run(&events).await?;
    ensure!(!events.trim().is_empty(), "no Event tells of it");
    Ok(())
}
