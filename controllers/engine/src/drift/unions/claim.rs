//! Makes fields of a live object those of one manager, in its `managedFields`. Nothing else of the object changes.

use serde_json::{Map, Value, json};

use super::{Stale, Step};
use crate::canonical;

/// The `managedFields` in which the apply of this manager has these fields, and nobody else: its next apply, which does not say
/// them, takes them away in the same write. `None` where the manager has no apply there, or nothing would be another.
pub fn claimed(entries: &[Value], manager: &str, stale: &[Stale]) -> Option<Vec<Value>> {
    let is_own = |entry: &Value| {
        let whole = entry.get("subresource").is_none_or(|subresource| subresource == "");
        entry["manager"] == manager && entry["operation"] == "Apply" && whole
    };
    if stale.is_empty() || !entries.iter().any(is_own) {
        return None;
    }
    let mut all = entries.to_vec();
    for entry in &mut all {
        let own = is_own(entry);
        let Some(fields) = entry.get_mut("fieldsV1") else { continue };
        for Stale { steps, value, .. } in stale {
            if own {
                insert(fields, steps, value);
            } else {
                remove(fields, steps);
            }
        }
    }
    all.retain(|entry| entry.get("fieldsV1").and_then(Value::as_object).is_none_or(|map| !map.is_empty()));
    (all != entries).then_some(all)
}

/// A step as it is written in a map of fields.
fn key(fields: &Map<String, Value>, step: &Step) -> String {
    match step {
        Step::Field(name) => format!("f:{name}"),
        Step::Item(keys) => {
            let keys = Value::Object(keys.clone());
            let is_it = |known: &&String| {
                let known =
                    known.strip_prefix("k:").and_then(|text| serde_json::from_str::<Value>(text).ok());
                known.as_ref() == Some(&keys)
            };
            let written = || format!("k:{}", String::from_utf8_lossy(&canonical::json(&keys)));
            fields.keys().find(is_it).cloned().unwrap_or_else(written)
        }
    }
}

fn insert(fields: &mut Value, steps: &[Step], value: &Value) {
    let Some((step, rest)) = steps.split_first() else {
        merge(fields, value);
        return;
    };
    let Some(map) = fields.as_object_mut() else { return };
    let key = key(map, step);
    let is_leaf = map.get(&key).and_then(Value::as_object).is_some_and(Map::is_empty);
    let below = map.entry(key).or_insert_with(|| match step {
        Step::Item(_) => json!({".": {}}),
        Step::Field(_) => json!({}),
    });
    // A map that was said to be empty is a leaf, and nothing below it is ours.
    if is_leaf && !rest.is_empty() {
        *below = json!({".": {}});
    }
    insert(below, rest, value);
}

/// Adds all fields of a value.
fn merge(fields: &mut Value, value: &Value) {
    let (Some(map), Some(value)) = (fields.as_object_mut(), value.as_object()) else { return };
    if value.is_empty() {
        return;
    }
    map.insert(".".to_owned(), json!({}));
    for (name, value) in value {
        merge(map.entry(format!("f:{name}")).or_insert_with(|| json!({})), value);
    }
}

/// Takes a field away, and what has no field any more for it.
fn remove(fields: &mut Value, steps: &[Step]) {
    let (Some(map), Some((step, rest))) = (fields.as_object_mut(), steps.split_first()) else { return };
    let key = key(map, step);
    let Some(below) = map.get_mut(&key) else { return };
    let had = below.as_object().is_some_and(|map| !map.is_empty());
    if !rest.is_empty() {
        remove(below, rest);
    }
    if rest.is_empty() || (had && below.as_object().is_some_and(Map::is_empty)) {
        map.remove(&key);
    }
}
