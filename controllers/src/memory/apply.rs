//! Tracks field ownership of server-side apply: who wrote which leaf, and which changes conflict.

use serde_json::{Value, json};

use super::fields::{self, FieldSet};
use super::refusals;
use crate::runtime::api::ApiError;

/// One entry of `managedFields`.
struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    set: FieldSet,
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
                .map(|entry| Entry {
                    manager: text(entry, "manager"),
                    operation: text(entry, "operation"),
                    subresource: text(entry, "subresource"),
                    set: fields::from_v1(entry.get("fieldsV1").unwrap_or(&Value::Null)),
                })
                .collect()
        })
        .unwrap_or_default()
}

fn write(object: &mut Value, entries: &[Entry]) {
    let api_version = object.get("apiVersion").cloned().unwrap_or_default();
    let list: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.set.is_empty())
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager, "operation": entry.operation, "apiVersion": api_version,
                "fieldsType": "FieldsV1", "fieldsV1": fields::to_v1(&entry.set),
            });
            if let (false, Some(map)) = (entry.subresource.is_empty(), value.as_object_mut()) {
                map.insert("subresource".to_owned(), json!(entry.subresource));
            }
            value
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
    fn is(&self, manager: &str, operation: &str, subresource: &str) -> bool {
        self.manager == manager && self.operation == operation && self.subresource == subresource
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
    let mut now = fields::leaves(after, "");
    now.extend(fields::leaves(after, "status"));
    let written = fields::leaves(after, subresource);
    let changed: FieldSet = written
        .iter()
        .filter(|path| before.and_then(|b| fields::get(b, path)) != fields::get(after, path))
        .cloned()
        .collect();
    for entry in &mut entries {
        let own = entry.is(manager, "Update", subresource);
        entry.set.retain(|path| now.contains(path) && (own || !changed.contains(path)));
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is(manager, "Update", subresource)) {
            Some(entry) => entry.set.extend(changed),
            None => entries.push(Entry {
                manager: manager.to_owned(),
                operation: "Update".to_owned(),
                subresource: subresource.to_owned(),
                set: changed,
            }),
        }
    }
    write(after, &entries);
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
    let mut conflicts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is(manager, "Apply", subresource)) {
        for path in wanted.intersection(&entry.set) {
            if fields::would_change(&object, intent, path) {
                conflicts.push((entry.shown(&api_version), fields::shown(path)));
            }
        }
    }
    if !conflicts.is_empty() && !force {
        return Err(refusals::apply_conflicts(conflicts));
    }
    let before: FieldSet = entries
        .iter()
        .find(|entry| entry.is(manager, "Apply", subresource))
        .map(|entry| entry.set.clone())
        .unwrap_or_default();
    for path in before.difference(&wanted) {
        let others =
            entries.iter().any(|entry| !entry.is(manager, "Apply", subresource) && entry.set.contains(path));
        if !others {
            fields::remove(&mut object, path);
        }
    }
    for path in &wanted {
        if let Some(value) = fields::get(intent, path)
            && fields::would_change(&object, intent, path)
        {
            for entry in &mut entries {
                entry.set.remove(path);
            }
            fields::set(&mut object, path, value);
        }
    }
    // In its place: an apply that changes nothing must not move the version by turning entries round.
    match entries.iter_mut().find(|entry| entry.is(manager, "Apply", subresource)) {
        Some(entry) => entry.set = wanted,
        None => entries.push(Entry {
            manager: manager.to_owned(),
            operation: "Apply".to_owned(),
            subresource: subresource.to_owned(),
            set: wanted,
        }),
    }
    write(&mut object, &entries);
    Ok(object)
}
