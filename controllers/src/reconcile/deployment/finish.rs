//! Runs after the clusters: writes explanations and Events, records the outcome, prunes history.
//!
//! All of it follows from what is stored: where a process died before it, the next one does it.

use emco_crds::deployment_intent_group::status::DeploymentClusters;
use emco_crds::{DeploymentIntentGroup, State};
use emco_engine::rollup::{DigRollup, needed};

use super::held;
use super::planned::{Held, Planned};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::events;
use crate::reconcile::context::Context;
use crate::store::{self, RevisionCounts, RevisionSummary, Seen};

/// Warnings that become Events.
const MOST_WARNINGS: usize = 5;

/// Reports what is new, and removes revisions beyond the history. `rolled` is what the status was made of.
pub async fn finish(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    rolled: &DigRollup,
) -> Result<(), Failure> {
    let Some(stored) = planned.stored() else { return Ok(()) };
    if let Planned::Done(plan, Some(newest), _) = planned
        && store::is_unreported(ctx, owner, newest.spec.revision)
    {
        // Before the outcome is recorded: without that, it is done again.
        store::explain(ctx, owner, &newest.spec, &plan.explanation).await?;
    }
    let counts = RevisionCounts { clusters: rolled.clusters.total, objects: rolled.deployed_counts.applied };
    // Where a plan is only planned, clusters stay in the middle of a rollout, or where it was taken back to.
    let is_whole = |held: &Held| {
        !held.hold.planned || held::targeted(&stored.running.assignment) == store::targets(ctx, owner)
    };
    let whole = planned.held().is_none_or(is_whole);
    let state = if whole { rolled.state } else { State::Updating };
    let good = Some(whole && is_good(dig, planned, rolled.clusters));
    let seen = Seen { running: stored.spec.revision, state, good };
    for revision in store::record_outcome(ctx, owner, seen, Some(counts)).await? {
        emit_summary(ctx, dig, revision, &store::take_summary(ctx, owner, revision)).await;
    }
    if matches!(planned, Planned::Done(..)) {
        let limit = usize::try_from(dig.spec.revision_history_limit).unwrap_or(10);
        // As it is now: it may have been pinned while this one was worked on.
        let now = ctx.stores.digs.named(&owner.namespace, &owner.name);
        let pinned = now.and_then(|now| now.spec.revision).or(dig.spec.revision);
        store::prune_history(ctx, owner, limit, pinned).await?;
    }
    Ok(())
}

/// Judges the revision that runs. One that goes in waves is good when its rollout is over and no more clusters fail than it bears, those
/// included that it did not change; any other when nothing is on its way and, of the clusters that can be reached, all are ready, or as many
/// as `readyClusters` asks for.
fn is_good(dig: &DeploymentIntentGroup, planned: &Planned, clusters: DeploymentClusters) -> bool {
    let at_once = || {
        let DeploymentClusters { total, ready, progressing, failed, .. } = clusters;
        let of = |count: i64| usize::try_from(count).unwrap_or_default();
        let enough = of(ready) >= needed(Some(&dig.spec.ready_clusters), of(total));
        ready > 0 && progressing == 0 && (failed == 0 || enough)
    };
    let in_waves = planned.stored().is_some_and(|stored| stored.running.waves.is_some());
    match planned.way() {
        Some(way) if way.back.is_none() => {
            let bears = i64::try_from(way.bears).unwrap_or(i64::MAX);
            let bearable = clusters.ready > 0 && clusters.progressing == 0 && clusters.failed <= bears;
            way.is_good && (bearable || at_once())
        }
        // Its waves are not known here. One that is pinned, or came back, needs none.
        None if in_waves && dig.spec.revision.is_none() => false,
        _ => at_once(),
    }
}

async fn emit_summary(ctx: &Context, dig: &DeploymentIntentGroup, revision: i64, summary: &RevisionSummary) {
    let RevisionSummary { text, warnings } = summary;
    let note =
        if text.is_empty() { format!("revision {revision}") } else { format!("revision {revision}: {text}") };
    events::emit(ctx, dig, false, "Revision", &note).await;
    for warning in warnings.iter().take(MOST_WARNINGS) {
        events::emit(ctx, dig, true, "Warning", warning).await;
    }
}
