//! Writes Events about objects of the hub.

use emco_crds::OwnerKind;
use emco_engine::path::ApiPath;
use emco_engine::{conditions, marks};
use kube::Resource;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::api::{ApiServerExt, HUB_MANAGER};
use crate::object::context::HubContext;
use crate::object::meta::{self, name, uid};

mod budget;
mod dedup;

pub use budget::EventBudget;
use budget::Place;
pub use dedup::EventDedup;

/// Longest note of an Event, in bytes (the API server takes 1,024).
const LONGEST_NOTE: usize = 1000;
/// Kind of the objects of which there are only so many Events in an hour.
const BOUNDED: &str = "DeploymentIntentGroup";
/// The end of the last of them, and of the last one before what is new.
const LAST: &str = "; no more Events of it within the hour: its status and the log go on";
const LAST_OF_KNOWN: &str =
    "; no more Events of it within the hour, unless with other reasons: its status and the log go on";

/// Writes an Event. A lost Event is no failure: the status says the same. Of a deployment there are only so many in an hour.
pub async fn emit<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    warning: bool,
    reason: &str,
    note: &str,
) {
    let now = ctx.now().to_string();
    write(ctx, object, warning, reason, note, &now).await;
}

/// Writes a Warning once per version of the object, whoever asks again: its name does not say when.
pub async fn warn_once<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    reason: &str,
    note: &str,
) {
    let version = object.meta().resource_version.clone().unwrap_or_default();
    write(ctx, object, true, reason, note, &version).await;
}

async fn write<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    warning: bool,
    reason: &str,
    note: &str,
    moment: &str,
) {
    let now = ctx.now().to_string();
    let note = if note.is_empty() { reason.to_owned() } else { completed(ctx, object, note) };
    let mut note = conditions::shorten(&note, LONGEST_NOTE);
    let digest = hex::encode(Sha256::digest(format!("{}\0{reason}\0{note}\0{moment}", uid(object))));
    let namespace = object.meta().namespace.as_deref().unwrap_or("default");
    let own = format!("{}.{}", name(object), digest.get(..16).unwrap_or_default());
    if !ctx.events.is_first(&now, &own) {
        return;
    }
    let is_bounded = K::kind(&()) == BOUNDED;
    match is_bounded.then(|| ctx.event_budget.take(uid(object), reason)) {
        Some(Place::None) => {
            let name = name(object);
            tracing::debug!(reason, note, name, namespace, "an Event too many was not written");
            return;
        }
        Some(Place::Last) => note = ended(&note, LAST),
        Some(Place::LastOfKnown) => note = ended(&note, LAST_OF_KNOWN),
        Some(Place::Free) | None => {}
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
    if let Err(error) = ctx.hub().create(ApiPath::core(namespace, "events"), &body).await {
        tracing::debug!(%error, reason, "an Event was not written");
        if is_bounded {
            ctx.event_budget.give_back(uid(object), reason);
        }
    }
}

/// A note that ends with words of our own.
fn ended(note: &str, end: &str) -> String {
    conditions::shorten(note, LONGEST_NOTE.saturating_sub(end.len())) + end
}

/// A note with the whole words of a cluster that a status has no room for.
fn completed<K: Resource<DynamicType = ()>>(ctx: &HubContext, object: &K, note: &str) -> String {
    if ctx.refusals.is_empty() {
        return note.to_owned();
    }
    let (kind, namespace) = (OwnerKind::from(&*K::kind(&())), meta::namespace(object));
    ctx.refusals.complete(&marks::owner_hash(&ctx.installation.id, &kind, namespace, name(object)), note)
}
