//! Answers the driver for deployments.

use std::sync::Arc;

use emco_crds::{DeploymentIntentGroup, OwnerKind};
use futures::future::BoxFuture;

use super::reconcile;
use crate::object::context::Reconciled;
use crate::object::meta::{self, name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::{PlanChanged, RefsChanged, SyncPolicyChanged};

impl Controlled for DeploymentIntentGroup {
    /// How many of them plan is for `api/plan_turns.rs` to say.
    const AT_ONCE: u16 = 16;

    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// What it names looks again, and approvals of its plans. From here on its queue says what asks for more than a report. Its turn to plan
    /// ends where its spec is another one.
    fn listener(reach: &Reach) -> Listener<Self> {
        let planned = Arc::clone(&reach.triggers);
        reach.ctx.turns.wake_with(move |namespace, name| planned.digs.enqueue(namespace, name));
        reach.triggers.digs.tell(Arc::clone(&reach.ctx.looks));
        let (refs, plan, policy) =
            (RefsChanged::default(), PlanChanged::default(), SyncPolicyChanged::default());
        Box::new(move |reach, change| {
            let (dig, stores) = (change.object, &reach.ctx.stores);
            let (generation, deleting) = (meta::generation(dig), meta::deleting(dig));
            let _stopped = reach.ctx.turns.changed(namespace(dig), name(dig), generation, deleting);
            if change.gone {
                reach.ctx.looks.gone(&(namespace(dig).to_owned(), name(dig).to_owned()));
            }
            if refs.changed(change) {
                reach.triggers.dig(stores, dig, change.gone);
                reach.triggers.owner(namespace(dig), &OwnerKind::DeploymentIntentGroup, name(dig));
            }
            if plan.changed(change) {
                reach.triggers.plan(stores, dig);
            }
            if policy.changed(change) {
                reach.sync.policy_changed(&OwnerKind::DeploymentIntentGroup, namespace(dig), name(dig));
            }
        })
    }
}
