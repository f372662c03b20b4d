//! Writes statuses on the hub where they differ, and sets the conditions that all kinds have.

use emco_crds::Conditioned;
use emco_crds::conditions::types;
use emco_engine::conditions;
use kube::Resource;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::{ApiError, ApiResult, ApiServerExt};
use crate::object::context::HubContext;
use crate::object::meta::path;
use crate::object::{failing, transitions};

/// Writes a status that differs from the stored one, with the resourceVersion that was read, and reports a transition. While the
/// reconcile of the object fails again and again, its condition Ready says so instead. Returns whether it wrote.
pub async fn write<K, S>(ctx: &HubContext, object: &K, old: Option<&S>, new: &S) -> ApiResult<bool>
where
    K: Resource<DynamicType = ()> + Serialize,
    S: Serialize + Conditioned + Clone,
{
    let failing = failing::with_failure(ctx, object, new);
    let new = failing.as_ref().unwrap_or(new);
    let before = old.map(serde_json::to_value).transpose().map_err(unwritable)?;
    if before.as_ref() == Some(&serde_json::to_value(new).map_err(unwritable)?) {
        return Ok(false);
    }
    replace(ctx, object, new).await?;
    transitions::tell(ctx, object, old, new).await;
    Ok(true)
}

/// Writes a status as it is, with the resourceVersion that was read.
pub async fn replace<K, S>(ctx: &HubContext, object: &K, status: &S) -> ApiResult<()>
where
    K: Resource<DynamicType = ()> + Serialize,
    S: Serialize,
{
    stored(ctx, object, status).await.map(drop)
}

/// The same, with the object as it is stored then.
pub async fn stored<K, S>(ctx: &HubContext, object: &K, status: &S) -> ApiResult<Value>
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
    ctx.hub().replace(path(object).then("status"), &body).await
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn unwritable(error: serde_json::Error) -> ApiError {
    ApiError::Protocol(format!("the status cannot be written as JSON: {error}"))
}

/// What the conditions Ready, Reconciling and Stalled say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// As it should be.
    Ready,
    /// Waits for something that may come by itself.
    Waiting,
    /// Only an edit helps.
    Stalled,
}

/// Sets Ready, Reconciling and Stalled, and the generation they are about.
pub fn set_ready<S: Conditioned>(
    ctx: &HubContext,
    status: &mut S,
    generation: i64,
    state: &ReadyState,
    reason: &str,
    message: &str,
) {
    set_ready_because(ctx, status, generation, state, reason, message, message);
}

/// The same where Reconciling or Stalled says less than Ready: `why` alone.
pub fn set_ready_because<S: Conditioned>(
    ctx: &HubContext,
    status: &mut S,
    generation: i64,
    state: &ReadyState,
    reason: &str,
    message: &str,
    why: &str,
) {
    let now = ctx.now();
    status.set_observed_generation(generation);
    let list = status.conditions_mut();
    let ready = if *state == ReadyState::Ready { "True" } else { "False" };
    conditions::set(list, types::READY, ready, reason, message, generation, now);
    for (type_, on) in [(types::RECONCILING, ReadyState::Waiting), (types::STALLED, ReadyState::Stalled)] {
        if *state == on {
            conditions::set(list, type_, "True", reason, why, generation, now);
        } else {
            conditions::remove(list, type_);
        }
    }
}

/// Reason of an object whose deletion waits.
pub const TERMINATING: &str = "Terminating";

/// Reason and message of the condition Ready while the deletion of the object waits: its state besides is in the message.
pub fn terminating(
    waits: Option<&str>,
    state: &ReadyState,
    reason: &'static str,
    message: String,
) -> (&'static str, String) {
    let Some(waits) = waits else { return (reason, message) };
    let stands = match (state, message.is_empty()) {
        (ReadyState::Ready, true) => return (TERMINATING, waits.to_owned()),
        (ReadyState::Ready, false) => message,
        (_, true) => reason.to_owned(),
        (_, false) => format!("{reason}: {message}"),
    };
    (TERMINATING, format!("{stands}; {waits}"))
}

/// Sets or removes the condition `InUse` of an object whose deletion waits for the objects that use it.
pub fn set_in_use<S: Conditioned>(ctx: &HubContext, status: &mut S, generation: i64, message: Option<&str>) {
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
