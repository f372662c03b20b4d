//! Small writes to objects of the hub: status when it differs, finalizers, events on transitions.

use std::collections::BTreeSet;

use emco_crds::Conditioned;
use emco_crds::conditions::types;
use emco_engine::conditions;
use kube::Resource;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::{ApiError, ApiResult, ApiServerExt, HUB_MANAGER};
use crate::context::Context;

/// Longest note of an Event, in bytes (the API server takes 1,024).
const LONGEST_NOTE: usize = 1000;

/// URL path of a collection.
pub fn collection<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> String {
    K::url_path(&(), namespace)
}

/// URL path of an object.
pub fn path<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let meta = object.meta();
    format!("{}/{}", K::url_path(&(), meta.namespace.as_deref()), meta.name.as_deref().unwrap_or_default())
}

/// Name and generation, with defaults that never occur in stored objects.
pub fn name<K: Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

/// Namespace; empty for cluster-scoped objects.
pub fn namespace<K: Resource>(object: &K) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

/// UID.
pub fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// `metadata.resourceVersion` as a number; 0 where it has none. Of one object, the larger one is newer.
pub fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// `metadata.generation`.
pub fn generation<K: Resource>(object: &K) -> i64 {
    object.meta().generation.unwrap_or_default()
}

/// Whether it is being deleted.
pub fn deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// An annotation.
pub fn annotation<'a, K: Resource>(object: &'a K, key: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether it has a finalizer.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|f| f == finalizer)
}

/// Adds a finalizer where it is missing. Returns whether it wrote.
pub async fn add_finalizer<K: Resource<DynamicType = ()>>(
    ctx: &Context,
    object: &K,
    finalizer: &str,
) -> ApiResult<bool> {
    if has_finalizer(object, finalizer) || deleting(object) {
        return Ok(false);
    }
    let mut all: Vec<&str> = object.meta().finalizers.iter().flatten().map(String::as_str).collect();
    all.push(finalizer);
    set_finalizers(ctx, object, &all).await?;
    Ok(true)
}

/// Takes a finalizer away where it is. Returns whether it wrote.
pub async fn remove_finalizer<K: Resource<DynamicType = ()>>(
    ctx: &Context,
    object: &K,
    finalizer: &str,
) -> ApiResult<bool> {
    if !has_finalizer(object, finalizer) {
        return Ok(false);
    }
    let all: Vec<&str> =
        object.meta().finalizers.iter().flatten().map(String::as_str).filter(|f| *f != finalizer).collect();
    match set_finalizers(ctx, object, &all).await {
        Err(error) if error.is_not_found() => Ok(true),
        other => other.map(|()| true),
    }
}

async fn set_finalizers<K: Resource<DynamicType = ()>>(
    ctx: &Context,
    object: &K,
    all: &[&str],
) -> ApiResult<()> {
    let patch = json!({"metadata": {"finalizers": all, "resourceVersion": object.meta().resource_version}});
    ctx.hub().merge(&path(object), &patch).await.map(|_| ())
}

/// Writes a status that differs from the stored one, with the resourceVersion that was read; tells in an Event when the
/// condition Ready changed its status or reason. Returns whether it wrote.
pub async fn write_status<K, S>(ctx: &Context, object: &K, old: Option<&S>, new: &S) -> ApiResult<bool>
where
    K: Resource<DynamicType = ()> + Serialize,
    S: Serialize + Conditioned,
{
    let before = old.map(serde_json::to_value).transpose().map_err(unwritable)?;
    if before.as_ref() == Some(&serde_json::to_value(new).map_err(unwritable)?) {
        return Ok(false);
    }
    replace_status(ctx, object, new).await?;
    let told = |status: &S| status.condition(types::READY).map(|c| (c.status.clone(), c.reason.clone()));
    if old.and_then(told) != told(new)
        && let Some(ready) = new.condition(types::READY)
    {
        let warning =
            new.is_true(types::STALLED) || (ready.status == "False" && !new.is_true(types::RECONCILING));
        event(ctx, object, warning, &ready.reason, &ready.message).await;
    }
    Ok(true)
}

/// Writes a status as it is, with the resourceVersion that was read.
pub async fn replace_status<K, S>(ctx: &Context, object: &K, status: &S) -> ApiResult<()>
where
    K: Resource<DynamicType = ()> + Serialize,
    S: Serialize,
{
    let after = serde_json::to_value(status).map_err(unwritable)?;
    let mut body = serde_json::to_value(object).map_err(unwritable)?;
    if let Some(map) = body.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        map.insert("kind".to_owned(), json!(K::kind(&())));
        map.insert("status".to_owned(), after);
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    ctx.hub().replace(&format!("{}/status", path(object)), &body).await?;
    Ok(())
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn unwritable(error: serde_json::Error) -> ApiError {
    ApiError::Protocol(format!("the status cannot be written as JSON: {error}"))
}

/// Events that were written in this second. An Event says which second it is of: what changes to and fro within one is told
/// once, and a second time the hub would refuse it.
#[derive(Default)]
pub struct Told(Mutex<(String, BTreeSet<String>)>);

impl Told {
    fn is_first(&self, now: &str, name: &str) -> bool {
        let mut told = self.0.lock();
        if told.0 != now {
            *told = (now.to_owned(), BTreeSet::new());
        }
        told.1.insert(name.to_owned())
    }
}

/// Writes an Event. A lost Event is no failure: what it says is in the status too.
pub async fn event<K: Resource<DynamicType = ()>>(
    ctx: &Context,
    object: &K,
    warning: bool,
    reason: &str,
    note: &str,
) {
    let now = ctx.now().to_string();
    let note = conditions::truncate(if note.is_empty() { reason } else { note }, LONGEST_NOTE);
    let digest = hex::encode(Sha256::digest(format!("{}\0{reason}\0{note}\0{now}", uid(object))));
    let namespace = object.meta().namespace.as_deref().unwrap_or("default");
    let own = format!("{}.{}", name(object), digest.get(..16).unwrap_or_default());
    if !ctx.told.is_first(&now, &own) {
        return;
    }
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": own, "namespace": namespace},
        "involvedObject": {
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": name(object),
            "namespace": object.meta().namespace, "uid": uid(object),
        },
        "type": if warning { "Warning" } else { "Normal" },
        "reason": reason, "message": note, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": HUB_MANAGER}, "reportingComponent": HUB_MANAGER, "reportingInstance": HUB_MANAGER,
    });
    if let Err(error) = ctx.hub().create(&format!("/api/v1/namespaces/{namespace}/events"), &body).await {
        tracing::debug!(%error, reason, "an Event was not written");
    }
}

/// What a condition Ready says, and with it Reconciling and Stalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Ready,
    /// Something that may come by itself is waited for.
    Waiting,
    /// Only an edit helps.
    Stalled,
}

/// States Ready, Reconciling and Stalled in one go, and the generation all of it speaks of.
pub fn verdict<S: Conditioned>(
    ctx: &Context,
    status: &mut S,
    generation: i64,
    verdict: &Verdict,
    reason: &str,
    message: &str,
) {
    let now = ctx.now();
    status.set_observed_generation(generation);
    let list = status.conditions_mut();
    let ready = if *verdict == Verdict::Ready { "True" } else { "False" };
    conditions::set(list, types::READY, ready, reason, message, generation, now);
    for (type_, on) in [(types::RECONCILING, Verdict::Waiting), (types::STALLED, Verdict::Stalled)] {
        if *verdict == on {
            conditions::set(list, type_, "True", reason, message, generation, now);
        } else {
            conditions::remove(list, type_);
        }
    }
}

/// States or takes away the condition `InUse` of an object whose deletion waits for its holders.
pub fn held<S: Conditioned>(ctx: &Context, status: &mut S, generation: i64, message: Option<&str>) {
    let now = ctx.now();
    match message {
        Some(message) => {
            conditions::set(
                status.conditions_mut(),
                types::IN_USE,
                "True",
                "HeldBy",
                message,
                generation,
                now,
            );
        }
        None => {
            conditions::remove(status.conditions_mut(), types::IN_USE);
        }
    }
}
