//! Tells what every namespace of a cluster has, such as the certificates and accounts that Istio, `OpenShift` and trust-manager put there,
//! from what somebody put into one of them.

use std::collections::BTreeSet;

use emco_engine::apis::ApiResource;
use emco_engine::marks;
use emco_engine::selector::FieldSelector;
use serde_json::Value;

use super::super::super::edge::Session;
use super::super::super::errors::Trouble;
use super::super::JobContext;
use super::name_of;
use crate::api::{Method, Request};

/// Fewer other namespaces prove nothing: two may have an object of one name by chance.
const FEWEST: usize = 2;
/// Names that are asked for at most.
const NAMES: usize = 16;
/// Pages of 500 that are read of one list at most.
const PAGES: usize = 40;

/// Whether an object may be one that every namespace has: of another kind, or of an owner of EMCO, it is somebody's.
pub(super) fn may_be(item: &Value, resource: &ApiResource) -> bool {
    resource.group.is_empty()
        && matches!(resource.kind.as_str(), "ConfigMap" | "ServiceAccount")
        && marks::owner_of(item).is_none()
}

/// Whether every other namespace has objects of all these names. What cannot be seen is somebody's.
pub(super) async fn are(
    ctx: &JobContext,
    session: &Session,
    namespace: &str,
    named: &[(&ApiResource, String)],
) -> Result<bool, Trouble> {
    let Some(spaces) = session.apis.preferred("", "Namespace").filter(|_| named.len() <= NAMES) else {
        return Ok(false);
    };
    let all = Request::new(Method::Get, spaces.path("", None));
    let Some(mut others) = list(ctx, session, all, of_others).await? else { return Ok(false) };
    others.remove(namespace);
    if others.len() < FEWEST {
        return Ok(false);
    }
    for (resource, name) in named {
        let alike = Request::new(Method::Get, resource.path("", None)).fields(&FieldSelector::name(name));
        let Some(homes) = list(ctx, session, alike, home_of).await? else { return Ok(false) };
        if !others.is_subset(&homes) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The name of a namespace that counts: not of one that goes, nor of Kubernetes' own, which tools leave out.
fn of_others(space: &Value) -> Option<&str> {
    let going = space.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    Some(name_of(space)).filter(|name| !going && !name.starts_with("kube-"))
}

fn home_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace").and_then(Value::as_str)
}

/// What is read of each object of a list; `None` where it may not be listed, or is too long.
async fn list(
    ctx: &JobContext,
    session: &Session,
    request: Request,
    read: fn(&Value) -> Option<&str>,
) -> Result<Option<BTreeSet<String>>, Trouble> {
    let request = request.metadata().query("limit", "500");
    let (mut found, mut next) = (BTreeSet::new(), None::<String>);
    for _ in 0..PAGES {
        let mut request = request.clone();
        if let Some(next) = next.take() {
            request = request.query("continue", next);
        }
        let page = match session.send(&ctx.edge, request).await {
            Ok(page) => page,
            Err(error) if matches!(error.code(), 403..=405) => return Ok(None),
            Err(error) => return Err(Trouble::of_request(&error)),
        };
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        found.extend(items.iter().filter_map(read).map(str::to_owned));
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(more) if !more.is_empty() => next = Some(more.to_owned()),
            _ => return Ok(Some(found)),
        }
    }
    Ok(None)
}
