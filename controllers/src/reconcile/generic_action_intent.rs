//! Reconciles every `GenericActionIntent`: whether its actions can be carried out at all, and which deployments list it.
//!
//! What it does to a deployment is said by that deployment, for one intent may serve many.

use std::collections::BTreeMap;

use emco_crds::generic_action_intent::Action;
use emco_crds::names::finalizer;
use emco_crds::reasons::GenericActionIntentReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup, GenericActionIntent};
use emco_engine::snapshot::{Source, SourceKey};
use emco_engine::{act, holders, resolve};
use futures::future::BoxFuture;

use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::reconcile::sources;
use crate::triggers::IntentChanged;

impl Controlled for GenericActionIntent {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments that list it look again.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = IntentChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                let (namespace, name) = (meta::namespace(change.object), meta::name(change.object));
                reach.triggers.intent(&reach.ctx.stores, namespace, name);
            }
        })
    }
}

/// Brings one intent to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(intent) = ctx.stores.intents.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = intent.status.clone().unwrap_or_default();
    let generation = meta::generation(intent.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let mut holders = Holders::shown(holders::intent(Some(namespace), name, digs.iter().map(AsRef::as_ref)));
    if meta::deleting(intent.as_ref()) {
        let of = |digs: &[DeploymentIntentGroup]| holders::intent(Some(namespace), name, digs);
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
    let found = sources::read(ctx, namespace, &resolve::intent_sources(&intent)).await?;
    let (verdict, reason, message) = judge(&intent, &found);
    let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason, message);
    status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
    debug_assert!(status.observed_generation() == Some(generation));
    status::write(ctx, intent.as_ref(), intent.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(holders.again()))
}

fn judge(
    intent: &GenericActionIntent,
    found: &BTreeMap<SourceKey, sources::Read>,
) -> (ReadyState, &'static str, String) {
    let name = meta::name(intent);
    for action in &intent.spec.actions {
        let text = match text(action, found) {
            Ok(text) => text,
            Err((verdict, reason, what)) => {
                let message = format!("spec.actions[{}].add.from: {what}", action.name);
                return (verdict, reason.as_str(), message);
            }
        };
        if let Err(act::Fault { reason, message }) = act::read(name, action, text) {
            return (ReadyState::Stalled, reason.as_str(), message);
        }
    }
    (ReadyState::Ready, Reason::Valid.as_str(), String::new())
}

/// What `add.from` of an action found, if it has one.
fn text<'a>(
    action: &Action,
    found: &'a BTreeMap<SourceKey, sources::Read>,
) -> Result<Option<&'a str>, (ReadyState, Reason, String)> {
    let Some(from) = action.add.as_ref().and_then(|add| add.from.as_ref()) else { return Ok(None) };
    let wanted = resolve::source(from);
    let SourceKey { kind, name, key } = &wanted;
    let missing = if kind == "Secret" { Reason::SecretNotFound } else { Reason::ConfigMapNotFound };
    Err(match found.get(&wanted).map(|read| &read.source) {
        Some(Source::Found(text)) => return Ok(Some(text)),
        Some(Source::NotAName) => {
            let why = sources::impossible(kind, name, key).unwrap_or_default();
            (ReadyState::Stalled, missing, format!("{why}: change the field"))
        }
        Some(Source::KeyMissing) => {
            let what = format!("{kind} {name} has no key {key}: add it, or name another key");
            (ReadyState::Waiting, Reason::KeyNotFound, what)
        }
        Some(Source::ObjectMissing) | None => {
            let what = format!("{kind} {name} does not exist: create it with the key {key}");
            (ReadyState::Waiting, missing, what)
        }
    })
}
