//! Compares a manifest with an entry of `managedFields`: which of its fields the entry does not own, and the manifest
//! with the fields that are left to others.

use serde_json::{Map, Value};

/// JSON pointers to the fields of a manifest that a field set (`fieldsV1`) does not own, in order. What a server keeps no
/// ownership of is passed over: identity, the status, nothing, and what is empty.
pub fn missing(manifest: &Value, fields: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let Some(map) = manifest.as_object() else { return out };
    for (key, value) in map {
        let below = child(Some(fields), key);
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    if let Some(value) = value.get(part) {
                        walk(value, child(below, part), &format!("/metadata/{part}"), &mut out);
                    }
                }
            }
            _ => walk(value, below, &format!("/{}", escape(key)), &mut out),
        }
    }
    out.sort();
    out
}

fn walk(value: &Value, fields: Option<&Value>, at: &str, out: &mut Vec<String>) {
    let empty = match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        return;
    }
    let Some(owned) = fields.and_then(Value::as_object) else {
        out.push(at.to_owned());
        return;
    };
    // A leaf: all that is below belongs to it.
    if owned.is_empty() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                walk(value, child(fields, key), &format!("{at}/{}", escape(key)), out);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, entry(owned, item).map(|(_, below)| below), &format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
}

fn child<'a>(fields: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    let fields = fields?;
    // Below a leaf everything is the leaf's.
    if fields.as_object().is_some_and(Map::is_empty) {
        return Some(fields);
    }
    fields.get(format!("f:{key}"))
}

/// The entry of a field set that stands for an item of a list: by its value, or by its keys. A key that the item does not
/// say has the server's default.
fn entry<'a>(fields: &'a Map<String, Value>, item: &Value) -> Option<(Option<Value>, &'a Value)> {
    fields.iter().find_map(|(step, below)| {
        if let Some(member) = step.strip_prefix("v:") {
            return (serde_json::from_str::<Value>(member).ok()? == *item).then_some((None, below));
        }
        let key: Value = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
        same_key(&key, item).then_some((Some(key), below))
    })
}

fn same_key(key: &Value, item: &Value) -> bool {
    key.as_object().is_some_and(|key| {
        key.iter().all(|(name, want)| item.get(name).is_none_or(|have| have == want))
            && key.keys().any(|name| item.get(name).is_some())
    })
}

pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether one of the pointers is this one or stands above it.
pub fn covers(pointers: &[String], pointer: &str) -> bool {
    pointers.iter().any(|above| {
        pointer.strip_prefix(above.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether all that a manifest says at a pointer is left to others: by a pointer to it or above it, or by pointers below it that name
/// each field. An entry that lost the last field of a map has lost the map.
pub fn left_to_others(manifest: &Value, pointers: &[String], pointer: &str) -> bool {
    if covers(pointers, pointer) {
        return true;
    }
    let above = [pointer.to_owned()];
    let below: Vec<String> = pointers.iter().filter(|below| covers(&above, below)).cloned().collect();
    if below.is_empty() {
        return false;
    }
    let mut rest = manifest.clone();
    leave(&mut rest, &Value::Null, &Value::Null, &below);
    rest.pointer(pointer).is_none_or(says_nothing)
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(says_nothing),
        Value::Array(items) => items.iter().all(says_nothing),
        _ => false,
    }
}

/// Makes a manifest leave fields as they are on the live object: those that the entry (`fields`) still owns are said with
/// their live value, all others are not said, so that they stay with whom they belong to.
pub fn leave(manifest: &mut Value, live: &Value, fields: &Value, pointers: &[String]) {
    let tokens = |pointer: &String| -> Vec<String> {
        pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
    };
    let mut all: Vec<Vec<String>> = pointers.iter().map(tokens).collect();
    // Of a list the last items first: what leaves moves the places of those after it.
    all.sort_by_key(|tokens| {
        let key = |token: &String| (token.parse::<usize>().ok(), token.clone());
        std::cmp::Reverse(tokens.iter().map(key).collect::<Vec<_>>())
    });
    for tokens in all {
        descend(manifest, Some(live), Some(fields), &tokens);
    }
}

/// Goes to the field; false where the caller has to take it out of its parent.
fn descend(value: &mut Value, live: Option<&Value>, fields: Option<&Value>, tokens: &[String]) -> bool {
    let Some((token, rest)) = tokens.split_first() else {
        match follow(value, live, fields) {
            Some(fresh) => *value = fresh,
            None => return false,
        }
        return true;
    };
    match value {
        Value::Object(map) => {
            let Some(below) = map.get_mut(token) else { return true };
            if !descend(below, live.and_then(|l| l.get(token)), child(fields, token), rest) {
                map.remove(token);
            }
        }
        Value::Array(items) => {
            let Some(index) = token.parse::<usize>().ok().filter(|index| *index < items.len()) else {
                return true;
            };
            let Some(item) = items.get_mut(index) else { return true };
            let (live, below) = counterpart(item, index, live, fields);
            if !descend(item, live, below, rest) {
                items.remove(index);
            }
        }
        _ => {}
    }
    true
}

/// The live item that an item of a manifest became, and what the entry says of it.
fn counterpart<'a>(
    item: &Value,
    index: usize,
    live: Option<&'a Value>,
    fields: Option<&'a Value>,
) -> (Option<&'a Value>, Option<&'a Value>) {
    let items = live.and_then(Value::as_array);
    let same_place = items.and_then(|items| items.get(index));
    match fields.and_then(Value::as_object) {
        Some(owned) if owned.is_empty() => (same_place, fields),
        Some(owned) => match entry(owned, item) {
            Some((Some(key), below)) => {
                (items.and_then(|items| items.iter().find(|live| same_key(&key, live))), Some(below))
            }
            Some((None, below)) => {
                (items.and_then(|items| items.iter().find(|live| *live == item)), Some(below))
            }
            None => (None, None),
        },
        None => (None, None),
    }
}

/// What to say of a field that is left alone; `None`: nothing.
fn follow(value: &Value, live: Option<&Value>, fields: Option<&Value>) -> Option<Value> {
    let (live, fields) = (live?, fields?);
    let owned = fields.as_object()?;
    if owned.is_empty() {
        return Some(live.clone());
    }
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .iter()
                .filter_map(|(key, value)| {
                    Some((key.clone(), follow(value, live.get(key), child(Some(fields), key))?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| {
                    let (live, below) = counterpart(item, index, Some(live), Some(fields));
                    follow(item, live, below)
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => Some(live.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn web() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web", "tier": "a/b"}, "annotations": {}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {
            "containers": [
                {"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}], "args": ["a", "b"]},
                {"name": "side", "image": "side:1"},
            ]}}}})
    }

    fn fields() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:app": {}, "f:tier": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}},
                "k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}},
            }}}},
        })
    }

    #[test]
    fn what_an_apply_left_us_with_misses_nothing() {
        assert_eq!(missing(&web(), &fields()), Vec::<String>::new());
        assert_eq!(missing(&web(), &json!({})).len(), 0, "an entry that is a leaf owns everything");
    }

    #[test]
    fn fields_that_left_our_entry_are_named_by_pointers_into_the_manifest() {
        let mut less = fields();
        less["f:spec"].as_object_mut().unwrap().remove("f:replicas");
        less["f:metadata"]["f:labels"].as_object_mut().unwrap().remove("f:tier");
        let containers = &mut less["f:spec"]["f:template"]["f:spec"]["f:containers"];
        containers["k:{\"name\":\"c\"}"].as_object_mut().unwrap().remove("f:image");
        containers.as_object_mut().unwrap().remove("k:{\"name\":\"side\"}");
        let lost = missing(&web(), &less);
        assert_eq!(
            lost,
            [
                "/metadata/labels/tier",
                "/spec/replicas",
                "/spec/template/spec/containers/0/image",
                "/spec/template/spec/containers/1",
            ]
        );
        let ignored = ["/spec/template/spec/containers".to_owned()];
        assert!(covers(&ignored, &lost[2]) && covers(&ignored, &lost[3]) && !covers(&ignored, &lost[1]));
        assert!(!covers(&["/spec/replica".to_owned()], "/spec/replicas"));
    }

    #[test]
    fn a_map_whose_every_field_is_left_to_others_is_theirs() {
        let manifest =
            json!({"data": {"a": "1", "b/c": "2"}, "spec": {"list": [{"name": "x", "at": 1}], "no": {}}});
        let left = |pointers: &[&str], pointer: &str| {
            let pointers: Vec<String> = pointers.iter().map(|pointer| (*pointer).to_owned()).collect();
            left_to_others(&manifest, &pointers, pointer)
        };
        assert!(left(&["/data/a", "/data/b~1c"], "/data") && left(&["/data"], "/data/a"));
        assert!(!left(&["/data/a"], "/data"), "another field of it is ours");
        assert!(!left(&["/data/none"], "/data") && !left(&["/dat"], "/data") && !left(&[], "/data"));
        assert!(left(&["/spec/list/0"], "/spec/list") && left(&["/spec/list/0"], "/spec"));
        assert!(!left(&["/spec/list/0/at"], "/spec/list"), "its name is ours");
    }

    #[test]
    fn items_that_are_left_to_others_leave_whatever_their_order() {
        let mut manifest = json!({"list": (0..12).collect::<Vec<_>>()});
        let pointers: Vec<String> = (0..11).map(|at| format!("/list/{at}")).collect();
        leave(&mut manifest, &Value::Null, &Value::Null, &pointers);
        assert_eq!(manifest, json!({"list": [11]}));
    }

    #[test]
    fn a_field_left_alone_is_said_as_it_is_while_it_is_ours_and_not_at_all_after() {
        let mut live = web();
        live["spec"]["replicas"] = json!(7);
        let pointers = ["/spec/replicas".to_owned()];
        let mut ours = web();
        leave(&mut ours, &live, &fields(), &pointers);
        assert_eq!(ours["spec"]["replicas"], 7, "not said, it would fall back to the server's default");
        let mut less = fields();
        less["f:spec"].as_object_mut().unwrap().remove("f:replicas");
        let mut theirs = web();
        leave(&mut theirs, &live, &less, &pointers);
        assert_eq!(theirs["spec"].get("replicas"), None, "said, it would be fought over");
        assert_eq!(theirs["spec"]["template"], web()["spec"]["template"]);
    }

    #[test]
    fn items_of_lists_are_found_by_their_keys_wherever_they_stand() {
        let mut live = web();
        let containers = live["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
        containers.insert(0, json!({"name": "injected", "image": "mesh:9"}));
        containers[1]["image"] = json!("nginx:2");
        let mut manifest = web();
        leave(&mut manifest, &live, &fields(), &["/spec/template/spec/containers/0/image".to_owned()]);
        let said = manifest.pointer("/spec/template/spec/containers").unwrap();
        assert_eq!(said[0]["image"], "nginx:2");
        assert_eq!(said.as_array().unwrap().len(), 2, "what others injected is not ours to say");
    }

    #[test]
    fn a_map_left_alone_keeps_saying_what_is_still_ours_of_it() {
        let mut less = fields();
        less["f:metadata"]["f:labels"].as_object_mut().unwrap().remove("f:tier");
        let (mut manifest, mut live) = (web(), web());
        live["metadata"]["labels"] = json!({"app": "web", "tier": "theirs", "more": "x"});
        leave(
            &mut manifest,
            &live,
            &less,
            &["/metadata/labels".to_owned(), "/spec/nothing/there".to_owned()],
        );
        assert_eq!(manifest["metadata"]["labels"], json!({"app": "web"}));
        let mut one = web();
        leave(&mut one, &live, &less, &["/metadata/labels/tier".to_owned()]);
        assert_eq!(one["metadata"]["labels"], json!({"app": "web"}));
    }
}
