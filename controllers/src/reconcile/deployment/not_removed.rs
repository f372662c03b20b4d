//! Keeps the names of objects that stay on clusters without the owner label, before the rows leave that name them.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::NotRemoved;
use emco_engine::rollup;

use crate::object::context::Failure;
use crate::object::{Owner, events, meta, status};
use crate::reconcile::context::Context;
use crate::store;

/// Writes down what is not yet; `true` where something was: the watch brings the next look.
pub async fn keep(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Result<bool, Failure> {
    let known = dig.status.as_ref().and_then(|status| status.not_removed.as_ref());
    let shards = store::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let now = rollup::not_removed(&parts, known, meta::generation(dig));
    let Some(now) = now.filter(|now| Some(now) != known) else { return Ok(false) };
    let mut fresh = dig.status.clone().unwrap_or_default();
    let said = rollup::said_of_not_removed(&now);
    fresh.not_removed = Some(now);
    if status::write(ctx, dig, dig.status.as_ref(), &fresh).await? {
        events::emit(ctx, dig, true, "NotRemoved", &said).await;
    }
    Ok(true)
}

/// Those of the present generation.
pub fn of(dig: &DeploymentIntentGroup) -> Option<NotRemoved> {
    let known = dig.status.as_ref().and_then(|status| status.not_removed.clone());
    known.filter(|known| known.generation == meta::generation(dig))
}

/// Their sentence, after something else.
pub fn said(dig: &DeploymentIntentGroup) -> String {
    of(dig).map(|known| format!("; {}", rollup::said_of_not_removed(&known))).unwrap_or_default()
}
