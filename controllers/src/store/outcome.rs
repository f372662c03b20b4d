//! Records in the status of AppContexts what became of revisions, for readers and recovery, and delays reports until clusters had their turn.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::app_context::{AppContextStatus, FORMAT};
use emco_crds::conditions::types::READY;
use emco_crds::{AppContext, State};
use emco_engine::conditions;
use kube::runtime::reflector::ObjectRef;

use super::context::StoreContext;
use super::load::contexts;
use super::pending_report::RevisionSummary;
use super::shards::stored_shards;
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::object::status;

/// A revision was targeted: its report waits until clusters had their turn.
pub fn mark_targeted(
    ctx: &StoreContext,
    owner: &Owner,
    generation: i64,
    revision: i64,
    summary: RevisionSummary,
) {
    let delay = ctx.revisions.settings.report_delay;
    ctx.revisions.pending_reports.mark(&owner.hash, generation, revision, summary, delay);
}

/// How long the owner's status and Events still wait: clusters are at work on what was targeted, and the owner was not changed
/// since.
pub fn report_delay(ctx: &StoreContext, owner: &Owner, generation: i64) -> Option<Duration> {
    let left = ctx.revisions.pending_reports.left(&owner.hash, generation)?;
    let reported = stored_shards(ctx, owner).iter().all(|shard| {
        let status = shard.status.as_ref();
        status.and_then(|status| status.observed_generation) == shard.metadata.generation
    });
    (!reported).then_some(left)
}

/// What is new in a revision that is reported now.
pub fn take_summary(ctx: &StoreContext, owner: &Owner, revision: i64) -> RevisionSummary {
    ctx.revisions.pending_reports.take(&owner.hash, revision)
}

/// A revision as the watch shows it. What this process wrote and the watch did not bring yet is dealt with when it does.
fn shown(ctx: &StoreContext, context: &AppContext) -> Option<Arc<AppContext>> {
    ctx.stores.contexts.get(&ObjectRef::from_obj(context))
}

/// Whether a revision is to be noted as stored: the watch shows it, and without that note.
pub fn is_unreported(ctx: &StoreContext, owner: &Owner, revision: i64) -> bool {
    let found = contexts(ctx, owner).into_iter().find(|context| context.spec.revision == revision);
    found.and_then(|context| shown(ctx, &context)).is_some_and(|context| !is_noted(&context))
}

/// Whether a revision was on all of its clusters, as far as its status knows: one that waits for the gate of a wave, or was stored and not
/// targeted before the process ended, was not.
pub fn was_complete(ctx: &StoreContext, owner: &Owner, revision: i64) -> bool {
    let all = contexts(ctx, owner);
    let found = all.iter().find(|context| context.spec.revision == revision);
    let outcome = |context: &AppContext| context.status.as_ref().and_then(|status| status.outcome);
    found.and_then(|context| shown(ctx, context)).is_some_and(|context| is_complete(outcome(&context)))
}

fn is_noted(context: &AppContext) -> bool {
    context.status.as_ref().is_some_and(|status| status.stored == Some(true))
}

/// What a complete revision has, for the log.
#[derive(Clone, Copy)]
pub struct RevisionCounts {
    /// Clusters.
    pub clusters: i64,
    /// Objects on all of them.
    pub objects: i64,
}

/// Facts about an owner's revisions, as they are seen.
#[derive(Clone, Copy)]
pub struct Seen {
    /// The one that runs.
    pub running: i64,
    /// The owner's state.
    pub state: State,
    /// The one that runs is good now; `None` where nobody goes back to a good one.
    pub good: Option<bool>,
}

/// Notes that revisions are stored and how each ended: the one that runs when it is complete, and when it fails before it was good; the
/// others when they were replaced. Answers those that are noted as stored from now on. With `counts`, completion is logged.
pub async fn record_outcome(
    ctx: &StoreContext,
    owner: &Owner,
    now: Seen,
    counts: Option<RevisionCounts>,
) -> Result<Vec<i64>, Failure> {
    let mut new = Vec::new();
    for context in &contexts(ctx, owner) {
        let Some(seen) = shown(ctx, context) else { continue };
        if seen.spec.format > FORMAT {
            continue;
        }
        let revision = seen.spec.revision;
        let runs = revision == now.running;
        // One that was never complete, because the process died while it was written, says nothing.
        let overtaken = !runs && !is_noted(&seen) && !seen.is_taken_back();
        if overtaken && !ctx.revisions.pending_reports.contains(&owner.hash, revision) {
            continue;
        }
        let mut status = seen.status.clone().unwrap_or_default();
        if !is_noted(&seen) {
            status.stored = Some(true);
            // Of one that is noted already, and not judged, an older release knew the outcome alone.
            if status.good.is_none() && now.good.is_some() {
                status.good = Some(false);
            }
            let generation = meta::generation::<AppContext>(&seen);
            status.observed_generation = Some(generation);
            conditions::set(&mut status.conditions, READY, "True", "Stored", "", generation, ctx.now());
            new.push(revision);
        }
        // An older release noted it and ended on its way: how it would have ended is not known.
        if runs && status.good.is_none() && status.outcome.is_none() && now.good.is_some() {
            status.good = Some(false);
        }
        if seen.is_taken_back() {
            (status.outcome, status.good) = (Some(failed(seen.spec.previous)), Some(false));
        } else if runs {
            if now.good == Some(true) && !seen.is_good() {
                status.good = Some(true);
            }
            status.outcome = ended(seen.spec.previous, &status, now.state);
            let was_complete = seen.status.as_ref().is_some_and(|status| is_complete(status.outcome));
            if let Some(counts) = counts.filter(|_| is_complete(status.outcome) && !was_complete) {
                log_complete(ctx, owner, &seen, now.state, counts);
            }
        } else if status.outcome.is_none() {
            let complete = is_complete(Some(now.state)) || overtaken;
            status.outcome = Some(replaced(seen.spec.previous, &status, complete, now.state));
        }
        if seen.status.as_ref() != Some(&status) {
            status::replace(ctx, seen.as_ref(), &status).await?;
        }
    }
    Ok(new)
}

const fn is_complete(outcome: Option<State>) -> bool {
    matches!(outcome, Some(State::Instantiated | State::Updated))
}

/// The outcome of the revision that runs, as far as it is known. Once it is good, a later failure is an outage; before, it failed.
fn ended(previous: Option<i64>, status: &AppContextStatus, now: State) -> Option<State> {
    let (was, good) = (status.outcome, status.good);
    match (previous, now) {
        (_, State::InstantiateFailed | State::UpdateFailed) if good == Some(false) => Some(now),
        (_, State::Instantiated | State::Updated)
            if was.is_some() && (is_complete(was) || good != Some(true)) =>
        {
            was
        }
        // The first revision ends instantiated, later ones updated.
        (None, State::Updated) => Some(State::Instantiated),
        (_, State::Instantiated | State::Updated) => Some(now),
        _ => was,
    }
}

/// The outcome of a revision that another one took the place of, which is `complete` or has the state `now`.
const fn replaced(previous: Option<i64>, status: &AppContextStatus, complete: bool, now: State) -> State {
    match (previous, status.good) {
        (None, Some(true)) => State::Instantiated,
        (Some(_), Some(true)) => State::Updated,
        _ if !complete => now,
        // This one never was.
        (None, _) => State::Instantiating,
        (Some(_), _) => State::Updating,
    }
}

/// The outcome of a revision that too many clusters failed with.
pub(super) const fn failed(previous: Option<i64>) -> State {
    match previous {
        None => State::InstantiateFailed,
        Some(_) => State::UpdateFailed,
    }
}

fn log_complete(
    ctx: &StoreContext,
    owner: &Owner,
    context: &AppContext,
    state: State,
    counts: RevisionCounts,
) {
    let made = context.metadata.creation_timestamp.as_ref().map_or_else(|| ctx.now(), |made| made.0);
    let LogFields { project, deployment, object } = owner.log_fields(ctx);
    tracing::info!(
        project,
        deployment,
        object,
        revision = context.spec.revision,
        clusters = counts.clusters,
        objects = counts.objects,
        seconds = ctx.now().duration_since(made).as_secs(),
        "revision complete: {state}"
    );
}
