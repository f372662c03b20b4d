//! Brings back what ran before a pin, where the pin is gone and the plan that comes in its place has to wait. It was let pass before.

use emco_crds::DeploymentIntentGroup;
use emco_engine::set::Assignment;

use super::{approved, pinned};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::reconcile::context::Context;
use crate::store::Stored;

/// The revision that comes back, with what clusters get of it today.
pub async fn back(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
    targeted: Option<&Stored>,
) -> Result<Option<(Stored, Assignment)>, Failure> {
    let Some(newest) = approved::comes_back(ctx, dig, owner, newest, targeted) else { return Ok(None) };
    let found = Box::pin(pinned::find(ctx, dig, owner, newest.spec.revision)).await?;
    Ok(found.ok().map(|pin| (pin.stored, pin.assignment)))
}
