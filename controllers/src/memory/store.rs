//! What the server holds: objects by kind, one counter of revisions, the log of changes that watches read.

use std::collections::BTreeMap;

use emco_engine::apis::{ApiList, ApiResource};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use serde_json::{Value, json};

use super::{apply, kinds, status, workloads};
use crate::api::{ApiError, ApiResult, WatchEvent};

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
        format!("{}.{}", self.resource.plural, self.resource.group)
    }

    fn not_found(&self) -> ApiError {
        let kind = if self.resource.group.is_empty() {
            self.resource.plural.clone()
        } else {
            format!("{}.{}", self.resource.plural, self.resource.group)
        };
        status(404, "NotFound", format!("{kind} \"{}\" not found", self.name))
    }
}

/// Kind key to (namespace, name) to object.
type Objects = BTreeMap<String, BTreeMap<(String, String), Value>>;

struct Change {
    revision: u64,
    kind: String,
    before: Option<Value>,
    after: Option<Value>,
}

struct Watcher {
    kind: String,
    selects: Box<dyn Fn(&Value) -> bool + Send>,
    sender: UnboundedSender<WatchEvent>,
}

pub(super) struct Store {
    resources: Vec<ApiResource>,
    objects: Objects,
    revision: u64,
    made: u64,
    log: Vec<Change>,
    watchers: Vec<Watcher>,
    pub workloads_ready: bool,
}

impl Store {
    pub fn new() -> Self {
        let mut store = Self {
            resources: kinds::all(),
            objects: Objects::new(),
            revision: 0,
            made: 0,
            log: Vec::new(),
            watchers: Vec::new(),
            workloads_ready: true,
        };
        for name in ["default", "kube-system"] {
            let _ = store.put(
                "kube-apiserver",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        store
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
                all.insert(format!("{kind}/{namespace}/{name}"), object.clone());
            }
        }
        all
    }

    pub fn get(&self, target: &Target) -> ApiResult<Value> {
        self.objects
            .get(&target.kind_key())
            .and_then(|objects| objects.get(&(target.namespace.clone(), target.name.clone())))
            .cloned()
            .ok_or_else(|| target.not_found())
    }

    /// Objects of a collection; of all namespaces where the target names none.
    pub fn list(&self, target: &Target) -> Vec<Value> {
        self.objects
            .get(&target.kind_key())
            .map(|objects| {
                objects
                    .iter()
                    .filter(|((namespace, _), _)| {
                        target.namespace.is_empty() || *namespace == target.namespace
                    })
                    .map(|(_, object)| object.clone())
                    .collect()
            })
            .unwrap_or_default()
    }

    pub fn create(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let mut object = body.clone();
        let name = match (
            body.pointer("/metadata/name").and_then(Value::as_str),
            body.pointer("/metadata/generateName").and_then(Value::as_str),
        ) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) => format!("{prefix}{:05}", self.made),
            _ => {
                return Err(status(
                    422,
                    "Invalid",
                    "metadata.name: Required value: name or generateName is required",
                ));
            }
        };
        let target = Target { name, ..target.clone() };
        if self.get(&target).is_ok() {
            let message = format!("{} \"{}\" already exists", target.resource.plural, target.name);
            return Err(status(409, "AlreadyExists", message));
        }
        self.namespace_accepts(&target)?;
        let Some(map) = object.as_object_mut() else {
            return Err(status(400, "BadRequest", "the body is not an object"));
        };
        if has_status(&target.resource) {
            map.remove("status");
        }
        self.stamp(&target, &mut object, None);
        apply::updated(None, &mut object, manager);
        Ok(self.commit(&target, None, object))
    }

    fn namespace_accepts(&self, target: &Target) -> ApiResult<()> {
        if !target.resource.namespaced {
            return Ok(());
        }
        let namespace = self
            .objects
            .get("namespaces.")
            .and_then(|all| all.get(&(String::new(), target.namespace.clone())));
        match namespace {
            None => Err(status(404, "NotFound", format!("namespaces \"{}\" not found", target.namespace))),
            Some(namespace) if namespace.pointer("/metadata/deletionTimestamp").is_some() => Err(status(
                403,
                "Forbidden",
                format!(
                    "{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being terminated",
                    target.resource.plural, target.name, target.namespace
                ),
            )),
            Some(_) => Ok(()),
        }
    }

    /// Server-set metadata of a write; the generation moves when anything but metadata and status changed.
    fn stamp(&mut self, target: &Target, object: &mut Value, before: Option<&Value>) {
        let generation =
            before.and_then(|b| b.pointer("/metadata/generation")).and_then(Value::as_i64).unwrap_or(0);
        let meaning = |value: &Value| {
            let mut value = value.clone();
            if let Some(map) = value.as_object_mut() {
                map.remove("metadata");
                map.remove("status");
            }
            value
        };
        let moved = before.is_none_or(|b| meaning(b) != meaning(object));
        self.made += 1;
        let made = self.made;
        let kept = |name: &str| before.and_then(|b| b.pointer(&format!("/metadata/{name}"))).cloned();
        let uid = kept("uid").unwrap_or_else(|| json!(format!("00000000-0000-4000-8000-{made:012}")));
        let created = kept("creationTimestamp").unwrap_or_else(|| json!("2026-01-01T00:00:00Z"));
        let deletion = kept("deletionTimestamp");
        if let Some(map) = object.as_object_mut() {
            let metadata = map.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".to_owned(), json!(target.name));
                metadata.remove("generateName");
                if target.resource.namespaced {
                    metadata.insert("namespace".to_owned(), json!(target.namespace));
                }
                metadata.insert("uid".to_owned(), uid);
                metadata.insert("creationTimestamp".to_owned(), created);
                metadata.insert("generation".to_owned(), json!(generation + i64::from(moved)));
                if let Some(deletion) = deletion {
                    metadata.insert("deletionTimestamp".to_owned(), deletion);
                }
            }
        }
    }

    /// Replaces the whole object or its status; `body` carries the resourceVersion it was read with, or none.
    pub fn replace(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let before = self.get(target)?;
        let version = body.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        if !version.is_empty()
            && before.pointer("/metadata/resourceVersion").and_then(Value::as_str) != Some(version)
        {
            let message = format!(
                "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your changes to the latest version and try again",
                target.resource.plural, target.name
            );
            return Err(status(409, "Conflict", message));
        }
        let uid = body.pointer("/metadata/uid").and_then(Value::as_str);
        if uid.is_some() && uid != before.pointer("/metadata/uid").and_then(Value::as_str) {
            return Err(status(
                409,
                "Conflict",
                "Precondition failed: UID in precondition differs from UID in object meta",
            ));
        }
        let mut object;
        if target.subresource == "status" {
            object = before.clone();
            if let (Some(map), Some(value)) = (object.as_object_mut(), body.get("status")) {
                map.insert("status".to_owned(), value.clone());
            }
        } else {
            object = body.clone();
            if has_status(&target.resource) {
                let kept = before.get("status").cloned();
                if let Some(map) = object.as_object_mut() {
                    map.remove("status");
                    if let Some(kept) = kept {
                        map.insert("status".to_owned(), kept);
                    }
                }
            }
            if target.resource.group == "emco.io"
                && target.resource.kind == "AppContext"
                && object.get("spec") != before.get("spec")
            {
                return Err(status(
                    422,
                    "Invalid",
                    "an AppContext cannot be edited: the operator makes a new revision",
                ));
            }
            self.stamp(target, &mut object, Some(&before));
            let entries = before.pointer("/metadata/managedFields").cloned();
            if let (Some(metadata), Some(entries)) =
                (object.get_mut("metadata").and_then(Value::as_object_mut), entries)
            {
                metadata.insert("managedFields".to_owned(), entries);
            }
            apply::updated(Some(&before), &mut object, manager);
        }
        Ok(self.commit(target, Some(before), object))
    }

    /// A replacement that says itself what `managedFields` is to be, as a JSON patch may.
    pub fn replace_with_fields(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let before = self.get(target)?;
        if before.pointer("/metadata/managedFields") == body.pointer("/metadata/managedFields") {
            return self.replace(target, body, manager);
        }
        let mut object = body.clone();
        self.stamp(target, &mut object, Some(&before));
        Ok(self.commit(target, Some(before), object))
    }

    pub fn apply(&mut self, target: &Target, intent: &Value, manager: &str, force: bool) -> ApiResult<Value> {
        let before = self.get(target).ok();
        if before.is_none() {
            self.namespace_accepts(target)?;
        }
        let wanted = intent.pointer("/metadata/uid").and_then(Value::as_str);
        if wanted.is_some()
            && wanted != before.as_ref().and_then(|b| b.pointer("/metadata/uid")).and_then(Value::as_str)
        {
            return Err(status(
                409,
                "Conflict",
                "uid mismatch: the provided object specified another uid than the live one",
            ));
        }
        let mut intent = intent.clone();
        if let Some(metadata) = intent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), json!(target.name));
            if target.resource.namespaced {
                metadata.insert("namespace".to_owned(), json!(target.namespace));
            }
        }
        let mut object = apply::apply(before.as_ref(), &intent, manager, force)?;
        self.stamp(target, &mut object, before.as_ref());
        Ok(self.commit(target, before, object))
    }

    pub fn delete(&mut self, target: &Target, options: Option<&Value>) -> ApiResult<Value> {
        let before = self.get(target)?;
        for (name, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let want =
                options.and_then(|o| o.pointer(&format!("/preconditions/{name}"))).and_then(Value::as_str);
            let have = before.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
            if want.is_some() && want != have {
                return Err(status(
                    409,
                    "Conflict",
                    format!("the {what} in the precondition does not match the {what} in record"),
                ));
            }
        }
        let mut object = before.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("deletionTimestamp").or_insert_with(|| json!("2026-01-01T00:00:01Z"));
        }
        Ok(self.commit(target, Some(before), object))
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
        let target = Target {
            resource,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            subresource: String::new(),
        };
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
        if gone {
            objects.remove(&key);
        } else {
            objects.insert(key, object.clone());
        }
        if target.resource.kind == "CustomResourceDefinition" && !gone {
            for resource in kinds::of_definition(&object) {
                self.register(resource);
            }
        }
        self.tell(target.kind_key(), before, if gone { None } else { Some(object.clone()) }, &object);
        if is_namespace && deleting && full {
            self.drain(&target.name);
        } else if gone && target.resource.namespaced {
            self.finish_namespace(&target.namespace);
        }
        object
    }

    fn has_content(&self, namespace: &str) -> bool {
        self.objects.values().any(|objects| objects.keys().any(|(ns, _)| ns == namespace))
    }

    /// The namespace controller: everything in a namespace that is being deleted is deleted.
    fn drain(&mut self, namespace: &str) {
        let content: Vec<Target> = self
            .resources
            .clone()
            .into_iter()
            .filter(|resource| resource.namespaced)
            .flat_map(|resource| {
                let collection = Target {
                    resource,
                    namespace: namespace.to_owned(),
                    name: String::new(),
                    subresource: String::new(),
                };
                self.list(&collection)
                    .into_iter()
                    .filter(|object| object.pointer("/metadata/deletionTimestamp").is_none())
                    .filter_map(|object| {
                        object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
                    })
                    .map(move |name| Target { name, ..collection.clone() })
                    .collect::<Vec<_>>()
            })
            .collect();
        for target in content {
            let _ = self.delete(&target, None);
        }
        self.finish_namespace(namespace);
    }

    fn finish_namespace(&mut self, namespace: &str) {
        if self.has_content(namespace) {
            return;
        }
        let key = (String::new(), namespace.to_owned());
        let terminating = self
            .objects
            .get("namespaces.")
            .and_then(|all| all.get(&key))
            .is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some());
        if terminating {
            let before = self.objects.get_mut("namespaces.").and_then(|all| all.remove(&key));
            if let Some(mut last) = before.clone() {
                self.revision += 1;
                if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("resourceVersion".to_owned(), json!(self.revision.to_string()));
                }
                self.tell("namespaces.".to_owned(), before, None, &last);
            }
        }
    }

    fn tell(&mut self, kind: String, before: Option<Value>, after: Option<Value>, last: &Value) {
        for watcher in self.watchers.iter().filter(|w| w.kind == kind) {
            if let Some(event) = event(&*watcher.selects, before.as_ref(), after.as_ref(), last) {
                let _ = watcher.sender.unbounded_send(event);
            }
        }
        self.watchers.retain(|watcher| !watcher.sender.is_closed());
        self.log.push(Change { revision: self.revision, kind, before, after });
    }

    /// Changes after a revision, then everything that comes.
    pub fn watch(
        &mut self,
        target: &Target,
        since: u64,
        selects: Box<dyn Fn(&Value) -> bool + Send>,
    ) -> UnboundedReceiver<WatchEvent> {
        let (sender, receiver) = unbounded();
        let kind = target.kind_key();
        for change in self.log.iter().filter(|change| change.kind == kind && change.revision > since) {
            let last = change.after.as_ref().or(change.before.as_ref()).cloned().unwrap_or_default();
            if let Some(event) = event(&*selects, change.before.as_ref(), change.after.as_ref(), &last) {
                let _ = sender.unbounded_send(event);
            }
        }
        self.watchers.push(Watcher { kind, selects, sender });
        receiver
    }

    pub fn end_watches(&mut self) {
        self.watchers.clear();
    }
}

fn event(
    selects: &dyn Fn(&Value) -> bool,
    before: Option<&Value>,
    after: Option<&Value>,
    last: &Value,
) -> Option<WatchEvent> {
    let was = before.is_some_and(selects);
    match after {
        Some(object) if selects(object) => Some(WatchEvent::Applied(object.clone())),
        _ if was => Some(WatchEvent::Deleted(last.clone())),
        _ => None,
    }
}

/// Kinds whose status is written through the subresource alone.
fn has_status(resource: &ApiResource) -> bool {
    !matches!(resource.kind.as_str(), "ConfigMap" | "Secret" | "Event" | "Lease")
}

fn same(a: &Value, b: &Value) -> bool {
    let strip = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        value
    };
    strip(a) == strip(b)
}
