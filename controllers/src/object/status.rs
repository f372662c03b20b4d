//! Writes statuses on the hub where they differ, and sets the conditions that all kinds have.

use emco_crds::Conditioned;
use emco_crds::conditions::types;
use emco_engine::conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::PartialObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::{ApiError, ApiResult, Content, HUB_MANAGER, Method, Request, parse};
use crate::object::context::HubContext;
use crate::object::meta::path;
use crate::object::{failing, transitions};

/// Writes a status that differs from the stored one, with the resourceVersion that was read, and reports a transition. While the
/// reconcile of the object fails again and again, its condition Ready says so instead. Returns whether it wrote.
pub async fn write<K, S>(ctx: &HubContext, object: &K, old: Option<&S>, new: &S) -> ApiResult<bool>
where
    K: Resource<DynamicType = ()>,
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
    K: Resource<DynamicType = ()>,
    S: Serialize,
{
    ctx.hub().send(patch(object, status)?.metadata()).await.map(drop)
}

/// The same, with the object as it is stored then.
pub async fn stored<K, S>(ctx: &HubContext, object: &K, status: &S) -> ApiResult<Value>
where
    K: Resource<DynamicType = ()>,
    S: Serialize,
{
    ctx.hub().send(patch(object, status)?).await
}

/// The request that replaces a status as a whole, if the object still has the resourceVersion that it was read with: 409 where it has
/// another one. The spec does not travel with it: that of a shard has a row for each of its clusters. A merge would leave fields which this
/// version of the program does not know.
pub fn patch<K, S>(object: &K, status: &S) -> ApiResult<Request>
where
    K: Resource<DynamicType = ()>,
    S: Serialize,
{
    let path = path(object).then("status");
    let Some(version) = object.meta().resource_version.as_deref() else {
        return Err(ApiError::Protocol(format!("{path} cannot be written without a resourceVersion")));
    };
    let operations = json!([
        {"op": "add", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/status", "value": serde_json::to_value(status).map_err(unwritable)?},
    ]);
    Ok(Request::new(Method::Patch, path)
        .query("fieldManager", HUB_MANAGER)
        .body(Content::JsonPatch, &operations))
}

/// The object with this status as it is stored now, by the answer to a request for [`Request::metadata`] alone: all else is that of the
/// resourceVersion which was asked for.
pub fn written<K: Resource<DynamicType = ()>>(mut object: K, answer: Value) -> ApiResult<K> {
    let stored: PartialObjectMeta<K> = parse(path(&object), answer)?;
    *object.meta_mut() = ObjectMeta { managed_fields: None, ..stored.metadata };
    Ok(object)
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
