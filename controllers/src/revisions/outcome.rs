//! What became of revisions in, the status of their AppContexts out: for readers and recovery. Written when it changes, never
//! waited for by what is targeted.

use std::sync::Arc;

use emco_crds::app_context::FORMAT;
use emco_crds::conditions::types::READY;
use emco_crds::{AppContext, State};
use emco_engine::conditions;
use kube::runtime::reflector::ObjectRef;

use super::{Owner, begun, contexts};
use crate::context::{Context, Failure};
use crate::objects;

/// A revision as the watch shows it. What this process wrote and the watch did not bring yet is dealt with when it does.
fn shown(ctx: &Context, context: &AppContext) -> Option<Arc<AppContext>> {
    ctx.stores.contexts.get(&ObjectRef::from_obj(context))
}

/// Whether a revision is to be noted as stored: the watch shows it, and without that note.
pub fn is_new(ctx: &Context, owner: &Owner, revision: i64) -> bool {
    let found = contexts(ctx, owner).into_iter().find(|context| context.spec.revision == revision);
    found.and_then(|context| shown(ctx, &context)).is_some_and(|context| !is_noted(&context))
}

fn is_noted(context: &AppContext) -> bool {
    context.status.as_ref().is_some_and(|status| status.stored == Some(true))
}

/// Notes that revisions are stored and, once, how each ended: the newest when it is complete, the others when they were
/// replaced. Answers those that are noted as stored from now on.
pub async fn note(ctx: &Context, owner: &Owner, running: i64, state: State) -> Result<Vec<i64>, Failure> {
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
        if overtaken && !begun::was_targeted(ctx, owner, revision) {
            continue;
        }
        if status.outcome.is_none() && (complete || replaced) {
            status.outcome = Some(match seen.spec.previous {
                // The next one came while clusters were at work on it.
                None if overtaken => State::Instantiating,
                Some(_) if overtaken => State::Updating,
                _ if replaced && !complete => state,
                previous => ended(previous, state),
            });
        }
        if !is_noted(&seen) {
            status.stored = Some(true);
            let generation = objects::generation::<AppContext>(&seen);
            status.observed_generation = Some(generation);
            conditions::set(&mut status.conditions, READY, "True", "Stored", "", generation, ctx.now());
            new.push(revision);
        }
        if seen.status.as_ref() != Some(&status) {
            objects::replace_status(ctx, seen.as_ref(), &status).await?;
        }
    }
    Ok(new)
}

/// The first revision ends instantiated, later ones updated.
const fn ended(previous: Option<i64>, state: State) -> State {
    match (previous, state) {
        (None, State::Updated) => State::Instantiated,
        (_, state) => state,
    }
}
