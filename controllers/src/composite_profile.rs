//! CompositeProfile in; whether its sources are there and readable, and who holds it, out.

use emco_crds::names::finalizer;
use emco_crds::{CompositeProfile, Conditioned};
use emco_engine::snapshot::{Source, SourceKey};
use emco_engine::{holders, resolve, unsupported};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::{Context, Outcome, Reconciled};
use crate::objects::{self, Verdict};
use crate::sources;
use crate::stores::StoreExt;

/// Brings one profile to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(profile) = ctx.stores.profiles.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = profile.status.clone().unwrap_or_default();
    let generation = objects::generation(profile.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let holders = holders::profile(Some(namespace), name, digs.iter().map(AsRef::as_ref));
    status.in_use = holders::in_use(&holders);
    let waits = if objects::deleting(profile.as_ref()) { holders::waits_for(&holders) } else { None };
    if objects::deleting(profile.as_ref()) && waits.is_none() {
        objects::remove_finalizer(ctx, profile.as_ref(), finalizer::IN_USE).await?;
        return Ok(Outcome::Settled);
    }
    if objects::add_finalizer(ctx, profile.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    objects::held(ctx, &mut status, generation, waits.as_deref());
    let found = sources::read(ctx, namespace, &resolve::sources(&profile)).await?;
    let (verdict, reason, message) = judge(&profile, &found);
    objects::verdict(ctx, &mut status, generation, &verdict, reason, &message);
    debug_assert!(status.observed_generation() == Some(generation));
    objects::write_status(ctx, profile.as_ref(), profile.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}

fn judge(
    profile: &Arc<CompositeProfile>,
    found: &BTreeMap<SourceKey, sources::Read>,
) -> (Verdict, &'static str, String) {
    if let Some(sentence) = unsupported::check_profile(&profile.spec) {
        return (Verdict::Stalled, "NotSupportedYet", sentence);
    }
    for (key, read) in found {
        let SourceKey { kind, name, key } = key;
        match &read.source {
            Source::Found(_) => {}
            Source::ObjectMissing if kind == "Secret" => {
                return (
                    Verdict::Waiting,
                    "SecretNotFound",
                    format!("Secret {name} does not exist: create it with the key {key}"),
                );
            }
            Source::ObjectMissing => {
                let message = format!("ConfigMap {name} does not exist: create it with the key {key}");
                return (Verdict::Waiting, "ConfigMapNotFound", message);
            }
            Source::KeyMissing => {
                let message = format!("{kind} {name} has no key {key}: add it, or name another key");
                return (Verdict::Waiting, "KeyNotFound", message);
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
                return (Verdict::Stalled, "ValuesInvalid", message);
            }
            // What a Secret holds must not be quoted.
            Err(_) if key.kind == "Secret" => {
                let message = format!("spec.apps[{}].valuesFrom: {place} is not YAML", app.app);
                return (Verdict::Stalled, "ValuesInvalid", message);
            }
            Err(error) => {
                let message = format!("spec.apps[{}].valuesFrom: {place} is not YAML: {error}", app.app);
                return (Verdict::Stalled, "ValuesInvalid", message);
            }
        }
    }
    (Verdict::Ready, "Valid", String::new())
}
