//! What became of revisions in, the status of their AppContexts out: for readers and recovery. Written when it changes, never
//! waited for by what is targeted.

use emco_crds::app_context::FORMAT;
use emco_crds::conditions::types::READY;
use emco_crds::{AppContext, State};
use emco_engine::conditions;

use super::{Owner, contexts};
use crate::context::{Context, Failure};
use crate::objects;

/// Notes that revisions are stored and, once, how each ended: the newest when it is complete, the others when they were
/// replaced.
pub async fn note(ctx: &Context, owner: &Owner, running: i64, state: State) -> Result<(), Failure> {
    for context in &contexts(ctx, owner) {
        // What this process wrote and the watch did not bring yet is noted when it does.
        let Some(seen) =
            ctx.stores.contexts.get(&kube::runtime::reflector::ObjectRef::from_obj(context.as_ref()))
        else {
            continue;
        };
        if seen.spec.format > FORMAT {
            continue;
        }
        let mut status = seen.status.clone().unwrap_or_default();
        let complete = matches!(state, State::Instantiated | State::Updated);
        let replaced = seen.spec.revision != running;
        // One that was never complete, because the process died while it was written, says nothing.
        if replaced && status.stored != Some(true) {
            continue;
        }
        if status.outcome.is_none() && (complete || replaced) {
            status.outcome =
                Some(if replaced && !complete { state } else { ended(seen.spec.previous, state) });
        }
        if status.stored != Some(true) {
            status.stored = Some(true);
            let generation = objects::generation::<AppContext>(&seen);
            status.observed_generation = Some(generation);
            conditions::set(&mut status.conditions, READY, "True", "Stored", "", generation, ctx.now());
        }
        if seen.status.as_ref() != Some(&status) {
            objects::replace_status(ctx, seen.as_ref(), &status).await?;
        }
    }
    Ok(())
}

/// The first revision ends instantiated, later ones updated.
const fn ended(previous: Option<i64>, state: State) -> State {
    match (previous, state) {
        (None, State::Updated) => State::Instantiated,
        (_, state) => state,
    }
}
