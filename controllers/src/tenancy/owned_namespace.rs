//! The namespace that a Project or ClusterProvider owns: made, adopted or refused, and removed with its owner.

use emco_crds::names::{annotation, label};
use emco_crds::{AppContext, Cluster, ClusterProvider, DeploymentIntentGroup, LogicalCloud, SyncShard};
use emco_engine::path::ApiPath;
use kube::Resource;
use serde_json::{Value, json};

use crate::api::{ApiError, ApiResult, ApiServerExt, Method, Request, pages};
use crate::object::context::HubContext;
use crate::object::meta;
use crate::stores::NamespaceMeta;
use crate::tenancy::namespace_access;

/// Why a namespace is not the owner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `NamespaceTaken` or `NamespaceNotOurs`.
    pub reason: &'static str,
    /// A sentence that says what to do.
    pub message: String,
}

/// Who owns a namespace of the hub.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// `Project` or `ClusterProvider`.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The label that says so.
    pub label: &'a str,
}

/// Makes the namespace or finds that it is the owner's.
pub async fn ensure(ctx: &HubContext, namespace: &str, owner: Owner<'_>) -> ApiResult<Result<(), Refused>> {
    if let Some(known) = ctx.stores.namespaces.named("", namespace) {
        let labels = known.meta().labels.clone().unwrap_or_default();
        let judged = judge(namespace, owner, |key| labels.get(key).cloned());
        if judged.is_ok() {
            if meta::deleting(known.as_ref()) {
                let_go_of_an_empty_one(ctx, namespace).await?;
            } else {
                namespace_access::ensure(ctx, namespace, meta::uid(known.as_ref())).await?;
            }
        }
        return Ok(judged);
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "labels": {(owner.label): owner.name},
            "annotations": {(annotation::MADE_BY): ctx.installation.id},
        },
    });
    match ctx.hub().create("/api/v1/namespaces", &object).await {
        Ok(made) => {
            let uid = text(&made, &["metadata", "uid"]).unwrap_or_default();
            namespace_access::ensure(ctx, namespace, &uid).await?;
            Ok(Ok(()))
        }
        Err(error) if error.already_exists() => {
            let live = ctx.hub().get_opt(ApiPath::namespace(namespace)).await?.unwrap_or_default();
            Ok(judge(namespace, owner, |key| text(&live, &["metadata", "labels", key])))
        }
        Err(error) => Err(error),
    }
}

fn text(value: &Value, path: &[&str]) -> Option<String> {
    path.iter().try_fold(value, |at, part| at.get(part))?.as_str().map(str::to_owned)
}

fn judge(namespace: &str, owner: Owner<'_>, labels: impl Fn(&str) -> Option<String>) -> Result<(), Refused> {
    for (key, kind) in [(label::PROJECT, "Project"), (label::PROVIDER, "ClusterProvider")] {
        match labels(key) {
            Some(name) if key == owner.label && name == owner.name => return Ok(()),
            Some(name) => {
                return Err(Refused {
                    reason: "NamespaceTaken",
                    message: format!(
                        "namespace {namespace} belongs to {kind} {name}: give {} {} another spec.namespace in a new object",
                        owner.kind, owner.name
                    ),
                });
            }
            None => {}
        }
    }
    Err(Refused {
        reason: "NamespaceNotOurs",
        message: format!(
            "namespace {namespace} exists and does not say that it is for {} {}: kubectl label namespace {namespace} {}={}",
            owner.kind, owner.name, owner.label, owner.name
        ),
    })
}

/// Whether a namespace says that it is the owner's, as the hub has it now. What is in one that does not is not the owner's.
pub async fn is_of(ctx: &HubContext, namespace: &str, owner: Owner<'_>) -> ApiResult<bool> {
    let live = ctx.hub().get_opt(ApiPath::namespace(namespace)).await?;
    Ok(live.is_some_and(|live| says(&live, owner)))
}

fn says(live: &Value, owner: Owner<'_>) -> bool {
    text(live, &["metadata", "labels", owner.label]).as_deref() == Some(owner.name)
}

/// Deletes the namespace where this installation made it. Whoever calls it has asked the hub what is in use there. `true` when nothing is left to wait for.
pub async fn remove(ctx: &HubContext, namespace: &str, owner: Owner<'_>) -> ApiResult<bool> {
    let path = ApiPath::namespace(namespace);
    let Some(live) = ctx.hub().get_opt(&path).await? else { return Ok(true) };
    let ours = text(&live, &["metadata", "annotations", annotation::MADE_BY]).as_deref()
        == Some(ctx.installation.id.as_str())
        && says(&live, owner);
    if says(&live, owner) {
        namespace_access::release(ctx, namespace).await?;
    }
    if !ours {
        return Ok(true);
    }
    if live.pointer("/metadata/deletionTimestamp").is_none() {
        let uid = text(&live, &["metadata", "uid"]);
        match ctx.hub().delete(&path, uid.as_deref(), None).await {
            Ok(_) => {}
            Err(ApiError::Status { code: 409, .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(ctx.hub().get_opt(&path).await?.is_none())
}

/// Somebody deletes a namespace under its owner: our rights in it stay until nothing is left that needs them. The hub is asked
/// last, for watches may be behind.
async fn let_go_of_an_empty_one(ctx: &HubContext, namespace: &str) -> ApiResult<()> {
    let stores = &ctx.stores;
    let needed = !stores.clusters.within(namespace).is_empty()
        || !stores.digs.within(namespace).is_empty()
        || !stores.clouds.within(namespace).is_empty()
        || !stores.contexts.within(namespace).is_empty()
        || !stores.shards.within(namespace).is_empty();
    if needed {
        return Ok(());
    }
    let within = Some(namespace);
    for collection in [
        meta::collection::<Cluster>(within),
        meta::collection::<DeploymentIntentGroup>(within),
        meta::collection::<LogicalCloud>(within),
        meta::collection::<AppContext>(within),
        meta::collection::<SyncShard>(within),
    ] {
        let mut empty = true;
        pages(ctx.hub(), Request::new(Method::Get, collection).metadata(), |_| empty = false).await?;
        if !empty {
            return Ok(());
        }
    }
    namespace_access::release(ctx, namespace).await
}

/// Whether a namespace is there and being deleted: nothing can be made in it.
pub fn ends(ctx: &HubContext, namespace: &str) -> bool {
    ctx.stores.namespaces.named("", namespace).is_some_and(|found| meta::deleting(found.as_ref()))
}

/// The Project that owns a namespace, by the namespace's label.
pub fn project_of(ctx: &HubContext, namespace: &str) -> Option<String> {
    owner_label(ctx, namespace, label::PROJECT)
}

/// Namespace of a provider's clusters, as the provider says.
pub fn of_provider(provider: &ClusterProvider) -> &str {
    provider.spec.namespace.as_deref().unwrap_or_else(|| meta::name(provider))
}

/// The ClusterProvider that owns a namespace, by the namespace's label.
pub fn provider_of(ctx: &HubContext, namespace: &str) -> Option<String> {
    owner_label(ctx, namespace, label::PROVIDER)
}

fn owner_label(ctx: &HubContext, namespace: &str, key: &str) -> Option<String> {
    let meta: std::sync::Arc<NamespaceMeta> = ctx.stores.namespaces.named("", namespace)?;
    meta.meta().labels.as_ref()?.get(key).cloned()
}
