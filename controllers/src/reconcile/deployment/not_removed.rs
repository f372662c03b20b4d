//! Keeps the names of objects of a deployment that stay on clusters.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::NotRemoved;
use emco_engine::rollup;

use crate::object::context::Failure;
use crate::object::{Owner, meta, status};
use crate::reconcile::context::Context;
use crate::reconcile::not_removed;

/// Writes down what is not yet; `true` where something was: the watch brings the next look.
pub async fn keep(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Result<bool, Failure> {
    let known = dig.status.as_ref().and_then(|status| status.not_removed.as_ref());
    let Some(now) = not_removed::news(ctx, dig, owner, known) else { return Ok(false) };
    let mut fresh = dig.status.clone().unwrap_or_default();
    fresh.not_removed = Some(now.clone());
    if status::write(ctx, dig, dig.status.as_ref(), &fresh).await? {
        not_removed::tell(ctx, dig, owner, &now).await;
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
