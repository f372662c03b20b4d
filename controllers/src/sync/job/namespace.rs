//! A namespace we made in; whether it holds anything that is not ours to lose out.

use emco_engine::apis::ApiResource;
use emco_engine::marks;
use serde_json::Value;

use super::super::edge::Session;
use super::super::errors::Trouble;
use super::JobContext;
use crate::api::{Method, Request};

/// Kinds that every namespace has or that say nothing about what it is used for.
const PASSING: [(&str, &str); 6] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("metrics.k8s.io", "PodMetrics"),
];

/// Whether something in the namespace stays alive that this owner did not make, or a volume claim that may hold data.
/// What belongs to another object, or is going already, does not count.
pub(super) async fn holds_others(
    ctx: &JobContext,
    session: &Session,
    namespace: &str,
) -> Result<bool, Trouble> {
    for resource in &session.apis.resources {
        if !resource.namespaced || !resource.listable || PASSING.contains(&(&resource.group, &resource.kind))
        {
            continue;
        }
        // Several versions of one kind show the same objects.
        if session.apis.preferred(&resource.group, &resource.kind) != Some(resource) {
            continue;
        }
        let request =
            Request::new(Method::Get, resource.path(namespace, None)).metadata().query("limit", "100");
        let page = match session.send(&ctx.edge, request).await {
            Ok(page) => page,
            Err(error) if matches!(error.code(), 404 | 405) => continue,
            Err(error) => return Err(Trouble::of_request(&error)),
        };
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if items.iter().any(|item| counts(item, resource, &ctx.hash)) {
            return Ok(true);
        }
        if page.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|more| !more.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn counts(item: &Value, resource: &ApiResource, hash: &str) -> bool {
    if resource.group.is_empty() && resource.kind == "PersistentVolumeClaim" {
        return true;
    }
    let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let made_by_itself = matches!(
        (resource.group.as_str(), resource.kind.as_str(), name),
        ("", "ServiceAccount", "default") | ("", "ConfigMap", "kube-root-ca.crt")
    );
    let going = item.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    let owned =
        item.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|o| !o.is_empty());
    let token = item.pointer("/metadata/annotations/kubernetes.io~1service-account.name").is_some();
    !made_by_itself && !going && !owned && !token && marks::owner_of(item) != Some(hash)
}
