//! Binds our rights in namespaces that we own. Secrets are readable to the operator only where a `RoleBinding` says so,
//! and it makes these itself: in the namespaces of Projects and providers, and nowhere else.
//!
//! Which namespaces have their binding is remembered, by the namespace's UID: a reconcile that changes nothing asks for nothing. It is
//! forgotten when the binding is given back, and when a read is refused although it should be there: then it is made again.
//!
//! The hub heeds a binding a moment after it has it. A read that is refused in that moment is tried again, and no failure.
//!
//! The binding carries a finalizer. Deleting a namespace removes plain bindings at once, and the kubeconfigs that the removal
//! of deployments needs could not be read any more; a binding that is held still authorises.

use std::time::Duration;

use emco_crds::names::{finalizer, object};
use emco_engine::path::ApiPath;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::account::{Account, Bound};
use crate::api::{ApiError, ApiResult, ApiServerExt};
use crate::object::context::HubContext;
use crate::object::meta;
use crate::tenancy::owned_namespace;

/// Name of the binding in each owned namespace.
const BINDING: &str = "emco-operator";
/// How long the hub may take to heed a binding, or we to make that of a new owner.
const HEEDED: Duration = Duration::from_secs(10);

fn collection(namespace: &str) -> ApiPath {
    ApiPath::new("/apis/rbac.authorization.k8s.io/v1/namespaces").then(namespace).then("rolebindings")
}

/// Gives us the rights of the `ClusterRole` `emco-namespace-access` in the namespace of this UID. One that is there is left as it
/// is: who may write it may also read the Secrets.
pub async fn ensure(ctx: &HubContext, namespace: &str, uid: &str) -> ApiResult<()> {
    let Some(account) = &ctx.account else { return Ok(()) };
    if account.bound.lock().get(namespace).is_some_and(|known| known.uid == uid) {
        return Ok(());
    }
    let made = make(ctx, account, namespace).await?.then(Instant::now);
    account.bound.lock().insert(namespace.to_owned(), Bound { uid: uid.to_owned(), made });
    // What could not be written there before.
    ctx.stores.cluster_maps.enqueue_all(namespace);
    Ok(())
}

/// True of a refusal in a namespace for a right that is on its way: that of a binding that was just made, or of one that is made any moment,
/// since the owner of the namespace is new.
pub fn comes(ctx: &HubContext, namespace: &str, error: &ApiError) -> bool {
    let Some(account) = ctx.account.as_ref().filter(|_| error.code() == 403) else { return false };
    match account.bound.lock().get(namespace) {
        Some(bound) => bound.made.is_some_and(|made| made.elapsed() < HEEDED),
        None => has_new_owner(ctx, namespace),
    }
}

/// The same of a request for an object: where that is new, the owner of its namespace may come after it.
pub fn comes_for<K: Resource>(ctx: &HubContext, object: &K, error: &ApiError) -> bool {
    let forbidden = ctx.account.is_some() && error.code() == 403;
    comes(ctx, meta::namespace(object), error) || forbidden && is_new(ctx, object.meta())
}

fn has_new_owner(ctx: &HubContext, namespace: &str) -> bool {
    let (projects, providers) = (ctx.stores.projects.sorted(), ctx.stores.providers.sorted());
    projects.iter().any(|project| project.owned_namespace() == namespace && is_new(ctx, &project.metadata))
        || providers.iter().any(|provider| {
            owned_namespace::of_provider(provider) == namespace && is_new(ctx, &provider.metadata)
        })
}

fn is_new(ctx: &HubContext, meta: &ObjectMeta) -> bool {
    let created = meta.creation_timestamp.as_ref();
    // Also where the hub's clock is far ahead, a right that does not come is a failure some time.
    created.is_some_and(|created| ctx.now().duration_since(created.0).unsigned_abs() < HEEDED)
}

/// A read in a namespace failed. If it was refused although we gave ourselves the right, somebody took that away: it is made again,
/// and the next try succeeds.
pub async fn refused(ctx: &HubContext, namespace: &str, error: &ApiError) {
    let Some(account) = &ctx.account else { return };
    if error.code() != 403 || comes(ctx, namespace, error) {
        return;
    }
    if account.bound.lock().remove(namespace).is_none() {
        return;
    }
    tracing::warn!(namespace, "the RoleBinding {BINDING} is gone from a namespace of EMCO: it is made again");
    if let Err(error) = make(ctx, account, namespace).await {
        tracing::warn!(namespace, %error, "the RoleBinding {BINDING} cannot be made");
    }
}

/// Makes the binding where it is not there; whether it was made.
async fn make(ctx: &HubContext, account: &Account, namespace: &str) -> ApiResult<bool> {
    if ctx.hub().get_opt(collection(namespace).then(BINDING)).await?.is_some() {
        return Ok(false);
    }
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": BINDING, "namespace": namespace, "finalizers": [finalizer::IN_USE]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": object::NAMESPACE_ACCESS},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    });
    match ctx.hub().create(collection(namespace), &binding).await {
        Err(error) if error.already_exists() => Ok(false),
        made => made.map(|_| true),
    }
}

/// Gives the rights back.
pub async fn release(ctx: &HubContext, namespace: &str) -> ApiResult<()> {
    let Some(account) = &ctx.account else { return Ok(()) };
    account.bound.lock().remove(namespace);
    let path = collection(namespace).then(BINDING);
    let Some(live) = ctx.hub().get_opt(&path).await? else { return Ok(()) };
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    let held =
        live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if held {
        let patch =
            json!({"metadata": {"finalizers": null, "resourceVersion": text("/metadata/resourceVersion")}});
        gone_is_fine(ctx.hub().merge(&path, &patch).await)?;
    }
    if text("/metadata/deletionTimestamp").is_none() {
        ctx.hub().delete(&path, text("/metadata/uid"), None).await?;
    }
    Ok(())
}

fn gone_is_fine(result: ApiResult<Value>) -> Result<(), ApiError> {
    match result {
        Err(error) if !error.lacks(BINDING) => Err(error),
        _ => Ok(()),
    }
}
