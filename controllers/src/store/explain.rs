//! Stores the explanation of a revision in ConfigMaps beside it, and removes them with it. In the project's namespace,
//! so that whoever wrote the placement can read it; whoever deletes or edits one harms nobody, and a revision never
//! waits for one.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::app_context::AppContextSpec;
use emco_crds::deployment_intent_group::status::Explain;
use emco_crds::names::label;
use emco_engine::explain::KEY;
use emco_engine::path::ApiPath;
use emco_engine::selector::LabelSelector;
use serde_json::{Value, json};

use super::context::StoreContext;
use crate::api::{ApiResult, ApiServerExt, Method, Request};
use crate::object::LogFields;
use crate::object::Owner;
use crate::tenancy::namespace_access;

/// The ConfigMaps that a revision's explanation is in; `None` where there is none.
pub fn names(context: &str, parts: &[Vec<u8>]) -> Option<Explain> {
    let name = |at: usize| {
        if at == 0 { format!("{context}-explain") } else { format!("{context}-explain-{}", at + 1) }
    };
    let config_maps: Vec<String> = (0..parts.len()).map(name).collect();
    (!config_maps.is_empty()).then_some(Explain { config_maps })
}

/// Writes what is not there yet. What cannot be written is missing, which is said in the log; an error is one that time cures.
pub async fn explain(
    ctx: &StoreContext,
    owner: &Owner,
    spec: &AppContextSpec,
    parts: &[Vec<u8>],
) -> ApiResult<()> {
    for (name, part) in spec.explain.iter().flat_map(|names| &names.config_maps).zip(parts) {
        if let Err(error) = store_one(ctx, owner, spec.revision, name, part).await {
            if namespace_access::comes(ctx, &owner.namespace, &error) {
                return Err(error);
            }
            let (revision, LogFields { project, deployment, object }) =
                (spec.revision, owner.log_fields(ctx));
            tracing::warn!(project, deployment, object, revision, name, %error, "a ConfigMap that explains a placement was not written");
        }
    }
    Ok(())
}

async fn store_one(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    name: &str,
    part: &[u8],
) -> ApiResult<()> {
    let mut labels = owner.labels();
    labels.insert(label::REVISION, revision.to_string());
    let data = json!({KEY: STANDARD.encode(part)});
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": owner.namespace, "labels": labels},
        "binaryData": data,
    });
    match ctx.hub().create(collection(owner), &object).await {
        // Made by an earlier attempt, which may have known other clusters; or somebody's own.
        Err(error) if error.already_exists() => {
            let Some(there) = ctx.hub().get_opt(path(owner, name)).await? else { return Err(error) };
            if !is_ours(&there, &owner.hash) {
                return Err(error);
            }
            if there.get("binaryData") == Some(&data) {
                return Ok(());
            }
            let patch = json!({"data": null, "binaryData": data});
            ctx.hub().merge(path(owner, name), &patch).await.map(drop)
        }
        done => done.map(drop),
    }
}

/// Deletes an owner's explanations but these.
pub async fn sweep(ctx: &StoreContext, owner: &Owner, keep: &BTreeSet<String>) -> ApiResult<()> {
    let request = Request::new(Method::Get, collection(owner))
        .labels(&LabelSelector::is(label::OWNER, &owner.hash))
        .metadata();
    let list = ctx.hub().send(request).await?;
    for object in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| object.pointer(key).and_then(Value::as_str);
        if let Some(name) = text("/metadata/name").filter(|name| !keep.contains(*name)) {
            ctx.hub().delete(path(owner, name), text("/metadata/uid"), None).await?;
        }
    }
    Ok(())
}

fn is_ours(object: &Value, owner: &str) -> bool {
    let labels = object.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(label::OWNER)).and_then(Value::as_str) == Some(owner)
}

fn collection(owner: &Owner) -> ApiPath {
    ApiPath::core(&owner.namespace, "configmaps")
}

fn path(owner: &Owner, name: &str) -> ApiPath {
    collection(owner).then(name)
}
