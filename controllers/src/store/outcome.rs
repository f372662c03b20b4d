//! Records in the status of AppContexts what became of revisions, for readers and recovery, and delays reports until clusters had their turn.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::app_context::FORMAT;
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

/// Notes that revisions are stored and, once, how each ended: the newest when it is complete, the others when they were
/// replaced. Answers those that are noted as stored from now on. With `counts`, completion is logged.
pub async fn record_outcome(
    ctx: &StoreContext,
    owner: &Owner,
    running: i64,
    state: State,
    counts: Option<RevisionCounts>,
) -> Result<Vec<i64>, Failure> {
    let mut new = Vec::new();
    for context in &contexts(ctx, owner) {
        let Some(seen) = shown(ctx, context) else { continue };
        if seen.spec.format > FORMAT {
            continue;
        }
        let mut status = seen.status.clone().unwrap_or_default();
        let revision = seen.spec.revision;
        let complete = matches!(state, State::Instantiated | State::Updated);
        let replaced = revision != running;
        // One that was never complete, because the process died while it was written, says nothing.
        let overtaken = replaced && !is_noted(&seen);
        if overtaken && !ctx.revisions.pending_reports.contains(&owner.hash, revision) {
            continue;
        }
        if status.outcome.is_none() && (complete || replaced) {
            status.outcome = Some(match seen.spec.previous {
                // The next one came while clusters were at work on it.
                None if overtaken => State::Instantiating,
                Some(_) if overtaken => State::Updating,
                _ if replaced && !complete => state,
                // Another one is: this one never was.
                None if replaced => State::Instantiating,
                Some(_) if replaced => State::Updating,
                previous => ended(previous, state),
            });
            if let Some(counts) = counts.filter(|_| complete && !replaced) {
                log_complete(ctx, owner, &seen, state, counts);
            }
        }
        if !is_noted(&seen) {
            status.stored = Some(true);
            let generation = meta::generation::<AppContext>(&seen);
            status.observed_generation = Some(generation);
            conditions::set(&mut status.conditions, READY, "True", "Stored", "", generation, ctx.now());
            new.push(revision);
        }
        if seen.status.as_ref() != Some(&status) {
            status::replace(ctx, seen.as_ref(), &status).await?;
        }
    }
    Ok(new)
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

/// The first revision ends instantiated, later ones updated.
const fn ended(previous: Option<i64>, state: State) -> State {
    match (previous, state) {
        (None, State::Updated) => State::Instantiated,
        (_, state) => state,
    }
}
