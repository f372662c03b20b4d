//! Reconciles every `CompositeProfile`: whether its sources are there and readable, and what uses them.

use emco_crds::names::finalizer;
use emco_crds::{CompositeProfile, Conditioned, DeploymentIntentGroup};
use emco_engine::snapshot::{Source, SourceKey};
use emco_engine::{holders, resolve, unsupported};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::reconcile::sources;
use crate::triggers::Change;

impl Controlled for CompositeProfile {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments with it look again, and the project that counts it.
    fn listener(_: &Reach) -> Listener<Self> {
        Box::new(|reach, Change { object: profile, .. }| {
            let names = |dig: &DeploymentIntentGroup| {
                dig.spec
                    .composite_profile_ref
                    .as_ref()
                    .is_some_and(|named| named.name == meta::name(*profile))
            };
            reach.triggers.referenced(&reach.ctx.stores, meta::namespace(*profile), names);
        })
    }
}

/// Brings one profile to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(profile) = ctx.stores.profiles.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = profile.status.clone().unwrap_or_default();
    let generation = meta::generation(profile.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let mut holders = Holders::shown(holders::profile(Some(namespace), name, digs.iter().map(AsRef::as_ref)));
    if meta::deleting(profile.as_ref()) {
        let of = |digs: &[DeploymentIntentGroup]| holders::profile(Some(namespace), name, digs);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    let waits = if meta::deleting(profile.as_ref()) { holders::waits_for(&holders.names) } else { None };
    if meta::deleting(profile.as_ref()) && waits.is_none() {
        finalizers::remove(ctx, profile.as_ref(), finalizer::IN_USE).await?;
        return Ok(Outcome::Settled);
    }
    if finalizers::add(ctx, profile.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let found = sources::read(ctx, namespace, &resolve::sources(&profile)).await?;
    let (verdict, reason, message) = judge(&profile, &found);
    let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason, message);
    status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
    debug_assert!(status.observed_generation() == Some(generation));
    status::write(ctx, profile.as_ref(), profile.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(holders.again()))
}

fn judge(
    profile: &Arc<CompositeProfile>,
    found: &BTreeMap<SourceKey, sources::Read>,
) -> (ReadyState, &'static str, String) {
    if let Some(sentence) = unsupported::check_profile(&profile.spec) {
        return (ReadyState::Stalled, "NotSupportedYet", sentence);
    }
    for (key, read) in found {
        let SourceKey { kind, name, key } = key;
        match &read.source {
            Source::Found(_) => {}
            Source::NotAName => {
                let why = sources::impossible(kind, name, key).unwrap_or_default();
                let message = format!("{why}: change spec.apps");
                let reason = if kind == "Secret" { "SecretNotFound" } else { "ConfigMapNotFound" };
                return (ReadyState::Stalled, reason, message);
            }
            Source::ObjectMissing if kind == "Secret" => {
                return (
                    ReadyState::Waiting,
                    "SecretNotFound",
                    format!("Secret {name} does not exist: create it with the key {key}"),
                );
            }
            Source::ObjectMissing => {
                let message = format!("ConfigMap {name} does not exist: create it with the key {key}");
                return (ReadyState::Waiting, "ConfigMapNotFound", message);
            }
            Source::KeyMissing => {
                let message = format!("{kind} {name} has no key {key}: add it, or name another key");
                return (ReadyState::Waiting, "KeyNotFound", message);
            }
        }
    }
    for (app, from) in
        profile.spec.apps.iter().flat_map(|app| app.values_from.iter().map(move |from| (app, from)))
    {
        let key = SourceKey {
            kind: from.kind.as_str().to_owned(),
            name: from.name.clone(),
            key: from.key().to_owned(),
        };
        let Some(Source::Found(text)) = found.get(&key).map(|read| &read.source) else { continue };
        let place = format!("{} {} key {}", key.kind, key.name, key.key);
        match emco_helm::yaml::to_json(text.as_bytes()) {
            Ok(serde_json::Value::Object(_) | serde_json::Value::Null) => {}
            Ok(_) => {
                let message =
                    format!("spec.apps[{}].valuesFrom: {place} is not a mapping of values", app.app);
                return (ReadyState::Stalled, "ValuesInvalid", message);
            }
            // What a Secret holds must not be quoted.
            Err(_) if key.kind == "Secret" => {
                let message = format!("spec.apps[{}].valuesFrom: {place} is not YAML", app.app);
                return (ReadyState::Stalled, "ValuesInvalid", message);
            }
            Err(error) => {
                let message = format!("spec.apps[{}].valuesFrom: {place} is not YAML: {error}", app.app);
                return (ReadyState::Stalled, "ValuesInvalid", message);
            }
        }
    }
    (ReadyState::Ready, "Valid", String::new())
}
