//! Emits Events on what changed between two statuses of a deployment, each once, on the transition.

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::rollout::RolloutStatus;
use emco_crds::deployment_intent_group::status::{DeploymentIntentGroupStatus, DriftCounts};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup, Failing};
use emco_engine::rollup::{DigRollup, MOST_FAILING, is_failure};
use emco_engine::text::counted;

use super::{rollout, waits};
use crate::object::events;
use crate::object::transitions;
use crate::reconcile::context::Context;

/// Tells what is worth an Event besides the condition Ready, after `status` took the place of what the object has.
pub async fn tell(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    status: &DeploymentIntentGroupStatus,
    rolled: &DigRollup,
) {
    for (warning, reason, note) in news(dig.status.as_ref(), status, rolled) {
        events::emit(ctx, dig, warning, reason, &note).await;
    }
    waits::tell(ctx, dig, status).await;
}

fn news(
    before: Option<&DeploymentIntentGroupStatus>,
    now: &DeploymentIntentGroupStatus,
    rolled: &DigRollup,
) -> Vec<(bool, &'static str, String)> {
    let mut news = Vec::new();
    let said = |type_: &str| {
        let condition = before.and_then(|status| status.condition(type_));
        condition.map(|c| c.message.clone()).unwrap_or_default()
    };
    let drift = |status: Option<&DeploymentIntentGroupStatus>| -> (i64, i64) {
        let drift = status.and_then(|status| status.drift.as_ref());
        drift.map_or((0, 0), |DriftCounts { corrected, reported, last: _ }| {
            (*corrected, reported.unwrap_or(0))
        })
    };
    let ((made_before, differed), (made, differ)) = (drift(before), drift(Some(now)));
    match &rolled.notes.drift {
        Some(note) if differ > differed => news.push((true, "Drift", note.clone())),
        None if differed > 0 => {
            news.push((false, "DriftEnded", "all objects are again as they were applied".to_owned()));
        }
        _ => {}
    }
    // Whoever keeps deleting would get an Event each time: only the first of a revision is one.
    if made_before == 0 && made > 0 {
        let named = rolled.notes.corrected.as_ref().map(|named| format!(": {named}")).unwrap_or_default();
        let note = format!(
            "objects that others deleted, replaced or changed are again as they were applied{named}; status.drift counts them"
        );
        news.push((true, "DriftCorrected", note));
    }
    let notes = &rolled.notes;
    for (reason, note, example) in [
        ("FieldsLeftOut", &notes.left_out, &notes.left_out_example),
        ("FieldsRewritten", &notes.rewritten, &notes.rewritten_example),
    ] {
        if let (Some(note), Some(example)) = (note, example)
            && !said(types::DEPLOYED).contains(example.as_str())
        {
            news.push((true, reason, note.clone()));
        }
    }
    let rendered = now.condition(types::RENDERED).filter(|rendered| rendered.status == "True");
    if let Some(remark) = rendered.map(|rendered| &rendered.message)
        && !remark.is_empty()
        && said(types::RENDERED) != *remark
    {
        news.push((true, "RenderWarning", remark.clone()));
    }
    news.extend(wave(before, now).map(|(reason, note)| (false, reason, note)));
    news.extend(newly_failed(before, now).map(|(reason, note)| (true, reason, note)));
    news
}

/// That a wave begins, or that all are done. That a rollout is paused, Ready tells.
fn wave(
    before: Option<&DeploymentIntentGroupStatus>,
    now: &DeploymentIntentGroupStatus,
) -> Option<(&'static str, String)> {
    let place = |rollout: &RolloutStatus| (rollout.inputs_digest.clone(), rollout.place);
    let has_begun = |rollout: &&RolloutStatus| {
        !rollout.taken_back && !rollout.waits_for.starts_with(rollout::BEFORE_IT_BEGINS)
    };
    let rollout = now.rollout.as_ref().filter(has_begun)?;
    let before = before.and_then(|status| status.rollout.as_ref()).filter(has_begun);
    if before.map(place) == Some(place(rollout)) {
        return None;
    }
    let RolloutStatus { wave, place, waves, clusters, .. } = rollout;
    let revision = now.revision.unwrap_or_default();
    if place > waves {
        return Some(("RolloutDone", format!("revision {revision} has passed all of its waves ({waves})")));
    }
    let on = counted(usize::try_from(*clusters).unwrap_or_default(), "cluster");
    Some(("WaveBegan", format!("wave {place} of {waves} ({wave}) of revision {revision}: {on}")))
}

/// Clusters that failed where Ready does not tell of it, as where `readyClusters` needs fewer or another one failed before: the first
/// of them, and how many more. Not while the list was full: what is named then may have been left out of it.
fn newly_failed(
    before: Option<&DeploymentIntentGroupStatus>,
    now: &DeploymentIntentGroupStatus,
) -> Option<(&'static str, String)> {
    let known = before.map(|status| status.failing.as_slice()).unwrap_or_default();
    if known.len() >= MOST_FAILING || transitions::warns(before, now) {
        return None;
    }
    let is_new =
        |one: &&Failing| !known.iter().any(|old| old.cluster == one.cluster && old.reason == one.reason);
    let mut new = now.failing.iter().filter(|one| is_failure(&one.reason)).filter(is_new);
    let first = new.next()?;
    let app = first.app.as_deref().map(|app| format!(" ({app})")).unwrap_or_default();
    let more = match new.count() {
        0 => String::new(),
        more => format!("; {more} more failed"),
    };
    let reason = Reason::parse(&first.reason).map_or("Failed", Reason::as_str);
    Some((reason, format!("{}{app}: {}{more}", first.cluster, first.message)))
}
