//! Reconciles every `HardwareIntent`: whether its requirements can be read at all, and which deployments list it.
//!
//! What it does to a deployment is said by that deployment, for one intent may serve many.

use emco_crds::names::finalizer;
use emco_crds::reasons::HardwareIntentReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup, HardwareIntent};
use emco_engine::{hardware, holders};
use futures::future::BoxFuture;

use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::IntentChanged;

impl Controlled for HardwareIntent {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments that list it look again.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = IntentChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                let (namespace, name) = (meta::namespace(change.object), meta::name(change.object));
                reach.triggers.hardware_intent(&reach.ctx.stores, namespace, name);
            }
        })
    }
}

/// Brings one intent to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(intent) = ctx.stores.hardware.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = intent.status.clone().unwrap_or_default();
    let generation = meta::generation(intent.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let shown = holders::hardware_intent(Some(namespace), name, digs.iter().map(AsRef::as_ref));
    let mut holders = Holders::shown(shown);
    if meta::deleting(intent.as_ref()) {
        let of = |digs: &[DeploymentIntentGroup]| holders::hardware_intent(Some(namespace), name, digs);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    let waits = if meta::deleting(intent.as_ref()) { holders::waits_for(&holders.names) } else { None };
    if meta::deleting(intent.as_ref()) && waits.is_none() {
        finalizers::remove(ctx, intent.as_ref(), finalizer::IN_USE).await?;
        return Ok(Outcome::Settled);
    }
    if finalizers::add(ctx, intent.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let (verdict, reason, message) = match hardware::demands(name, &intent.spec) {
        Ok(_) => (ReadyState::Ready, Reason::Valid.as_str(), String::new()),
        Err(fault) => (ReadyState::Stalled, Reason::RequirementInvalid.as_str(), fault.message),
    };
    let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason, message);
    status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
    debug_assert!(status.observed_generation() == Some(generation));
    status::write(ctx, intent.as_ref(), intent.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(holders.again()))
}
