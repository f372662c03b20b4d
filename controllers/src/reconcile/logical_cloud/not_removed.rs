//! Keeps the names of namespaces that stay on clusters for what they hold.

use emco_crds::LogicalCloud;
use emco_crds::deployment_intent_group::status::NotRemoved;

use crate::object::context::Failure;
use crate::object::{Owner, meta, status};
use crate::reconcile::context::Context;
use crate::reconcile::not_removed;

/// Writes down what is not yet; `true` where something was: the watch brings the next look.
pub async fn keep(ctx: &Context, cloud: &LogicalCloud, owner: &Owner) -> Result<bool, Failure> {
    let known = cloud.status.as_ref().and_then(|status| status.not_removed.as_ref());
    let Some(now) = not_removed::news(ctx, cloud, owner, known) else { return Ok(false) };
    let mut fresh = cloud.status.clone().unwrap_or_default();
    fresh.not_removed = Some(now.clone());
    if status::write(ctx, cloud, cloud.status.as_ref(), &fresh).await? {
        not_removed::tell(ctx, cloud, owner, &now).await;
    }
    Ok(true)
}

/// Those of the present generation.
pub fn of(cloud: &LogicalCloud) -> Option<NotRemoved> {
    let known = cloud.status.as_ref().and_then(|status| status.not_removed.clone());
    known.filter(|known| known.generation == meta::generation(cloud))
}
