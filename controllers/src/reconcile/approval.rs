//! Reconciles the kind `DeploymentApproval`. Approvals have no effect yet: every project is Automatic.

use emco_engine::unsupported;

use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::runtime::context::{Context, Outcome, Reconciled};
use crate::runtime::stores::StoreExt;

/// Says of an approval that it waits for a later version of the operator.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(approval) = ctx.stores.approvals.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = approval.status.clone().unwrap_or_default();
    let generation = meta::generation(approval.as_ref());
    let sentence = unsupported::check_approval(&approval.spec);
    status::set_ready(ctx, &mut status, generation, &ReadyState::Stalled, "NotSupportedYet", &sentence);
    status::write(ctx, approval.as_ref(), approval.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
