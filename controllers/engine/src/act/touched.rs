//! Says which fields of an object an edit concerns, so that edits of two intents that contradict each other are found.
//!
//! A field is written as a JSON pointer. Where all items of a list have a name of their own, an item is written by it
//! (`/spec/template/spec/containers/[web]/image`), for its place changes with what others add. Any other list is one field.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::edits::{Patch, WorkloadChange};

/// Fields that differ between two versions of an object.
pub fn touched(before: &Value, after: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare(Some(before), Some(after), "", &mut out);
    out
}

/// Fields that a patch sets whatever they are before: one that sets what is there already has its say as well.
pub fn stated(patch: &Patch) -> Vec<String> {
    let mut out = Vec::new();
    match patch {
        Patch::Merge(patch) => leaves(patch, "", true, &mut out),
        Patch::Strategic(patch) => leaves(patch, "", false, &mut out),
        Patch::Workload(change) => out.extend(asked(change)),
        Patch::Json(operations) => {
            let sets = |operation: &&Value| operation.get("op").and_then(Value::as_str) != Some("test");
            let path = |operation: &Value| operation.get("path").and_then(Value::as_str).map(str::to_owned);
            // A place in a list is compared by what becomes of the list.
            let in_list = |path: &String| {
                path.split('/')
                    .any(|part| part == "-" || !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
            };
            out.extend(operations.iter().filter(sets).filter_map(path).filter(|path| !in_list(path)));
        }
    }
    out.sort();
    out
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

fn leaves(patch: &Value, at: &str, lists: bool, out: &mut Vec<String>) {
    match patch {
        Value::Object(map) => {
            // Directives of a strategic merge begin so.
            for (key, value) in map.iter().filter(|(key, _)| !key.starts_with('$')) {
                leaves(value, &below(at, key), lists, out);
            }
        }
        Value::Array(_) if !lists => {}
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
        let merge = Patch::Merge(json!({"spec": {"replicas": 1, "args": ["x"], "gone": null}}));
        assert_eq!(stated(&merge), ["/spec/args", "/spec/gone", "/spec/replicas"]);
        let strategic =
            Patch::Strategic(json!({"spec": {"replicas": 1, "c": [{"name": "web"}], "$patch": "merge"}}));
        assert_eq!(stated(&strategic), ["/spec/replicas"]);
        let operations = vec![
            json!({"op": "replace", "path": "/spec/replicas", "value": 1}),
            json!({"op": "test", "path": "/spec/paused", "value": true}),
            json!({"op": "add", "path": "/spec/args/-", "value": "x"}),
        ];
        assert_eq!(stated(&Patch::Json(operations)), ["/spec/replicas"]);
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
            stated(&Patch::Workload(change)),
            [
                "/spec/replicas",
                "/spec/template/spec/containers/[web]/resources/limits/x~1y",
                "/spec/template/spec/containers/[web]/resources/requests/x~1y",
                "/spec/template/spec/nodeSelector/a~1b",
            ]
        );
    }

    #[test]
    fn fields_meet_where_one_holds_the_other() {
        let list = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
        assert_eq!(overlap(&list(&["/a/b"]), &list(&["/a"])), Some("/a/b"));
        assert_eq!(overlap(&list(&["/a"]), &list(&["/a/b"])), Some("/a"));
        assert_eq!(overlap(&list(&["/a", "/ab"]), &list(&["/abc", "/b"])), None);
    }
}
