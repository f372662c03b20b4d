//! Says which fields of an object an edit concerns, so that edits of two intents that contradict each other are found.
//!
//! A field is written as a JSON pointer. Where all items of a list have a name of their own, an item is written by it
//! (`/spec/template/spec/containers/[web]/image`), for its place changes with what others add. Any other list is one field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::edits::{Patch, WorkloadChange};

/// Fields that differ between two versions of an object.
pub fn touched(before: &Value, after: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare(Some(before), Some(after), "", &mut out);
    out
}

/// Fields that a patch of an object sets whatever they are before: one that sets what is there already has its say as well.
pub fn stated(patch: &Patch, object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    match patch {
        Patch::Merge(patch) => merged(patch, "", &mut out),
        Patch::Strategic(patch) => merged_by_keys(patch, "", &mut out),
        Patch::Workload(change) => out.extend(asked(change)),
        Patch::Json(operations) => {
            let sets = |operation: &&Value| operation.get("op").and_then(Value::as_str) != Some("test");
            let paths = operations.iter().filter(sets).filter_map(|operation| operation.get("path"));
            out.extend(paths.filter_map(|path| set_at(path.as_str()?, object)));
        }
    }
    out.sort();
    out.dedup();
    out
}

/// The field that an operation of a JSON patch sets; `None` for a place in a list that is not there yet: what becomes of the list tells.
fn set_at(path: &str, object: &Value) -> Option<String> {
    let (mut at, mut value) = (String::new(), Some(object));
    for part in path.split('/').skip(1) {
        let list = value;
        let Some(Value::Array(items)) = list else {
            value = value.and_then(|value| value.get(plain(part)));
            at.push('/');
            at.push_str(part);
            continue;
        };
        let item = items.get(part.parse::<usize>().ok()?)?;
        // A list without names is one field.
        if fields(list, &at).is_none() {
            return Some(at);
        }
        at = below(&at, &format!("[{}]", item.get("name")?.as_str()?));
        value = Some(item);
    }
    Some(at)
}

/// A part of a pointer without its escapes.
fn plain(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Fields of a workload that asks for hardware.
fn asked(change: &WorkloadChange) -> Vec<String> {
    let selector = below(&change.pods, "nodeSelector");
    let mut out: Vec<String> = change.node_selector.keys().map(|key| below(&selector, key)).collect();
    out.extend(change.replicas.map(|_| "/spec/replicas".to_owned()));
    let named = |name: &String| below(&below(&change.pods, "containers"), &format!("[{name}]"));
    if let Some(container) = change.container.as_ref().map(named) {
        let resources = below(&container, "resources");
        for (resource, amount) in &change.resources {
            out.push(below(&below(&resources, "requests"), resource));
            out.extend(amount.limit.iter().map(|_| below(&below(&resources, "limits"), resource)));
        }
    }
    out
}

/// The first field of one list that is, holds, or lies in a field of the other.
pub fn overlap<'a>(fields: &'a [String], others: &[String]) -> Option<&'a str> {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let meets = |field: &String| others.iter().any(|other| within(field, other) || within(other, field));
    fields.iter().find(|field| meets(field)).map(String::as_str)
}

/// The first field of `theirs` that is, holds, or lies in one of `ours`, and differs between the two objects.
pub fn differing(
    (one, ours): (&Value, &BTreeSet<String>),
    (other, theirs): (&Value, &BTreeSet<String>),
) -> Option<String> {
    let differs = |field: &str| at(one, field) != at(other, field);
    let found = theirs.iter().find(|field| {
        let mut holding = Some(field.as_str());
        while let Some(outer) = holding {
            if ours.contains(outer) && differs(outer) {
                return true;
            }
            holding = outer.rsplit_once('/').map(|(outer, _)| outer);
        }
        let inside = format!("{field}/");
        let next = ours.range(inside.clone()..).next();
        next.is_some_and(|inner| inner.starts_with(&inside)) && differs(field)
    });
    found.cloned()
}

/// The value of a field.
fn at<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('/').skip(1).try_fold(object, |value, part| match value {
        Value::Array(items) => {
            let name = plain(part.strip_prefix('[')?.strip_suffix(']')?);
            items.iter().find(|item| item.get("name").and_then(Value::as_str) == Some(&name))
        }
        _ => value.get(plain(part)),
    })
}

fn merged(patch: &Value, at: &str, out: &mut Vec<String>) {
    match patch {
        Value::Object(map) => map.iter().for_each(|(key, value)| merged(value, &below(at, key), out)),
        _ => out.push(at.to_owned()),
    }
}

/// The same of a strategic merge, whose directives begin with a dollar, and whose lists are merged by keys.
fn merged_by_keys(patch: &Value, at: &str, out: &mut Vec<String>) {
    match patch {
        Value::Object(map) if map.contains_key("$patch") => out.push(at.to_owned()),
        Value::Object(map) => {
            for (key, value) in map {
                match key.strip_prefix("$deleteFromPrimitiveList/") {
                    Some(list) => out.push(below(at, list)),
                    None if key.starts_with('$') => {}
                    None => merged_by_keys(value, &below(at, key), out),
                }
            }
        }
        Value::Array(_) => match fields(Some(patch), at) {
            Some(items) => items.into_iter().for_each(|(item, value)| merged_by_keys(value, &item, out)),
            None => out.push(at.to_owned()),
        },
        _ => out.push(at.to_owned()),
    }
}

/// One step down a pointer.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

type Fields<'a> = BTreeMap<String, &'a Value>;

/// What is below a value, by its field; `None` where it is one field as a whole.
fn fields<'a>(value: Option<&'a Value>, at: &str) -> Option<Fields<'a>> {
    match value? {
        Value::Object(map) => Some(map.iter().map(|(key, value)| (below(at, key), value)).collect()),
        Value::Array(items) if !items.is_empty() => {
            let name = |item: &'a Value| item.get("name").and_then(Value::as_str);
            let named: Option<Fields<'a>> =
                items.iter().map(|item| Some((below(at, &format!("[{}]", name(item)?)), item))).collect();
            named.filter(|named| named.len() == items.len())
        }
        _ => None,
    }
}

fn compare(before: Option<&Value>, after: Option<&Value>, at: &str, out: &mut Vec<String>) {
    if before == after {
        return;
    }
    let (old, new) = match (fields(before, at), fields(after, at)) {
        (Some(old), Some(new)) => (old, new),
        // What was not there comes field by field, so that others may add some beside it.
        (None, Some(new)) if before.is_none() && !new.is_empty() => (Fields::new(), new),
        _ => return out.push(at.to_owned()),
    };
    let gone = old.iter().filter(|(field, _)| !new.contains_key(*field));
    out.extend(gone.map(|(field, _)| field.clone()));
    for (field, value) in &new {
        compare(old.get(field).copied(), Some(value), field, out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_fields_that_differ_are_touched() {
        let before = json!({"spec": {"replicas": 2, "args": [1, 2], "c": [{"name": "web", "image": "a"}]}});
        let after = json!({
            "metadata": {"annotations": {"a/b": "x"}},
            "spec": {"replicas": 1, "args": [1], "c": [{"name": "log"}, {"name": "web", "image": "b"}]},
        });
        assert_eq!(
            touched(&before, &after),
            [
                "/metadata/annotations/a~1b",
                "/spec/args",
                "/spec/c/[log]/name",
                "/spec/c/[web]/image",
                "/spec/replicas"
            ]
        );
    }

    #[test]
    fn what_goes_is_touched_as_a_whole() {
        let before = json!({"a": {"b": 1, "c": 2}, "d": 1});
        assert_eq!(touched(&before, &json!({"d": 1})), ["/a"]);
        assert_eq!(touched(&before, &json!({"a": {"b": 1}, "d": 1})), ["/a/c"]);
    }

    #[test]
    fn a_patch_states_what_it_sets_to_what_is_there() {
        let object = json!({"spec": {"c": [{"name": "log"}, {"name": "web"}], "args": ["x"]}});
        let merge = Patch::Merge(json!({"spec": {"replicas": 1, "args": ["x"], "gone": null}}));
        assert_eq!(stated(&merge, &object), ["/spec/args", "/spec/gone", "/spec/replicas"]);
        let strategic = Patch::Strategic(json!({"spec": {
            "replicas": 1,
            "c": [{"name": "web", "image": "a"}, {"name": "log", "$patch": "delete"}],
            "ports": [{"port": 1}],
            "$retainKeys": ["c"],
            "$deleteFromPrimitiveList/args": ["x"],
        }}));
        assert_eq!(
            stated(&strategic, &object),
            [
                "/spec/args",
                "/spec/c/[log]",
                "/spec/c/[web]/image",
                "/spec/c/[web]/name",
                "/spec/ports",
                "/spec/replicas"
            ]
        );
        let operations = vec![
            json!({"op": "replace", "path": "/spec/replicas", "value": 1}),
            json!({"op": "test", "path": "/spec/paused", "value": true}),
            json!({"op": "add", "path": "/spec/c/-", "value": {"name": "new"}}),
            json!({"op": "replace", "path": "/spec/c/1/image", "value": "a"}),
            json!({"op": "replace", "path": "/spec/args/0", "value": "y"}),
        ];
        assert_eq!(
            stated(&Patch::Json(operations), &object),
            ["/spec/args", "/spec/c/[web]/image", "/spec/replicas"]
        );
    }

    #[test]
    fn what_a_workload_asks_for_is_stated_field_by_field() {
        let amount = crate::edits::Amount { request: "1".to_owned(), limit: Some("1".to_owned()) };
        let change = WorkloadChange {
            pods: "/spec/template/spec".to_owned(),
            container: Some("web".to_owned()),
            node_selector: [("a/b".to_owned(), "c".to_owned())].into(),
            resources: [("x/y".to_owned(), amount)].into(),
            replicas: Some(2),
        };
        assert_eq!(
            stated(&Patch::Workload(change), &json!({})),
            [
                "/spec/replicas",
                "/spec/template/spec/containers/[web]/resources/limits/x~1y",
                "/spec/template/spec/containers/[web]/resources/requests/x~1y",
                "/spec/template/spec/nodeSelector/a~1b",
            ]
        );
    }

    #[test]
    fn objects_differ_only_in_fields_that_meet_with_other_values() {
        let set = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<BTreeSet<_>>();
        let one = json!({"a": {"b": 1}, "c": [{"name": "web", "image": "x"}], "d": 1});
        let other = json!({"a": {"b": 2}, "c": [{"name": "log"}, {"name": "web", "image": "x"}], "d": 2});
        let differing = |ours: &[&str], theirs: &[&str]| differing((&one, &set(ours)), (&other, &set(theirs)));
        assert_eq!(differing(&["/a/b"], &["/a/b"]).as_deref(), Some("/a/b"));
        assert_eq!(differing(&["/a"], &["/a/b"]).as_deref(), Some("/a/b"));
        assert_eq!(differing(&["/a/b"], &["/a"]).as_deref(), Some("/a"));
        assert_eq!(differing(&["/c/[web]/image"], &["/c/[web]/image"]), None);
        assert_eq!(differing(&["/a/b"], &["/d"]), None);
    }

    #[test]
    fn fields_meet_where_one_holds_the_other() {
        let list = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
        assert_eq!(overlap(&list(&["/a/b"]), &list(&["/a"])), Some("/a/b"));
        assert_eq!(overlap(&list(&["/a"]), &list(&["/a/b"])), Some("/a"));
        assert_eq!(overlap(&list(&["/a", "/ab"]), &list(&["/abc", "/b"])), None);
    }
}
