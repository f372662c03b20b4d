//! Reconciles every `TrafficGroupIntent`: whether it can be carried out at all, and which deployments list it.
//!
//! Servers and clients are found where a deployment is planned: what is missing there is said by that deployment.

use emco_crds::names::finalizer;
use emco_crds::reasons::TrafficGroupIntentReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup, TrafficGroupIntent};
use emco_engine::{holders, traffic};
use futures::future::BoxFuture;

use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::IntentChanged;

impl Controlled for TrafficGroupIntent {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments that list it look again.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = IntentChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                let (namespace, name) = (meta::namespace(change.object), meta::name(change.object));
                reach.triggers.traffic(&reach.ctx.stores, namespace, name);
            }
        })
    }
}

async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(intent) = ctx.stores.traffic.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = intent.status.clone().unwrap_or_default();
    let generation = meta::generation(intent.as_ref());
    let deleting = meta::deleting(intent.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let mut holders = Holders::shown(holders::traffic(Some(namespace), name, digs.iter().map(AsRef::as_ref)));
    if deleting {
        let of = |digs: &[DeploymentIntentGroup]| holders::traffic(Some(namespace), name, digs);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    let waits = if deleting { holders::waits_for(&holders.names) } else { None };
    if deleting && waits.is_none() {
        finalizers::remove(ctx, intent.as_ref(), finalizer::IN_USE).await?;
        return Ok(Outcome::Settled);
    }
    if finalizers::add(ctx, intent.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let (verdict, reason, message) = match traffic::fault(&intent.spec) {
        None => (ReadyState::Ready, Reason::Valid, String::new()),
        Some(sentence) => (ReadyState::Stalled, Reason::ServerInvalid, sentence),
    };
    let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason.as_str(), message);
    status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
    debug_assert!(status.observed_generation() == Some(generation));
    status::write(ctx, intent.as_ref(), intent.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(holders.again()))
}
