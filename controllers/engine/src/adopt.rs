//! Compares an object of others with what an apply would make of it: what differs is what taking it over would change.

use serde_json::{Map, Value};

use emco_crds::names::{annotation, label};

mod holder;

pub use holder::{Holder, Tool, holder};

/// Paths of the fields, as people write them, that an apply would change or add, in order. `after` is what the API server says
/// the object would be. What only servers write, the status and our own marks do not count.
pub fn differences(live: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(&bare(live), &bare(after), "", &mut found);
    found
}

/// The fields in a sentence: the first of them, and how many there are.
pub fn named(fields: &[String]) -> String {
    crate::text::listed(fields)
}

/// An object without our marks, as it would be for everybody else.
pub fn without_marks(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for part in ["labels", "annotations"] {
            if let Some(map) = metadata.get_mut(part) {
                *map = unmarked(map);
            }
        }
    }
    object
}

fn bare(object: &Value) -> Value {
    let Some(fields) = object.as_object() else { return object.clone() };
    let mut kept = Map::new();
    for (key, value) in fields {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let mut metadata = Map::new();
                for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    // An object that had no label has none again without ours.
                    if let Some(value) = value.get(part).map(unmarked).filter(|value| !is_empty(value)) {
                        metadata.insert(part.to_owned(), value);
                    }
                }
                if !metadata.is_empty() {
                    kept.insert(key.clone(), Value::Object(metadata));
                }
            }
            _ => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(kept)
}

fn unmarked(value: &Value) -> Value {
    let marks = [
        label::OWNER,
        annotation::MANIFEST,
        annotation::PLACED_BY,
        annotation::ADOPTED,
        annotation::MADE_FOR,
    ];
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !marks.contains(&key.as_str()));
    }
    value
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => value.is_null(),
    }
}

/// Both sides are a server's own answers: an empty map is something else than none, for many selectors mean all by it.
fn compare(live: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    match (live, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let step = if key.contains(['.', '/']) { format!("[{key}]") } else { key.clone() };
                let at = if at.is_empty() || step.starts_with('[') {
                    format!("{at}{step}")
                } else {
                    format!("{at}.{step}")
                };
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => compare(a, b, &at, found),
                    _ => found.push(at),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{at}[{index}]"), found);
            }
        }
        (a, b) if a == b => {}
        _ => found.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn live() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "2"}, "metadata": {
            "name": "c", "uid": "u", "resourceVersion": "7", "labels": {"app": "x"}, "managedFields": [{"manager": "kubectl"}]}})
    }

    #[test]
    fn marks_and_what_servers_write_are_no_difference() {
        let mut after = crate::marks::adopt(crate::marks::mark(live(), "hash", "digest", "team-a/shop"));
        after["metadata"]["resourceVersion"] = json!("8");
        after["metadata"]["managedFields"] = json!([{"manager": "emco-hash"}, {"manager": "kubectl"}]);
        after["status"] = json!({"x": 1});
        assert_eq!(differences(&live(), &after), Vec::<String>::new());
        assert_eq!(without_marks(&after)["metadata"]["labels"], json!({"app": "x"}));
        assert_eq!(without_marks(&after)["metadata"]["annotations"], json!({}));
    }

    #[test]
    fn each_field_that_would_change_is_named_by_its_path() {
        let mut after = live();
        after["data"] = json!({"a": "1", "b": "3", "c.d": "4"});
        after["metadata"]["labels"]["app.kubernetes.io/name"] = json!("web");
        after["spec"] = json!({"list": [{"x": 1}]});
        assert_eq!(
            differences(&live(), &after),
            ["data.b", "data[c.d]", "metadata.labels[app.kubernetes.io/name]", "spec"]
        );
        let (one, two) = (json!({"l": [{"x": 1}, {"x": 2}]}), json!({"l": [{"x": 1}, {"x": 3}]}));
        assert_eq!(differences(&one, &two), ["l[1].x"]);
    }

    #[test]
    fn an_empty_selector_is_not_the_same_as_none() {
        let peer = json!({"podSelector": {"matchLabels": {"app": "x"}}});
        let mut open = peer.clone();
        open["namespaceSelector"] = json!({});
        let policy = |peer: &Value| json!({"spec": {"ingress": [{"from": [peer]}]}});
        assert_eq!(
            differences(&policy(&peer), &policy(&open)),
            ["spec.ingress[0].from[0].namespaceSelector"],
            "it lets all namespaces in"
        );
        let budget = |spec: Value| json!({"kind": "PodDisruptionBudget", "spec": spec});
        let (none, all) =
            (budget(json!({"minAvailable": 1})), budget(json!({"minAvailable": 1, "selector": {}})));
        assert_eq!(differences(&none, &all), ["spec.selector"]);
    }

    #[test]
    fn marks_on_an_object_without_metadata_of_its_own_are_no_difference() {
        let live = json!({"metadata": {"name": "c", "uid": "u"}, "data": {"a": "1"}});
        let after = crate::marks::adopt(crate::marks::mark(live.clone(), "hash", "digest", "team-a/shop"));
        assert_eq!(differences(&live, &after), Vec::<String>::new());
    }

    #[test]
    fn a_sentence_names_the_first_fields_and_counts_the_rest() {
        let fields = |n: usize| (0..n).map(|n| format!("f{n}")).collect::<Vec<_>>();
        assert_eq!(named(&fields(1)), "f0");
        assert_eq!(named(&fields(3)), "f0, f1, f2");
        assert_eq!(named(&fields(5)), "f0, f1, f2 and 2 more");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[a-c]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_never_differs_from_itself_and_both_ways_alike(a in values(), b in values()) {
            let (a, b) = (json!({"spec": a}), json!({"spec": b}));
            prop_assert_eq!(differences(&a, &a), Vec::<String>::new());
            prop_assert_eq!(differences(&a, &b), differences(&b, &a));
        }
    }
}
