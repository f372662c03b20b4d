//! Says which fields of an object an edit concerns, so that edits of two intents that contradict each other are found.
//!
//! A field is written as a JSON pointer. Where all items of a list have a name of their own, an item is written by it
//! (`/spec/template/spec/containers/[web]/image`), for its place changes with what others add. Any other list is one field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::edits::{Patch, WorkloadChange};

mod meeting;
mod operations;

pub use meeting::{differing, displaced, meets};

/// Fields that differ between two versions of an object.
pub fn touched(before: &Value, after: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare(Some(before), Some(after), "", &mut out);
    out
}

/// The fields a patch sets in an object, whatever the object is before.
#[derive(Debug, Default)]
pub struct Stated {
    /// Fields that it sets: one that sets what is there already has its say as well.
    pub fields: BTreeSet<String>,
    /// Items that it takes by their places: the list, and the name of the item.
    pub counted: BTreeSet<(String, String)>,
}

/// The fields that a patch sets in an object.
pub fn stated(patch: &Patch, object: &Value) -> Stated {
    let mut fields = BTreeSet::new();
    match patch {
        Patch::Merge(patch) => merged(patch, "", &mut fields),
        Patch::Strategic(patch) => merged_by_keys(patch, "", &mut fields),
        Patch::Workload(change) => fields.extend(asked(change)),
        Patch::Json(operations) => return operations::stated(operations, object),
    }
    Stated { fields, counted: BTreeSet::new() }
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

fn merged(patch: &Value, at: &str, out: &mut BTreeSet<String>) {
    let Value::Object(map) = patch else {
        out.insert(at.to_owned());
        return;
    };
    for (key, value) in map {
        merged(value, &below(at, key), out);
    }
}

/// The same of a strategic merge, whose directives begin with a dollar, and whose lists are merged by keys.
fn merged_by_keys(patch: &Value, at: &str, out: &mut BTreeSet<String>) {
    let directive = |value: &Value| value.get("$patch").and_then(Value::as_str).map(str::to_owned);
    let items = match patch {
        Value::Object(map) if directive(patch).is_none_or(|directive| directive == "merge") => {
            for (key, value) in map {
                match key.strip_prefix("$deleteFromPrimitiveList/") {
                    Some(list) => {
                        out.insert(below(at, list));
                    }
                    None if key.starts_with('$') => {}
                    None => merged_by_keys(value, &below(at, key), out),
                }
            }
            return;
        }
        Value::Array(items) if !items.iter().any(|item| directive(item).as_deref() == Some("replace")) => {
            parts(Some(patch), at)
        }
        _ => None,
    };
    match items {
        Some(items) => {
            for (item, value) in items {
                merged_by_keys(value, &item, out);
            }
        }
        None => {
            out.insert(at.to_owned());
        }
    }
}

/// One step down a pointer.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A part of a pointer without its escapes.
fn plain(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The names of a list's items, where all have one of their own.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = items.iter().map(|item| item.get("name")?.as_str()).collect::<Option<_>>()?;
    let are_different = names.iter().collect::<BTreeSet<_>>().len() == names.len();
    (are_different && !names.is_empty()).then_some(names)
}

type Parts<'a> = BTreeMap<String, &'a Value>;

/// What is below a value, by its field; `None` where it is one field as a whole.
fn parts<'a>(value: Option<&'a Value>, at: &str) -> Option<Parts<'a>> {
    match value? {
        Value::Object(map) => Some(map.iter().map(|(key, value)| (below(at, key), value)).collect()),
        Value::Array(items) => {
            let named = names(items)?.into_iter().zip(items);
            Some(named.map(|(name, item)| (below(at, &format!("[{name}]")), item)).collect())
        }
        _ => None,
    }
}

fn compare(before: Option<&Value>, after: Option<&Value>, at: &str, out: &mut Vec<String>) {
    if before == after {
        return;
    }
    let is_list = |value: Option<&Value>| value.is_some_and(Value::is_array);
    let is_without = |value: Option<&Value>| value.and_then(Value::as_array).is_some_and(Vec::is_empty);
    let (old, new) = match (parts(before, at), parts(after, at)) {
        (Some(old), Some(new)) => (old, new),
        // What was not there comes field by field, so that others may add some beside it; and so come and go the items of a list.
        (None, Some(new)) if before.is_none() && !new.is_empty() => (Parts::new(), new),
        (None, Some(new)) if is_without(before) && is_list(after) => (Parts::new(), new),
        (Some(old), None) if is_list(before) && is_without(after) => (old, Parts::new()),
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

    fn fields(patch: &Patch, object: &Value) -> Vec<String> {
        stated(patch, object).fields.into_iter().collect()
    }

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
    fn items_with_names_come_and_go_one_by_one() {
        let list = |items: Value| json!({"c": items});
        let (one, none) = (list(json!([{"name": "a", "x": 1}])), list(json!([])));
        assert_eq!(touched(&one, &none), ["/c/[a]"]);
        assert_eq!(touched(&none, &one), ["/c/[a]/name", "/c/[a]/x"]);
        assert_eq!(touched(&one, &json!({})), ["/c"]);
        assert_eq!(touched(&list(json!([1])), &none), ["/c"]);
    }

    #[test]
    fn a_patch_states_what_it_sets_to_what_is_there() {
        let merge = Patch::Merge(json!({"spec": {"replicas": 1, "args": ["x"], "gone": null}}));
        assert_eq!(fields(&merge, &json!({})), ["/spec/args", "/spec/gone", "/spec/replicas"]);
        let strategic = Patch::Strategic(json!({"spec": {
            "replicas": 1,
            "$patch": "merge",
            "c": [{"name": "web", "image": "a"}, {"name": "log", "$patch": "delete"}],
            "d": [{"name": "web"}, {"name": "log", "$patch": "replace"}],
            "ports": [{"port": 1}],
            "$retainKeys": ["c"],
            "$deleteFromPrimitiveList/args": ["x"],
            "whole": {"$patch": "replace", "a": 1},
        }}));
        assert_eq!(
            fields(&strategic, &json!({})),
            [
                "/spec/args",
                "/spec/c/[log]",
                "/spec/c/[web]/image",
                "/spec/c/[web]/name",
                "/spec/d",
                "/spec/ports",
                "/spec/replicas",
                "/spec/whole"
            ]
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
            fields(&Patch::Workload(change), &json!({})),
            [
                "/spec/replicas",
                "/spec/template/spec/containers/[web]/resources/limits/x~1y",
                "/spec/template/spec/containers/[web]/resources/requests/x~1y",
                "/spec/template/spec/nodeSelector/a~1b",
            ]
        );
    }
}
