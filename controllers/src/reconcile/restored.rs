//! Judges whether this hub was restored from a backup, and what a person's confirmation has to say.

use emco_crds::cluster::HubRestored;
use emco_crds::names::annotation;
use kube::Resource;

use crate::api::{Method, Request};
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::stores::indexes;

/// True where the annotation `emco.io/confirm` says exactly this.
pub fn confirmed<K: Resource>(object: &K, what: &str) -> bool {
    meta::annotation(object, annotation::CONFIRM).is_some_and(|said| said == what)
}

/// The text that confirms exactly this restore: the version, and since when it is waited.
pub fn confirmation(restored: &HubRestored) -> String {
    let since = restored.since.as_ref().map(|since| format!("@{}", since.0.as_second()));
    restored.seen.clone() + &since.unwrap_or_default()
}

/// The command that confirms; `short` is the short name of the kind.
pub fn annotate<K: Resource>(short: &str, object: &K, what: &str) -> String {
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    format!("kubectl annotate {short} {name} -n {namespace} --overwrite {}={what}", annotation::CONFIRM)
}

/// The version that the hub's store has reached, at least: the newest that this process has read.
pub fn hub_version<K: Resource>(ctx: &Context, object: &K) -> u64 {
    let newest = ctx.stores.shards.last_key(indexes::VERSION);
    let newest: Option<u64> = newest.and_then(|version| version.parse().ok());
    newest.unwrap_or_default().max(meta::version(object))
}

/// True where the hub's store has come as far as this. (How far it has is not told: a message that moves would be written for ever.)
pub async fn hub_reaches<K: Resource>(ctx: &Context, object: &K, seen: u64) -> Result<bool, Failure> {
    if seen <= hub_version(ctx, object) {
        return Ok(true);
    }
    let request = Request::new(Method::Get, "/api/v1/namespaces").query("limit", "1").metadata();
    let list = ctx.hub().send(request).await?;
    let version = list.pointer("/metadata/resourceVersion").and_then(serde_json::Value::as_str);
    version
        .and_then(|text| text.parse::<u64>().ok())
        .map(|now| now >= seen)
        .ok_or_else(|| Failure::Stored("the hub answers a list without resourceVersion".to_owned()))
}
