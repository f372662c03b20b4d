//! Writes down what a plan that waits would change, and removes it when nothing waits any more. The names are in a ConfigMap of the
//! project's namespace, for everybody who reads the deployment; what changes inside of objects is in a Secret of the operator's
//! namespace, where manifests are. Nothing is decided by either, and whoever deletes one harms nobody.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::names::label;
use emco_crds::{DeploymentIntentGroup, OwnerKind};
use emco_engine::changes::{DETAILS, DIFFERENCES, Details, Differences, DryRun, SECRET_TYPE, digest};
use emco_engine::path::ApiPath;
use kube::Resource as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::StoreContext;
use crate::api::{ApiError, ApiResult, ApiServerExt};
use crate::object::LogFields;
use crate::object::Owner;
use crate::tenancy::namespace_access;

/// Codes by which the hub refuses what it would refuse again: no right, a quota, an end that has begun, too much.
const REFUSED: std::ops::RangeInclusive<u16> = 403..=422;

/// How Secrets with differences begin.
pub const PREFIX: &str = "emco-plan-";

/// Name of the ConfigMap with the names.
pub fn config_map_name(owner: &Owner) -> String {
    format!("{}-{}-plan", owner.kind.short(), owner.name)
}

/// Name of the Secret with the differences.
pub fn secret_name(owner_hash: &str) -> String {
    format!("{PREFIX}{owner_hash}")
}

/// The same, of a deployment.
pub fn secret_of(ctx: &StoreContext, dig: &DeploymentIntentGroup) -> String {
    secret_name(&Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig).hash)
}

/// Forgets a deployment that is gone. Whether something of it may still be written down.
pub fn forget(ctx: &StoreContext, owner_hash: &str) -> bool {
    ctx.revisions.answers.lock().remove(owner_hash);
    ctx.revisions.plan_details.lock().remove(owner_hash).is_some()
}

/// Whether this process wrote the document with this digest.
pub fn is_written(ctx: &StoreContext, owner: &Owner, digest: &str) -> bool {
    ctx.revisions.plan_details.lock().get(&owner.hash).is_some_and(|written| written == digest)
}

/// Writes both where they are not there yet as they are to be. What the hub refuses is missing, which is said in the log; the other one is
/// written all the same.
pub async fn write(
    ctx: &StoreContext,
    owner: &Owner,
    details: &Details,
    differences: &Differences,
) -> ApiResult<()> {
    // Last the one that people are pointed at.
    let both = [
        (secret(ctx, owner), secret_object(owner, differences)?),
        (config_map(owner), config_map_object(owner, details)?),
    ];
    for (place, object) in both {
        match put(ctx, owner, place, &object).await {
            Ok(()) => {}
            Err(error) if namespace_access::comes(ctx, &owner.namespace, &error) => return Err(error),
            Err(error) if REFUSED.contains(&error.code()) && !error.is_conflict() => {
                let LogFields { project, deployment, object } = owner.log_fields(ctx);
                tracing::warn!(project, deployment, object, %error, "what a plan that waits changes was not written down");
            }
            Err(error) => return Err(error),
        }
    }
    ctx.revisions.plan_details.lock().insert(owner.hash.clone(), differences.digest.clone());
    Ok(())
}

/// What clusters answered to a plan.
#[derive(Clone, Default)]
pub struct Answers {
    /// Digest of what they were asked about, without answers.
    pub of: String,
    /// By variant.
    pub runs: BTreeMap<String, DryRun>,
    /// When one that can be reached was asked in vain.
    pub silent: Option<Instant>,
}

/// What clusters answered to what has this digest without answers: to this process, or to one before, which wrote it down. `said` is the
/// digest of that with answers, as the status has it: what others wrote there is not believed.
pub async fn answered(ctx: &StoreContext, owner: &Owner, bare: &str, said: Option<&str>) -> Option<Answers> {
    let known = ctx.revisions.answers.lock().get(&owner.hash).cloned();
    if known.is_some() {
        return known.filter(|known| known.of == bare);
    }
    let said = said?;
    let (path, _) = config_map(owner);
    let there = ctx.hub().get_opt(&path).await.ok()??;
    let text = there.get("data")?.get(DETAILS)?.as_str().filter(|_| is_ours(&there, owner))?;
    let details = Details::read(text).ok().filter(|details| digest(details) == said)?;
    (digest(&details.bare()) == bare).then(|| Answers {
        of: bare.to_owned(),
        runs: details.dry_runs(),
        silent: None,
    })
}

/// Remembers what clusters answered.
pub fn remember(ctx: &StoreContext, owner: &Owner, answers: Answers) {
    ctx.revisions.answers.lock().insert(owner.hash.clone(), answers);
}

/// Removes both.
pub async fn remove(ctx: &StoreContext, owner: &Owner) -> ApiResult<()> {
    for (path, _) in [config_map(owner), secret(ctx, owner)] {
        // Another's object of the name stays.
        if let Some(there) = ctx.hub().get_opt(&path).await?.filter(|there| is_ours(there, owner)) {
            let uid = there.pointer("/metadata/uid").and_then(Value::as_str);
            ctx.hub().delete(&path, uid, None).await?;
        }
    }
    ctx.revisions.plan_details.lock().remove(&owner.hash);
    ctx.revisions.answers.lock().remove(&owner.hash);
    Ok(())
}

/// Path of an object, and of its collection.
type Place = (ApiPath, ApiPath);

fn config_map(owner: &Owner) -> Place {
    let collection = ApiPath::core(&owner.namespace, "configmaps");
    (collection.clone().then(&config_map_name(owner)), collection)
}

fn secret(ctx: &StoreContext, owner: &Owner) -> Place {
    let collection = ApiPath::core(&ctx.namespace, "secrets");
    (collection.clone().then(&secret_name(&owner.hash)), collection)
}

/// It ends with its deployment, whoever removes the finalizer of that. (A Secret of another namespace is collected.)
fn config_map_object(owner: &Owner, details: &Details) -> ApiResult<Value> {
    let of = json!({
        "apiVersion": DeploymentIntentGroup::api_version(&()), "kind": owner.kind, "name": owner.name, "uid": owner.uid,
    });
    Ok(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": config_map_name(owner), "labels": owner.labels(), "ownerReferences": [of]},
        "data": {DETAILS: serde_json::to_string(details).map_err(unwritable)?},
    }))
}

fn secret_object(owner: &Owner, differences: &Differences) -> ApiResult<Value> {
    let text = serde_json::to_vec(differences).map_err(unwritable)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {"name": secret_name(&owner.hash), "labels": owner.labels()},
        "data": {DIFFERENCES: STANDARD.encode(text)},
    }))
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn unwritable(error: serde_json::Error) -> ApiError {
    ApiError::Protocol(format!("what a plan changes cannot be written as JSON: {error}"))
}

async fn put(ctx: &StoreContext, owner: &Owner, (path, collection): Place, object: &Value) -> ApiResult<()> {
    let Some(there) = ctx.hub().get_opt(&path).await? else {
        return ctx.hub().create(collection, object).await.map(drop);
    };
    if !is_ours(&there, owner) {
        let LogFields { project, deployment, object } = owner.log_fields(ctx);
        tracing::warn!(project, deployment, object, path = %path, "an object of another owner has the name of what is written down of a plan");
        return Ok(());
    }
    let owners = |of: &Value| of.pointer("/metadata/ownerReferences").cloned().unwrap_or(Value::Null);
    if there.get("data") == object.get("data") && owners(&there) == owners(object) {
        return Ok(());
    }
    // Keys that others put there go with it.
    let mut data = json!({});
    let keys = |of: &Value| of.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(data) = data.as_object_mut() {
        data.extend(keys(&there).into_iter().map(|(key, _)| (key, Value::Null)));
        data.extend(keys(object));
    }
    let patch = json!({"metadata": {"ownerReferences": owners(object)}, "data": data});
    ctx.hub().merge(path, &patch).await.map(drop)
}

fn is_ours(object: &Value, owner: &Owner) -> bool {
    let labels = object.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(label::OWNER)).and_then(Value::as_str) == Some(&owner.hash)
}
