//! Judges namespaces: whether one that is not there will come, whether one we made holds anything that others would lose, and whether
//! one that is there was ours.

use emco_engine::apis::ApiResource;
use emco_engine::identity::Identity;
use emco_engine::marks;
use serde_json::Value;

use super::super::absence;
use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::{Job, JobContext};
use crate::api::{Method, Request};

mod confine;
mod everywhere;
mod released;

/// Kinds that every namespace has or that say nothing about what it is used for.
const PASSING: [(&str, &str); 6] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("metrics.k8s.io", "PodMetrics"),
];

impl Job {
    /// Whether a namespace that is not there is made by the logical cloud or by the target itself.
    pub(super) fn comes_by_itself(&self, namespace: &str) -> bool {
        let made = Identity {
            kind: "Namespace".to_owned(),
            name: namespace.to_owned(),
            group: String::new(),
            namespace: String::new(),
        };
        // Without a target nobody can change what names it.
        self.memory.sets.is_empty()
            || self.memory.pace.namespace.as_deref() == Some(namespace)
            || self.memory.sets.iter().any(|set| set.names(&made))
    }
}

/// What in the namespace stays alive that this owner did not make, or a volume claim that may hold data: the first that is found.
/// What belongs to another object, is going already, or is in every namespace of the cluster does not count.
pub(super) async fn holds_others(
    ctx: &JobContext,
    session: &Session,
    namespace: &str,
) -> Result<Option<String>, Trouble> {
    // What the cluster defines and does not serve now may have objects there, too.
    absence::all_served(&ctx.edge, session).await?;
    let mut perhaps = Vec::new();
    for resource in &session.apis.resources {
        if !resource.namespaced || !resource.listable || PASSING.contains(&(&resource.group, &resource.kind))
        {
            continue;
        }
        // Several versions of one kind show the same objects.
        if session.apis.preferred(&resource.group, &resource.kind) != Some(resource) {
            continue;
        }
        let Some(page) = first_page(ctx, session, resource, namespace).await? else { continue };
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let counting: Vec<&Value> =
            items.iter().filter(|item| counts(item, resource, &ctx.owner.hash)).collect();
        if let Some(item) = counting.iter().find(|item| !everywhere::may_be(item, resource)) {
            return Ok(Some(format!("{}/{}", resource.kind, name_of(item))));
        }
        if page.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|more| !more.is_empty()) {
            return Ok(Some(format!("objects of kind {}", resource.kind)));
        }
        perhaps.extend(counting.into_iter().map(|item| (resource, name_of(item).to_owned())));
    }
    // Asked last: what is surely somebody's costs no lists of the whole cluster.
    let Some((resource, name)) = perhaps.first() else { return Ok(None) };
    let first = format!("{}/{name}", resource.kind);
    let everywhere = Box::pin(everywhere::are(ctx, session, namespace, &perhaps)).await?;
    Ok((!everywhere).then_some(first))
}

/// The first objects of a kind; none of a kind that cannot be listed, or that is not there.
async fn first_page(
    ctx: &JobContext,
    session: &Session,
    resource: &ApiResource,
    namespace: &str,
) -> Result<Option<Value>, Trouble> {
    let request = Request::new(Method::Get, resource.path(namespace, None)).metadata().query("limit", "100");
    match session.send(&ctx.edge, request).await {
        Ok(page) => Ok(Some(page)),
        // A kind without lists keeps nothing that could be listed.
        Err(error) if error.code() == 405 => Ok(None),
        Err(error) if error.is_not_found() => {
            absence::kind(&ctx.edge, session, &resource.group, &resource.kind).await?;
            Ok(None)
        }
        Err(error) if error.code() == 403 => {
            let text = format!(
                "whether namespace {namespace} holds anything of others cannot be seen: grant the credentials list of {} in {} there \
                 (whoever registered the cluster with a level adds it once more for kinds that came later)",
                resource.plural,
                resource.api_version()
            );
            Err(Trouble::new("Forbidden", &text, Retry::Slowly))
        }
        Err(error) => Err(Trouble::of_request(&error)),
    }
}

fn name_of(item: &Value) -> &str {
    item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn counts(item: &Value, resource: &ApiResource, hash: &str) -> bool {
    if resource.group.is_empty() && resource.kind == "PersistentVolumeClaim" {
        return true;
    }
    let made_by_itself = matches!(
        (resource.group.as_str(), resource.kind.as_str(), name_of(item)),
        ("", "ServiceAccount", "default") | ("", "ConfigMap", "kube-root-ca.crt")
    );
    let going = item.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    let owned =
        item.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|o| !o.is_empty());
    let token = item.pointer("/metadata/annotations/kubernetes.io~1service-account.name").is_some();
    !made_by_itself && !going && !owned && !token && marks::owner_of(item) != Some(hash)
}
