//! Adds and removes finalizers of objects on the hub.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::json;

use crate::api::{ApiResult, ApiServerExt};
use crate::object::context::HubContext;
use crate::object::meta::{deleting, has_finalizer, name, path};

/// Adds a finalizer where it is missing. Returns whether it wrote.
pub async fn add<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    finalizer: &str,
) -> ApiResult<bool> {
    Ok(added(ctx, object, finalizer).await?.is_some())
}

/// Adds a finalizer where it is missing. Returns the metadata that the object has then, if it wrote: the rest is as it was read.
pub async fn added<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    finalizer: &str,
) -> ApiResult<Option<ObjectMeta>> {
    if has_finalizer(object, finalizer) || deleting(object) {
        return Ok(None);
    }
    let mut all: Vec<&str> = object.meta().finalizers.iter().flatten().map(String::as_str).collect();
    all.push(finalizer);
    set(ctx, object, &all).await.map(Some)
}

/// Takes a finalizer away where it is. Returns whether it wrote.
pub async fn remove<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    finalizer: &str,
) -> ApiResult<bool> {
    if !has_finalizer(object, finalizer) {
        return Ok(false);
    }
    let all: Vec<&str> =
        object.meta().finalizers.iter().flatten().map(String::as_str).filter(|f| *f != finalizer).collect();
    match set(ctx, object, &all).await {
        Err(error) if error.lacks(name(object)) => Ok(true),
        other => other.map(|_| true),
    }
}

async fn set<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    all: &[&str],
) -> ApiResult<ObjectMeta> {
    let patch = json!({"metadata": {"finalizers": all, "resourceVersion": object.meta().resource_version}});
    let answer = ctx.hub().merge(path(object), &patch).await?;
    Ok(serde_json::from_value(answer.get("metadata").cloned().unwrap_or_default()).unwrap_or_default())
}
