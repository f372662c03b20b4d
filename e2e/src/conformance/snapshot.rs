//! Reads all objects on a plane but those that come and go by themselves.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};
use emco_e2e::bed::Plane;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use serde_json::Value;

/// The pulse of the plane, what it derives from Services and from definitions, its nodes and its disks, and namespaces: these
/// belong to the project, not to a release.
const NOT_OF_CHARTS: [&str; 10] = [
    "APIService",
    "CSINode",
    "ComponentStatus",
    "Endpoints",
    "Event",
    "IPAddress",
    "Lease",
    "Namespace",
    "Node",
    "PersistentVolume",
];
/// Requests at a time.
const AT_ONCE: usize = 4;

/// What an object is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub group: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " {namespace}")?;
        }
        write!(f, "{}{}", if self.namespace.is_some() { "/" } else { " " }, self.name)
    }
}

/// Objects as the API server shows them.
pub type Objects = BTreeMap<Key, Value>;

/// Lists every kind that the plane serves.
pub async fn of(plane: &Plane) -> Result<Objects> {
    let client = plane.client().await?;
    let discovery =
        Discovery::new(client.clone()).run().await.context("cannot learn the kinds of the plane")?;
    let kinds = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let kinds = kinds.filter(|(resource, able)| {
        able.supports_operation(verbs::LIST) && !NOT_OF_CHARTS.contains(&resource.kind.as_str())
    });
    let resources: Vec<ApiResource> = kinds.map(|(resource, _)| resource).collect();
    let lists = futures::stream::iter(resources).map(|resource| list(client.clone(), resource));
    let lists: Vec<Vec<(Key, Value)>> = lists.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(lists.into_iter().flatten().collect())
}

async fn list(client: kube::Client, resource: ApiResource) -> Result<Vec<(Key, Value)>> {
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let list =
        api.list(&ListParams::default()).await.with_context(|| format!("cannot list {}", resource.plural))?;
    let mut objects = Vec::new();
    for object in list {
        let key = Key {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone().unwrap_or_default(),
        };
        let object = serde_json::to_value(object).context("an object cannot be shown as JSON")?;
        if !is_of_helm(&object) {
            objects.push((key, object));
        }
    }
    Ok(objects)
}

/// Where Helm itself keeps what it installed.
fn is_of_helm(object: &Value) -> bool {
    object.get("type").and_then(Value::as_str) == Some("helm.sh/release.v1")
}

/// Whether a controller of the plane made it of another object, such as Pods of a Deployment: they follow from what is compared.
pub fn is_derived(object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// Whether a hook of a chart made it.
pub fn is_of_hook(object: &Value) -> bool {
    object.pointer("/metadata/annotations/helm.sh~1hook").is_some()
}

/// Whether an object may outlive its release: definitions, with the objects of users, and the claims that Kubernetes itself
/// made for a StatefulSet, with their data. The latter bear no mark of ours: one that a chart renders may not stay.
pub fn may_stay(key: &Key, object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let applied = labels.is_some_and(|labels| labels.contains_key(emco_crds::names::label::OWNER));
    key.kind == "CustomResourceDefinition" || (key.kind == "PersistentVolumeClaim" && !applied)
}
