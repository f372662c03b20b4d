//! Converts objects to field sets of server-side apply, and these to and from `fieldsV1`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A path from the root to a leaf (an atomic list is a leaf). Its steps are `f:name`, `k:{...}` for an item of an associative list,
/// and `v:...` for a member of a set, with [`NEXT`] between them.
pub(super) type Path = String;
/// A set of leaves.
pub(super) type FieldSet = BTreeSet<Path>;

/// Stands between steps. It is in none of them and comes before all that is, so that paths are in the order of their steps.
const NEXT: char = '\0';

/// What is known of a kind's schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    /// A kind of Kubernetes' own.
    BuiltIn,
    /// One whose lists others add to are one leaf.
    ServiceAccount,
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
            "" if object.get("kind").is_some_and(|kind| kind == "ServiceAccount") => Self::ServiceAccount,
            _ => Self::BuiltIn,
        }
    }
}

/// Merge keys of the associative lists that workloads use; any other list is one leaf.
fn merge_keys(schema: Schema, list: &str, item: &Value) -> Option<&'static [&'static str]> {
    match list {
        "ownerReferences" => Some(&["uid"]),
        "imagePullSecrets" if schema == Schema::ServiceAccount => None,
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
fn item_step(schema: Schema, list: &str, item: &Value) -> Option<String> {
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

fn steps_of_list(schema: Schema, name: &str, items: &[Value]) -> Option<Vec<String>> {
    if items.is_empty() {
        return None;
    }
    items.iter().map(|item| item_step(schema, name, item)).collect()
}

/// All leaves that managers own of an object, or of its `status` where that is the subresource: everything but identity and
/// what the server writes.
pub(super) fn leaves(object: &Value, subresource: &str) -> FieldSet {
    changed(None, object, subresource)
}

/// Of these leaves, those that were not there before or had another value.
pub(super) fn changed(before: Option<&Value>, object: &Value, subresource: &str) -> FieldSet {
    let mut walk = Walk { schema: Schema::of(object), path: Path::new(), found: Vec::new() };
    let Value::Object(map) = object else { return FieldSet::new() };
    for (name, value) in map {
        match name.as_str() {
            "status" if subresource == "status" => walk.field(name, before, value),
            _ if subresource == "status" => {}
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let before = before.and_then(|before| before.get("metadata"));
                let parts = ["labels", "annotations", "finalizers", "ownerReferences"];
                walk.under("f:", "metadata", |walk| {
                    for part in parts {
                        if let Some(value) = value.get(part) {
                            walk.field(part, before, value);
                        }
                    }
                });
            }
            _ => walk.field(name, before, value),
        }
    }
    walk.found.into_iter().collect()
}

/// Goes through an object, beside what it was before.
struct Walk {
    schema: Schema,
    /// Of the value that it is at.
    path: Path,
    found: Vec<Path>,
}

impl Walk {
    /// One step further, and back.
    fn under(&mut self, kind: &str, step: &str, act: impl FnOnce(&mut Self)) {
        let end = self.path.len();
        if end > 0 {
            self.path.push(NEXT);
        }
        self.path.push_str(kind);
        self.path.push_str(step);
        act(self);
        self.path.truncate(end);
    }

    /// A field of a map, which was this.
    fn field(&mut self, name: &str, map: Option<&Value>, value: &Value) {
        let before = map.and_then(|map| map.get(name));
        if before != Some(value) {
            self.under("f:", name, |walk| walk.value(name, before, value));
        }
    }

    /// What differs from what was before.
    fn value(&mut self, name: &str, before: Option<&Value>, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() && !is_atomic(self.schema, name) => {
                for (key, value) in map {
                    self.field(key, before, value);
                }
            }
            Value::Array(items) => match steps_of_list(self.schema, name, items) {
                Some(steps) => {
                    let known = before.and_then(Value::as_array);
                    for (step, item) in steps.iter().zip(items) {
                        let before = known.and_then(|known| known.get(position(known, step)?));
                        if before != Some(item) {
                            // An item is named as its list, so that it may be atomic.
                            self.under("", step, |walk| walk.value(name, before, item));
                        }
                    }
                }
                None => self.found.push(self.path.clone()),
            },
            _ => self.found.push(self.path.clone()),
        }
    }
}

fn position(items: &[Value], step: &str) -> Option<usize> {
    if let Some(member) = step.strip_prefix("v:") {
        let member: Value = member.parse().ok()?;
        return items.iter().position(|item| *item == member);
    }
    let key: Value = step.strip_prefix("k:")?.parse().ok()?;
    let key = key.as_object()?;
    items.iter().position(|item| {
        key.iter().all(|(name, want)| match item.get(name) {
            Some(have) => have == want,
            None => name == "protocol" && want == "TCP",
        })
    })
}

/// The first step of a path, and the others.
fn first(path: &str) -> (&str, Option<&str>) {
    path.split_once(NEXT).map_or((path, None), |(step, rest)| (step, Some(rest)))
}

/// Reads the value at a path.
pub(super) fn get<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    for step in path.split(NEXT) {
        at = match at {
            Value::Object(map) => map.get(step.strip_prefix("f:")?)?,
            Value::Array(items) => items.get(position(items, step)?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// An apply that says a leaf changes what is there. An empty map adds nothing to a map, and neither does nothing.
pub(super) fn would_change(object: &Value, intent: &Value, path: &str) -> bool {
    match (get(object, path), get(intent, path)) {
        (Some(Value::Object(there)), Some(wanted)) if !there.is_empty() && says_nothing(wanted) => {
            let name = path.rsplit(NEXT).next().and_then(|step| step.strip_prefix("f:")).unwrap_or_default();
            is_atomic(Schema::of(object), name)
        }
        (there, wanted) => there != wanted,
    }
}

fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Writes the value at a path, making what is missing on the way.
pub(super) fn set(object: &mut Value, path: &str, value: &Value) {
    let (step, rest) = first(path);
    let put = |place: &mut Value| match rest {
        Some(rest) => set(place, rest, value),
        None => *place = value.clone(),
    };
    if let Some(name) = step.strip_prefix("f:") {
        if !object.is_object() {
            *object = json!({});
        }
        if let Some(map) = object.as_object_mut() {
            put(map.entry(name).or_insert(Value::Null));
        }
    } else if let Some(key) = step.strip_prefix("k:").or_else(|| step.strip_prefix("v:")) {
        if !object.is_array() {
            *object = json!([]);
        }
        if let Some(items) = object.as_array_mut() {
            let at = position(items, step).unwrap_or_else(|| {
                items.push(key.parse().unwrap_or(Value::Null));
                items.len() - 1
            });
            if let Some(item) = items.get_mut(at) {
                put(item);
            }
        }
    }
}

/// Removes the value at a path, and what became empty on the way.
pub(super) fn remove(object: &mut Value, path: &str) {
    let (step, rest) = first(path);
    match object {
        Value::Object(map) => {
            let Some(name) = step.strip_prefix("f:") else { return };
            let Some(rest) = rest else { return drop(map.remove(name)) };
            if let Some(child) = map.get_mut(name) {
                remove(child, rest);
                if is_empty(child) {
                    map.remove(name);
                }
            }
        }
        Value::Array(items) => {
            let Some(at) = position(items, step) else { return };
            let Some(rest) = rest else { return drop(items.remove(at)) };
            if let Some(item) = items.get_mut(at) {
                remove(item, rest);
                let only_key = step.trim_start_matches("k:").parse::<Value>().is_ok_and(|key| key == *item);
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
pub(super) fn shown(path: &str) -> String {
    let step = |step: &str| match (step.strip_prefix("f:"), step.strip_prefix("k:"), step.strip_prefix("v:"))
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
    path.split(NEXT).map(step).collect()
}

/// Writes a set as `fieldsV1`.
pub(super) fn to_v1(set: &FieldSet) -> Value {
    let mut root = json!({});
    for path in set {
        let mut at = &mut root;
        for step in path.split(NEXT) {
            let Some(map) = at.as_object_mut() else { break };
            at = map.entry(step).or_insert_with(|| json!({}));
        }
    }
    root
}

/// Reads a set from `fieldsV1`, and whether [`to_v1`] would write the very same.
pub(super) fn from_v1(value: &Value) -> (FieldSet, bool) {
    fn walk(value: &Value, path: &mut Path, found: &mut Vec<Path>, same: &mut bool) {
        let fields = value.as_object();
        *same &= fields.is_some();
        match fields {
            Some(map) if !map.is_empty() => {
                for (step, value) in map {
                    if step == "." {
                        *same = false;
                        continue;
                    }
                    let end = path.len();
                    if end > 0 {
                        path.push(NEXT);
                    }
                    path.push_str(step);
                    walk(value, path, found, same);
                    path.truncate(end);
                }
            }
            _ => found.push(path.clone()),
        }
    }
    let (mut found, mut same) = (Vec::new(), true);
    walk(value, &mut Path::new(), &mut found, &mut same);
    found.retain(|path| !path.is_empty());
    (found.into_iter().collect(), same)
}
