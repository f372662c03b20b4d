//! DeploymentApproval in; what became of it out. Approvals have no effect yet: every project is Automatic.

use emco_engine::unsupported;

use crate::context::{Context, Outcome, Reconciled};
use crate::objects::{self, Verdict};
use crate::stores::StoreExt;

/// Says of an approval that it waits for a later version of the operator.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(approval) = ctx.stores.approvals.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = approval.status.clone().unwrap_or_default();
    let generation = objects::generation(approval.as_ref());
    let sentence = unsupported::check_approval(&approval.spec).unwrap_or_else(|| {
        "approvals have no effect yet: plans of every project are carried out at once (spec.approval.mode Automatic)".to_owned()
    });
    objects::verdict(ctx, &mut status, generation, &Verdict::Stalled, "NotSupportedYet", &sentence);
    objects::write_status(ctx, approval.as_ref(), approval.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
