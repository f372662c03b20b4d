//! Compares an object with what an apply would leave of it. What is in Secrets is not shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest value that is shown.
const LONGEST: usize = 120;

/// One field that would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Such as `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<Value>,
    /// What would be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shall: Option<Value>,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| {
            let text = value.as_ref().map_or_else(|| "(nothing)".to_owned(), Value::to_string);
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        write!(f, "{}: {} -> {}", self.path, shown(&self.is), shown(&self.shall))
    }
}

/// The fields that differ between two states of one object, without what only servers and field managers write.
pub fn fields(is: &Value, shall: &Value) -> Vec<Field> {
    let secret = is["kind"] == "Secret" && is["apiVersion"] == "v1";
    let mut fields = Vec::new();
    walk(&bare(is), &bare(shall), String::new(), &mut fields);
    // Tools keep copies of whole objects in annotations.
    let quotes = |path: &str| {
        let begins = |name: &str| {
            path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        ["data", "stringData", "metadata.annotations"].into_iter().any(begins)
    };
    for field in &mut fields {
        if secret && quotes(&field.path) {
            let hidden = |value: &mut Option<Value>| {
                if let Some(value) = value {
                    *value = Value::from("(hidden)");
                }
            };
            hidden(&mut field.is);
            hidden(&mut field.shall);
        }
    }
    fields
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in
                ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"]
            {
                metadata.remove(key);
            }
            // What kubectl keeps there is a copy of the object, values of Secrets too.
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
            for key in ["labels", "annotations"] {
                if metadata.get(key).is_some_and(|map| map.as_object().is_some_and(Map::is_empty)) {
                    metadata.remove(key);
                }
            }
        }
    }
    object
}

fn walk(is: &Value, shall: &Value, path: String, fields: &mut Vec<Field>) {
    match (is, shall) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = below(&path, key);
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => walk(a, b, below, fields),
                    (is, shall) => fields.push(Field { path: below, is: is.cloned(), shall: shall.cloned() }),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                walk(a, b, format!("{path}[{at}]"), fields);
            }
        }
        (is, shall) if is == shall => {}
        (is, shall) => fields.push(Field { path, is: Some(is.clone()), shall: Some(shall.clone()) }),
    }
}

fn below(path: &str, key: &str) -> String {
    let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (path.is_empty(), plain) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (false, false) => format!("{path}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(is: &Value, shall: &Value) -> Vec<String> {
        fields(is, shall).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_are_named_by_their_path_and_servers_fields_are_none() {
        let is = json!({"kind": "Deployment", "metadata": {"name": "a", "generation": 1, "labels": {"x.io/a": "1"}},
            "spec": {"replicas": 5, "c": [{"image": "a"}]}, "status": {"replicas": 5}});
        let shall = json!({"kind": "Deployment", "metadata": {"name": "a", "generation": 2, "labels": {}},
            "spec": {"replicas": 2, "c": [{"image": "b"}], "paused": true}});
        assert_eq!(
            shown(&is, &shall),
            [
                "metadata.labels: {\"x.io/a\":\"1\"} -> (nothing)",
                "spec.c[0].image: \"a\" -> \"b\"",
                "spec.paused: (nothing) -> true",
                "spec.replicas: 5 -> 2",
            ]
        );
    }

    #[test]
    fn what_is_in_a_secret_is_not_shown() {
        let secret =
            |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": value, "a.b": value}});
        let shown = shown(&secret("aHVudGVyMg=="), &secret("eA=="));
        assert_eq!(
            shown,
            ["data[\"a.b\"]: \"(hidden)\" -> \"(hidden)\"", "data.key: \"(hidden)\" -> \"(hidden)\""]
        );
    }

    #[test]
    fn annotations_of_a_secret_may_have_a_copy_of_it_and_are_not_shown() {
        let secret = |copy: &str| {
            let metadata = json!({"annotations": {"example.com/original": copy}});
            json!({"apiVersion": "v1", "kind": "Secret", "type": copy, "metadata": metadata})
        };
        let shown = shown(&secret("aHVudGVyMg=="), &secret("eA=="));
        assert_eq!(
            shown,
            [
                "metadata.annotations[\"example.com/original\"]: \"(hidden)\" -> \"(hidden)\"",
                "type: \"aHVudGVyMg==\" -> \"eA==\"",
            ]
        );
    }

    #[test]
    fn the_copy_that_kubectl_keeps_of_an_object_is_no_difference() {
        let copy =
            json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"data\": \"aHVudGVyMg==\"}"});
        let is = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"annotations": copy}});
        assert_eq!(fields(&is, &json!({"kind": "Secret", "apiVersion": "v1", "metadata": {}})), []);
    }

    #[test]
    fn equal_objects_have_no_difference() {
        let object = json!({"a": [1, {"b": null}]});
        assert_eq!(fields(&object, &object), []);
    }
}
