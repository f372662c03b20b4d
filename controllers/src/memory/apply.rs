//! Tracks field ownership of server-side apply: who wrote which leaf, and which changes conflict.

use serde_json::{Map, Value, json};

use super::fields::{self, FieldSet, Path};
use super::refusals;
use crate::api::ApiError;

/// One entry of `managedFields`.
struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    set: FieldSet,
    /// The set as it was read: most writes change none.
    read: Option<Value>,
}

fn read(object: &Value) -> Vec<Entry> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .map(|entries| {
            entries
                .iter()
                .map(|entry| {
                    let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
                    let (set, same) = fields::from_v1(fields);
                    Entry {
                        manager: text(entry, "manager"),
                        operation: text(entry, "operation"),
                        subresource: text(entry, "subresource"),
                        set,
                        read: same.then(|| fields.clone()),
                    }
                })
                .collect()
        })
        .unwrap_or_default()
}

fn write(object: &mut Value, entries: Vec<Entry>) {
    let api_version = object.get("apiVersion").cloned().unwrap_or_default();
    let list: Vec<Value> = entries
        .into_iter()
        .filter(|entry| !entry.set.is_empty())
        .map(|entry| {
            let fields = entry.read.unwrap_or_else(|| fields::to_v1(&entry.set));
            let mut map = Map::new();
            map.insert("manager".to_owned(), Value::String(entry.manager));
            map.insert("operation".to_owned(), Value::String(entry.operation));
            map.insert("apiVersion".to_owned(), api_version.clone());
            map.insert("fieldsType".to_owned(), Value::String("FieldsV1".to_owned()));
            map.insert("fieldsV1".to_owned(), fields);
            if !entry.subresource.is_empty() {
                map.insert("subresource".to_owned(), Value::String(entry.subresource));
            }
            Value::Object(map)
        })
        .collect();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if list.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }
}

impl Entry {
    fn new(manager: &str, operation: &str, subresource: &str, set: FieldSet) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            subresource: subresource.to_owned(),
            set,
            read: None,
        }
    }

    fn is(&self, manager: &str, operation: &str, subresource: &str) -> bool {
        self.manager == manager && self.operation == operation && self.subresource == subresource
    }

    fn retain(&mut self, keeps: impl Fn(&Path) -> bool) {
        if !self.set.iter().all(&keeps) {
            self.set.retain(keeps);
            self.read = None;
        }
    }

    fn remove(&mut self, path: &str) {
        if self.set.remove(path) {
            self.read = None;
        }
    }

    fn extend(&mut self, more: FieldSet) {
        if !more.is_subset(&self.set) {
            self.set.extend(more);
            self.read = None;
        }
    }

    fn replace(&mut self, set: FieldSet) {
        if self.set != set {
            self.set = set;
            self.read = None;
        }
    }

    /// The entry's manager, as a conflict with it names it.
    fn shown(&self, api_version: &str) -> String {
        let mut shown = format!("\"{}\"", self.manager);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource \"{}\"", self.subresource));
        }
        if self.operation == "Update" {
            shown.push_str(&format!(" using {api_version}"));
        }
        shown
    }
}

/// After a create, replace or patch by `manager`: what it changed is its own now, and nobody else's.
pub(super) fn updated(before: Option<&Value>, after: &mut Value, manager: &str, subresource: &str) {
    let mut entries = before.map(read).unwrap_or_default();
    let changed = fields::changed(before, after, subresource);
    if !entries.is_empty() {
        let mut now = fields::leaves(after, "");
        now.append(&mut fields::leaves(after, "status"));
        for entry in &mut entries {
            let own = entry.is(manager, "Update", subresource);
            entry.retain(|path| now.contains(path) && (own || !changed.contains(path)));
        }
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is(manager, "Update", subresource)) {
            Some(entry) => entry.extend(changed),
            None => entries.push(Entry::new(manager, "Update", subresource, changed)),
        }
    }
    write(after, entries);
}

/// Server-side apply of `intent`, or of its status, onto `live`.
pub(super) fn apply(
    live: Option<&Value>,
    intent: &Value,
    manager: &str,
    force: bool,
    subresource: &str,
) -> Result<Value, ApiError> {
    let mut object = live.cloned().unwrap_or_else(|| {
        json!({"apiVersion": intent.get("apiVersion"), "kind": intent.get("kind"), "metadata": {
            "name": intent.pointer("/metadata/name"), "namespace": intent.pointer("/metadata/namespace")}})
    });
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !value.is_null());
    }
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut entries = read(&object);
    let wanted = fields::leaves(intent, subresource);
    let mut changes = fields::changed(Some(&object), intent, subresource);
    let mut conflicts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is(manager, "Apply", subresource)) {
        for path in changes.iter().filter(|path| entry.set.contains(*path)) {
            if fields::would_change(&object, intent, path) {
                conflicts.push((entry.shown(&api_version), fields::shown(path)));
            }
        }
    }
    if !conflicts.is_empty() && !force {
        return Err(refusals::apply_conflicts(conflicts));
    }
    let own = entries.iter().find(|entry| entry.is(manager, "Apply", subresource));
    let unsaid: Vec<Path> =
        own.map(|entry| entry.set.difference(&wanted).cloned().collect()).unwrap_or_default();
    for path in &unsaid {
        let others =
            entries.iter().any(|entry| !entry.is(manager, "Apply", subresource) && entry.set.contains(path));
        if !others {
            fields::remove(&mut object, path);
        }
    }
    if !unsaid.is_empty() {
        // With the last of its fields an item may have gone that is still wanted.
        changes = fields::changed(Some(&object), intent, subresource);
    }
    for path in &changes {
        if let Some(value) = fields::get(intent, path)
            && fields::would_change(&object, intent, path)
        {
            for entry in &mut entries {
                entry.remove(path);
            }
            fields::set(&mut object, path, value);
        }
    }
    // In its place: an apply that changes nothing must not move the version by turning entries round.
    match entries.iter_mut().find(|entry| entry.is(manager, "Apply", subresource)) {
        Some(entry) => entry.replace(wanted),
        None => entries.push(Entry::new(manager, "Apply", subresource, wanted)),
    }
    write(&mut object, entries);
    Ok(object)
}
