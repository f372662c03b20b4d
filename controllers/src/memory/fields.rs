//! Converts objects to field sets of server-side apply, and these to and from `fieldsV1`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// One step of a path: `f:name`, `k:{...}` for an item of an associative list, `v:...` for a member of a set.
pub(super) type Step = String;
/// A path from the root to a leaf (an atomic list is a leaf).
pub(super) type Path = Vec<Step>;
/// A set of leaves.
pub(super) type FieldSet = BTreeSet<Path>;

/// What is known of a kind's schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    /// A kind of Kubernetes' own.
    BuiltIn,
    /// A kind of EMCO's own: its lists of conditions go by type, any other is taken as one leaf.
    Own,
    /// A custom kind of which nothing is known: each list is one leaf, each map is not.
    Unknown,
}

impl Schema {
    fn of(object: &Value) -> Self {
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        match api_version.split_once('/').map_or("", |(group, _)| group) {
            "emco.io" => Self::Own,
            group if group.contains('.') && !group.ends_with(".k8s.io") => Self::Unknown,
            _ => Self::BuiltIn,
        }
    }
}

/// Merge keys of the associative lists that workloads use; any other list is one leaf.
fn merge_keys(schema: Schema, list: &str, item: &Value) -> Option<&'static [&'static str]> {
    match list {
        "ownerReferences" => Some(&["uid"]),
        _ if schema == Schema::Unknown || (schema == Schema::Own && list != "conditions") => None,
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "ephemeralContainers" => {
            Some(&["name"])
        }
        "volumeMounts" => Some(&["mountPath"]),
        "ports" if item.get("containerPort").is_some() => Some(&["containerPort", "protocol"]),
        "ports" if item.get("port").is_some() => Some(&["port", "protocol"]),
        "conditions" => Some(&["type"]),
        _ => None,
    }
}

/// Whether a map, or an item of a list, is one leaf.
fn is_atomic(schema: Schema, name: &str) -> bool {
    let built_in = matches!(
        name,
        "selector"
            | "labelSelector"
            | "namespaceSelector"
            | "podSelector"
            | "nodeSelector"
            | "imagePullSecrets"
            | "configMapKeyRef"
            | "secretKeyRef"
            | "fieldRef"
            | "resourceFieldRef"
            | "roleRef"
            | "scaleTargetRef"
    );
    name == "ownerReferences" || (built_in && schema == Schema::BuiltIn)
}

/// The step of a list item, or `None` where the list is atomic.
fn item_step(schema: Schema, list: &str, item: &Value) -> Option<Step> {
    if list == "finalizers" {
        return Some(format!("v:{item}"));
    }
    let keys = merge_keys(schema, list, item)?;
    let mut key = Map::new();
    for name in keys {
        let value = match item.get(*name) {
            Some(value) => value.clone(),
            None if *name == "protocol" => json!("TCP"),
            None => return None,
        };
        key.insert((*name).to_owned(), value);
    }
    Some(format!("k:{}", Value::Object(key)))
}

fn steps_of_list(schema: Schema, name: &str, items: &[Value]) -> Option<Vec<Step>> {
    if items.is_empty() {
        return None;
    }
    items.iter().map(|item| item_step(schema, name, item)).collect()
}

/// All leaves that managers own of an object, or of its `status` where that is the subresource: everything but identity and
/// what the server writes.
pub(super) fn leaves(object: &Value, subresource: &str) -> FieldSet {
    let mut set = FieldSet::new();
    let schema = Schema::of(object);
    if subresource == "status" {
        if let Some(status) = object.get("status") {
            collect(schema, "status", status, vec!["f:status".to_owned()], &mut set);
        }
        return set;
    }
    if let Value::Object(map) = object {
        for (name, value) in map {
            match name.as_str() {
                "apiVersion" | "kind" | "status" => {}
                "metadata" => {
                    for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
                        if let Some(value) = value.get(part) {
                            collect(
                                schema,
                                part,
                                value,
                                vec!["f:metadata".to_owned(), format!("f:{part}")],
                                &mut set,
                            );
                        }
                    }
                }
                _ => collect(schema, name, value, vec![format!("f:{name}")], &mut set),
            }
        }
    }
    set
}

fn collect(schema: Schema, name: &str, value: &Value, path: Path, set: &mut FieldSet) {
    match value {
        Value::Object(map) if !map.is_empty() && !is_atomic(schema, name) => {
            for (key, value) in map {
                let mut path = path.clone();
                path.push(format!("f:{key}"));
                collect(schema, key, value, path, set);
            }
        }
        Value::Array(items) => match steps_of_list(schema, name, items) {
            Some(steps) => {
                for (step, item) in steps.into_iter().zip(items) {
                    let mut path = path.clone();
                    path.push(step);
                    // An item is named as its list, so that it may be atomic.
                    collect(schema, name, item, path, set);
                }
            }
            None => {
                set.insert(path);
            }
        },
        _ => {
            set.insert(path);
        }
    }
}

fn position(items: &[Value], step: &str) -> Option<usize> {
    if let Some(member) = step.strip_prefix("v:") {
        return items.iter().position(|item| serde_json::from_str::<Value>(member).is_ok_and(|m| m == *item));
    }
    let key: Value = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
    let key = key.as_object()?;
    items.iter().position(|item| {
        key.iter().all(|(name, want)| match item.get(name) {
            Some(have) => have == want,
            None => name == "protocol" && want == "TCP",
        })
    })
}

/// Reads the value at a path.
pub(super) fn get<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    let mut at = object;
    for step in path {
        at = match at {
            Value::Object(map) => map.get(step.strip_prefix("f:")?)?,
            Value::Array(items) => items.get(position(items, step)?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Whether an apply that says a leaf changes what is there. An empty map adds nothing to a map.
pub(super) fn would_change(object: &Value, intent: &Value, path: &[Step]) -> bool {
    match (get(object, path), get(intent, path)) {
        (Some(Value::Object(_)), Some(Value::Object(wanted))) if wanted.is_empty() => {
            let name = path.last().and_then(|step| step.strip_prefix("f:")).unwrap_or_default();
            is_atomic(Schema::of(object), name)
        }
        (there, wanted) => there != wanted,
    }
}

/// Writes the value at a path, making what is missing on the way.
pub(super) fn set(object: &mut Value, path: &[Step], value: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *object = value.clone();
        return;
    };
    if let Some(name) = step.strip_prefix("f:") {
        if !object.is_object() {
            *object = json!({});
        }
        if let Some(map) = object.as_object_mut() {
            set(map.entry(name).or_insert(Value::Null), rest, value);
        }
    } else if let Some(key) = step.strip_prefix("k:").or_else(|| step.strip_prefix("v:")) {
        if !object.is_array() {
            *object = json!([]);
        }
        if let Some(items) = object.as_array_mut() {
            let at = position(items, step).unwrap_or_else(|| {
                items.push(serde_json::from_str(key).unwrap_or(Value::Null));
                items.len() - 1
            });
            if let Some(item) = items.get_mut(at) {
                set(item, rest, value);
            }
        }
    }
}

/// Removes the value at a path, and what became empty on the way.
pub(super) fn remove(object: &mut Value, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else { return };
    match object {
        Value::Object(map) => {
            let Some(name) = step.strip_prefix("f:") else { return };
            if rest.is_empty() {
                map.remove(name);
            } else if let Some(child) = map.get_mut(name) {
                remove(child, rest);
                if is_empty(child) {
                    map.remove(name);
                }
            }
        }
        Value::Array(items) => {
            let Some(at) = position(items, step) else { return };
            if rest.is_empty() {
                items.remove(at);
            } else if let Some(item) = items.get_mut(at) {
                remove(item, rest);
                let only_key = serde_json::from_str::<Value>(step.trim_start_matches("k:"))
                    .is_ok_and(|key| key == *item);
                if is_empty(item) || only_key {
                    items.remove(at);
                }
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A path as conflicts name it: `.spec.containers[name="web"].image`.
pub(super) fn shown(path: &[Step]) -> String {
    let step = |step: &Step| match (step.strip_prefix("f:"), step.strip_prefix("k:"), step.strip_prefix("v:"))
    {
        (Some(name), ..) => format!(".{name}"),
        (_, Some(key), _) => {
            let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
            let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        (.., Some(member)) => format!("[={member}]"),
        _ => String::new(),
    };
    path.iter().map(step).collect()
}

/// Writes a set as `fieldsV1`.
pub(super) fn to_v1(set: &FieldSet) -> Value {
    let mut root = json!({});
    for path in set {
        let mut at = &mut root;
        for step in path {
            let Some(map) = at.as_object_mut() else { break };
            at = map.entry(step.clone()).or_insert_with(|| json!({}));
        }
    }
    root
}

/// Reads a set from `fieldsV1`.
pub(super) fn from_v1(value: &Value) -> FieldSet {
    fn walk(value: &Value, path: &mut Path, set: &mut FieldSet) {
        match value.as_object() {
            Some(map) if !map.is_empty() => {
                for (step, value) in map {
                    if step != "." {
                        path.push(step.clone());
                        walk(value, path, set);
                        path.pop();
                    }
                }
            }
            _ => {
                set.insert(path.clone());
            }
        }
    }
    let mut set = FieldSet::new();
    walk(value, &mut Path::new(), &mut set);
    set.remove(&Path::new());
    set
}
