//! Binds our rights in namespaces that we own. Secrets are readable to the operator only where a `RoleBinding` says so,
//! and it makes these itself: in the namespaces of Projects and providers, and nowhere else.
//!
//! Which namespaces have their binding is remembered, by the namespace's UID: a reconcile that changes nothing asks for nothing. It is
//! forgotten when the binding is given back, and when a read is refused although it should be there: then it is made again.
//!
//! The binding carries a finalizer. Deleting a namespace removes plain bindings at once, and the kubeconfigs that the removal
//! of deployments needs could not be read any more; a binding that is held still authorises.

use emco_crds::names::{finalizer, object};
use emco_engine::path::ApiPath;
use serde_json::{Value, json};

use crate::api::account::Account;
use crate::api::{ApiError, ApiResult, ApiServerExt};
use crate::object::context::HubContext;

/// Name of the binding in each owned namespace.
const BINDING: &str = "emco-operator";

fn collection(namespace: &str) -> ApiPath {
    ApiPath::new("/apis/rbac.authorization.k8s.io/v1/namespaces").then(namespace).then("rolebindings")
}

/// Gives us the rights of the `ClusterRole` `emco-namespace-access` in the namespace of this UID. One that is there is left as it
/// is: who may write it may also read the Secrets.
pub async fn ensure(ctx: &HubContext, namespace: &str, uid: &str) -> ApiResult<()> {
    let Some(account) = &ctx.account else { return Ok(()) };
    if account.bound.lock().get(namespace).is_some_and(|known| known == uid) {
        return Ok(());
    }
    make(ctx, account, namespace).await?;
    account.bound.lock().insert(namespace.to_owned(), uid.to_owned());
    // What could not be written there before.
    ctx.stores.cluster_maps.enqueue_all(namespace);
    Ok(())
}

/// A read in a namespace failed. If it was refused although we gave ourselves the right, somebody took that away: it is made again,
/// and the next try succeeds.
pub async fn refused(ctx: &HubContext, namespace: &str, error: &ApiError) {
    let Some(account) = &ctx.account else { return };
    if error.code() != 403 || account.bound.lock().remove(namespace).is_none() {
        return;
    }
    tracing::warn!(namespace, "the RoleBinding {BINDING} is gone from a namespace of EMCO: it is made again");
    if let Err(error) = make(ctx, account, namespace).await {
        tracing::warn!(namespace, %error, "the RoleBinding {BINDING} cannot be made");
    }
}

async fn make(ctx: &HubContext, account: &Account, namespace: &str) -> ApiResult<()> {
    if ctx.hub().get_opt(collection(namespace).then(BINDING)).await?.is_some() {
        return Ok(());
    }
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": BINDING, "namespace": namespace, "finalizers": [finalizer::IN_USE]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": object::NAMESPACE_ACCESS},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    });
    match ctx.hub().create(collection(namespace), &binding).await {
        Err(error) if !error.already_exists() => Err(error),
        _ => Ok(()),
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
