//! Normalises manifests before they are stored and applied: lists expanded, what only a server may set dropped, names
//! made stable, list entries that server-side apply would refuse made one.
//!
//! The digests of what comes out are stored on hubs and edges: another result for the same manifest redeploys it.

mod lists;
mod secrets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::canonical;
use crate::identity::Identity;

pub(crate) use lists::pod_spec_path;

/// How deep lists may stand in lists.
const DEEPEST_LIST: usize = 8;

/// Helm's annotation for what stays on removal.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Metadata that an API server sets.
const SERVER_SET: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "generation",
    "selfLink",
];

/// What became of one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Normalised {
    /// The objects, in the order of the document.
    pub objects: Vec<Value>,
    /// Sentences about what was changed in a way people may care about.
    pub warnings: Vec<String>,
    /// The first object that no API server takes: what it is, without a value of it.
    pub fault: Option<String>,
}

/// Normalises one document of a chart. What is no object at all is left out with a warning.
pub fn normalise(document: Value) -> Normalised {
    let mut out = Normalised::default();
    expand(document, 0, &mut out);
    out
}

/// An object, or the head of a list, is marked to stay on removal.
pub fn is_marked_to_stay(object: &Map<String, Value>) -> bool {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations
        .and_then(|annotations| annotations.get(RESOURCE_POLICY))
        .and_then(Value::as_str)
        .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// Objects of a list take its place, also those of lists within it.
fn expand(document: Value, depth: usize, out: &mut Normalised) {
    let Value::Object(mut object) = document else {
        if !document.is_null() {
            out.warnings
                .push(format!("a document that is {} and no object was left out", name_of(&document)));
        }
        return;
    };
    let kind = text(&object, "kind").to_owned();
    let Some(member) = kind.strip_suffix("List").filter(|_| object.get("items").is_some_and(Value::is_array))
    else {
        if out.fault.is_none() && secrets::is_secret(&object) {
            out.fault = secrets::fault(&object);
        }
        out.objects.push(one(object, &mut out.warnings));
        return;
    };
    if depth >= DEEPEST_LIST {
        out.warnings.push(format!("lists in lists deeper than {DEEPEST_LIST} were left out"));
        return;
    }
    let api_version = text(&object, "apiVersion").to_owned();
    let stays = is_marked_to_stay(&object);
    let Some(Value::Array(items)) = object.remove("items") else { return };
    for mut item in items {
        // Items of a typed list (ConfigMapList) need not repeat what they are; those of a List do.
        if let (false, Some(fields)) = (member.is_empty(), item.as_object_mut()) {
            fields.entry("apiVersion").or_insert_with(|| Value::from(api_version.as_str()));
            fields.entry("kind").or_insert_with(|| Value::from(member));
        }
        if stays {
            mark_to_stay(&mut item);
        }
        expand(item, depth + 1, out);
    }
}

/// A list's mark on what is in it: nothing else of the list is left, and a removal looks at the live object.
fn mark_to_stay(item: &mut Value) {
    let mut parent = item.as_object_mut();
    for key in ["metadata", "annotations"] {
        parent = parent.and_then(|parent| {
            let child = parent.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if child.is_null() {
                *child = Value::Object(Map::new());
            }
            child.as_object_mut()
        });
    }
    if let Some(annotations) = parent {
        annotations.insert(RESOURCE_POLICY.to_owned(), Value::from("keep"));
    }
}

fn one(mut object: Map<String, Value>, warnings: &mut Vec<String>) -> Value {
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        clean_metadata(metadata);
    }
    for (key, value) in &mut object {
        if key != "metadata" {
            drop_null_timestamps(value, false);
        }
    }
    string_data(&mut object);
    stable_name(&mut object);
    let mut value = Value::Object(object);
    let name = Identity::of(&value).to_string();
    lists::unique(&mut value, &name, warnings);
    value
}

fn clean_metadata(metadata: &mut Map<String, Value>) {
    metadata.retain(|key, value| !value.is_null() && !SERVER_SET.contains(&key.as_str()));
    for key in ["labels", "annotations"] {
        let Some(map) = metadata.get_mut(key).and_then(Value::as_object_mut) else { continue };
        // The server reads null in a map of texts as the empty text; server-side apply would not own such a key.
        for value in map.values_mut().filter(|v| v.is_null()) {
            *value = Value::from("");
        }
    }
}

/// `creationTimestamp: null`, as Go writes it into the metadata of templates.
fn drop_null_timestamps(value: &mut Value, in_metadata: bool) {
    match value {
        Value::Object(map) => {
            if in_metadata && map.get("creationTimestamp").is_some_and(Value::is_null) {
                map.remove("creationTimestamp");
            }
            for (key, item) in map {
                drop_null_timestamps(item, key == "metadata");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_null_timestamps(item, false)),
        _ => {}
    }
}

/// A Secret's `stringData` into its `data`, where it wins: a key that later leaves `stringData` would stay for ever.
fn string_data(object: &mut Map<String, Value>) {
    if !secrets::is_secret(object) {
        return;
    }
    let Some(Value::Object(strings)) = object.remove("stringData") else { return };
    if strings.is_empty() {
        return;
    }
    let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else { return };
    for (key, value) in strings {
        let encoded = match value {
            Value::String(text) => Value::from(STANDARD.encode(text)),
            Value::Null => Value::from(""),
            // Not a text: the fault says so.
            other => other,
        };
        data.insert(key, encoded);
    }
}

/// Server-side apply needs a name; a name from the content stays while the content does.
fn stable_name(object: &mut Map<String, Value>) {
    // The name is made of the content as the chart wrote it.
    let asked = object.get("metadata").and_then(|metadata| metadata.get("generateName")).is_some();
    let content = if asked { canonical::json(&Value::Object(object.clone())) } else { Vec::new() };
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(Value::String(prefix)) = metadata.remove("generateName") else { return };
    if !text(metadata, "name").is_empty() || prefix.is_empty() {
        return;
    }
    let mut hash = hex::encode(Sha256::digest(content));
    hash.truncate(8);
    // A DNS label has 63 characters.
    let kept = prefix.get(..prefix.floor_char_boundary(55)).unwrap_or_default();
    metadata.insert("name".to_owned(), Value::from(format!("{kept}{hash}")));
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
