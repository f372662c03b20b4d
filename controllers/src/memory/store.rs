//! What the server holds: objects by kind, one counter of revisions, the log of changes that watches read.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::path::ApiPath;
use futures::channel::mpsc::UnboundedSender;
use serde_json::{Map, Value, json};

use super::{kinds, refusals, status, workloads};
use crate::api::{Accept, ApiResult, WatchEvent};

mod definitions;
mod namespaces;
mod tokens;
mod watches;
mod writes;

pub(super) use writes::Via;

/// A resolved path: a collection, or one object of it, perhaps its status.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub resource: ApiResource,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

impl Target {
    fn kind_key(&self) -> String {
        kind_key(&self.resource.group, &self.resource.plural)
    }
}

fn kind_key(group: &str, plural: &str) -> String {
    // One kind of objects is served under two groups.
    let group = if group == "events.k8s.io" { "" } else { group };
    format!("{plural}.{group}")
}

/// Kind key to (namespace, name) to object.
type Objects = BTreeMap<String, BTreeMap<(String, String), Arc<Value>>>;

struct Change {
    revision: u64,
    kind: String,
    before: Option<Arc<Value>>,
    after: Option<Arc<Value>>,
}

struct Watcher {
    kind: String,
    since: u64,
    selects: Box<dyn Fn(&Value) -> bool + Send>,
    accept: Accept,
    sender: UnboundedSender<WatchEvent>,
}

pub(super) struct Store {
    resources: Vec<ApiResource>,
    /// By kind: when its definition was last made or changed. Watches that begin before are refused.
    defined: BTreeMap<String, u64>,
    objects: Objects,
    revision: u64,
    made: u64,
    /// How often it went back.
    returns: u64,
    log: Vec<Arc<Change>>,
    watchers: Vec<Watcher>,
    pub workloads_ready: bool,
    /// Seconds since 1970, for the tokens that it issues.
    pub now: i64,
}

impl Store {
    pub fn new() -> Self {
        let mut store = Self {
            resources: kinds::all(),
            defined: BTreeMap::new(),
            objects: Objects::new(),
            revision: 0,
            made: 0,
            returns: 0,
            log: Vec::new(),
            watchers: Vec::new(),
            workloads_ready: true,
            now: 1_795_000_000,
        };
        for name in ["default", "kube-system"] {
            let _ = store.put(
                "kube-apiserver",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        store
    }

    /// Another store of the same objects and changes, which nobody watches.
    pub fn copied(&self) -> Self {
        Self {
            resources: self.resources.clone(),
            defined: self.defined.clone(),
            objects: self.objects.clone(),
            revision: self.revision,
            made: self.made,
            returns: self.returns,
            log: self.log.clone(),
            watchers: Vec::new(),
            workloads_ready: self.workloads_ready,
            now: self.now,
        }
    }

    pub fn apis(&self) -> ApiList {
        ApiList { resources: self.resources.clone() }
    }

    pub fn register(&mut self, resource: ApiResource) {
        if !self.resources.contains(&resource) {
            self.resources.push(resource);
        }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How often it went back to an older state: its revisions begin anew there.
    pub fn returns(&self) -> u64 {
        self.returns
    }

    /// Reads a request's path, whose last name may be encoded.
    pub fn resolve_path(&self, path: &ApiPath) -> ApiResult<Target> {
        let mut target = self.resolve(path.as_str())?;
        if !target.name.is_empty() && target.subresource.is_empty() {
            target.name = path.name();
        }
        Ok(target)
    }

    /// Reads a URL path.
    pub fn resolve(&self, path: &str) -> ApiResult<Target> {
        let missing = || status(404, "NotFound", "the server could not find the requested resource");
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(missing()),
        };
        let (namespace, parts) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", rest),
        };
        let plural = parts.first().copied().unwrap_or_default();
        let resource = self
            .resources
            .iter()
            .find(|r| r.group == group && r.version == version && r.plural == plural)
            .cloned()
            .ok_or_else(missing)?;
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        Ok(Target { resource, namespace: namespace.to_owned(), name: part(1), subresource: part(2) })
    }

    pub fn all(&self) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        for (kind, objects) in &self.objects {
            for ((namespace, name), object) in objects {
                all.insert(format!("{kind}/{namespace}/{name}"), Value::clone(object));
            }
        }
        all
    }

    /// Objects of a kind, which no two groups here have.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let resource = self.resources.iter().find(|resource| resource.kind == kind);
        let key = resource.map(|resource| kind_key(&resource.group, &resource.plural));
        key.and_then(|key| self.objects.get(&key)).into_iter().flat_map(BTreeMap::values).map(AsRef::as_ref)
    }

    pub fn stored(&self, target: &Target) -> ApiResult<&Value> {
        self.objects
            .get(&target.kind_key())
            .and_then(|objects| objects.get(&(target.namespace.clone(), target.name.clone())))
            .map(AsRef::as_ref)
            .ok_or_else(|| refusals::not_found(&target.resource, &target.name))
    }

    /// The same as something that can be changed.
    pub fn get(&self, target: &Target) -> ApiResult<Value> {
        self.stored(target).cloned()
    }

    /// Objects of a collection; of all namespaces where the target names none.
    pub fn list<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a Value> {
        let all = self.objects.get(&target.kind_key()).into_iter().flatten();
        let within = |namespace: &str| target.namespace.is_empty() || namespace == target.namespace;
        all.filter(move |((namespace, _), _)| within(namespace)).map(|(_, object)| object.as_ref())
    }

    /// Creates or applies as another client would.
    pub fn put(&mut self, manager: &str, object: &Value) -> ApiResult<Value> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let (group, version) = emco_engine::identity::split_api_version(&api_version);
        let resource = self
            .apis()
            .find(group, version, &kind)
            .cloned()
            .ok_or_else(|| status(404, "NotFound", format!("no kind {api_version} {kind}")))?;
        let namespace = if resource.namespaced { text("/metadata/namespace") } else { String::new() };
        let target = Target { resource, namespace, name: text("/metadata/name"), subresource: String::new() };
        self.apply(&target, object, manager, true)
    }

    /// Writes the object, or removes it where it is being deleted and nothing holds it; tells watches; lets the built-in
    /// controllers react.
    fn commit(&mut self, target: &Target, before: Option<Value>, mut object: Value) -> Value {
        workloads::settle(&mut object, self.workloads_ready);
        let unchanged = before.as_ref().is_some_and(|b| same(b, &object));
        if unchanged {
            return before.unwrap_or(object);
        }
        self.revision += 1;
        let revision = self.revision;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
        let held =
            object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        let is_namespace = target.resource.kind == "Namespace" && target.resource.group.is_empty();
        let full = is_namespace && self.has_content(&target.name);
        let gone = deleting && !held && !full;
        let key = (target.namespace.clone(), target.name.clone());
        let objects = self.objects.entry(target.kind_key()).or_default();
        let stored = (!gone).then(|| Arc::new(object.clone()));
        match &stored {
            Some(stored) => drop(objects.insert(key, Arc::clone(stored))),
            None => drop(objects.remove(&key)),
        }
        if target.resource.kind == "CustomResourceDefinition" && !gone {
            self.define(kinds::of_definition(&object));
        }
        let version = before.as_ref().and_then(|b| b.pointer("/metadata/resourceVersion")).cloned();
        self.tell(target.kind_key(), before.map(Arc::new), stored);
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let (true, Some(version), Some(metadata)) = (gone, version, metadata) {
            // The last write of an object is answered with the version that it changed.
            metadata.insert("resourceVersion".to_owned(), version);
        }
        if is_namespace && deleting && full {
            self.drain(&target.name);
        } else if gone && target.resource.namespaced {
            self.finish_namespace(&target.namespace);
        }
        object
    }
}

/// Kinds whose status is written through the subresource alone.
fn has_status(resource: &ApiResource) -> bool {
    !matches!(resource.kind.as_str(), "ConfigMap" | "Secret" | "ServiceAccount" | "Event" | "Lease")
}

/// Kinds whose intent is counted. Most kinds of the core have none.
fn has_generation(resource: &ApiResource) -> bool {
    match resource.group.as_str() {
        "" => resource.kind == "Pod",
        "autoscaling"
        | "coordination.k8s.io"
        | "events.k8s.io"
        | "rbac.authorization.k8s.io"
        | "storage.k8s.io" => false,
        _ => true,
    }
}

/// Whether two states differ in nothing but their version.
fn same(a: &Value, b: &Value) -> bool {
    fn metadata(value: &Value) -> &Value {
        value.get("metadata").unwrap_or(&Value::Null)
    }
    same_but(a, b, &["metadata"]) && same_but(metadata(a), metadata(b), &["resourceVersion"])
}

/// Whether two objects have the same fields, but for these.
fn same_but(a: &Value, b: &Value, fields: &[&str]) -> bool {
    let counts = |name: &str| !fields.contains(&name);
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            let number = |fields: &Map<String, Value>| fields.keys().filter(|name| counts(name)).count();
            let mut told = a.iter().filter(|(name, _)| counts(name.as_str()));
            number(a) == number(b) && told.all(|(name, value)| b.get(name) == Some(value))
        }
        _ => a == b,
    }
}
