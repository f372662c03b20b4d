//! Laws that hold for every object and patch.

use std::collections::BTreeSet;

use emco_engine::edits::{Patch, patched};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::deployment;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..9i64).prop_map(Value::from),
        "[a-c]{1,2}".prop_map(Value::from)
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// As [`tree`], with fields that are removed.
fn change() -> impl Strategy<Value = Value> {
    let field = prop_oneof![3 => tree(), 1 => Just(Value::Null)];
    prop::collection::btree_map("[a-d]", field, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Items with names, in any order.
fn named() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-e]", scalar(), 0..4)
        .prop_map(|map| {
            map.into_iter().map(|(name, image)| json!({"name": name, "image": image})).collect::<Vec<_>>()
        })
        .prop_shuffle()
        .prop_map(Value::from)
}

fn pods(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn with_containers(containers: &Value) -> Value {
    let mut object = deployment();
    object["spec"]["template"]["spec"]["containers"] = containers.clone();
    object
}

fn containers(object: &Value) -> Value {
    object["spec"]["template"]["spec"]["containers"].clone()
}

proptest! {
    #[test]
    fn a_merge_patch_twice_is_as_once(object in tree(), change in change()) {
        let mut before = deployment();
        before["spec"] = object;
        let patch = Patch::Merge(json!({"spec": change}));
        let once = patched(&before, &patch).unwrap();
        prop_assert_eq!(&patched(&once, &patch).unwrap(), &once);
    }

    #[test]
    fn a_strategic_merge_patch_twice_is_as_once(old in named(), new in named()) {
        let patch = Patch::Strategic(pods(&new));
        let once = patched(&with_containers(&old), &patch).unwrap();
        prop_assert_eq!(&patched(&once, &patch).unwrap(), &once);
    }

    #[test]
    fn an_object_as_its_own_strategic_patch_changes_nothing(old in named(), data in tree()) {
        let mut object = with_containers(&old);
        object["spec"]["selector"] = data;
        prop_assert_eq!(&patched(&object, &Patch::Strategic(object.clone())).unwrap(), &object);
    }

    #[test]
    fn a_strategic_merge_keeps_each_item_once(old in named(), new in named()) {
        let result = patched(&with_containers(&old), &Patch::Strategic(pods(&new))).unwrap();
        let set = |list: &Value| -> BTreeSet<String> {
            list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        let merged = containers(&result);
        let both: BTreeSet<String> = set(&old).union(&set(&new)).cloned().collect();
        prop_assert_eq!(merged.as_array().unwrap().len(), both.len());
        prop_assert_eq!(set(&merged), both);
        for item in new.as_array().unwrap() {
            prop_assert!(merged.as_array().unwrap().contains(item));
        }
    }

    #[test]
    fn a_failing_test_leaves_no_result(path in "[a-d]", change in change()) {
        let before = deployment();
        let operations = vec![
            json!({"op": "add", "path": format!("/spec/{path}"), "value": change}),
            json!({"op": "test", "path": "/spec/replicas", "value": 7}),
        ];
        prop_assert!(patched(&before, &Patch::Json(operations)).is_err());
        prop_assert_eq!(before, deployment());
    }

    #[test]
    fn any_patch_is_applied_or_refused(patch in change(), strategic in any::<bool>()) {
        let patch = json!({"spec": patch});
        let patch = if strategic { Patch::Strategic(patch) } else { Patch::Merge(patch) };
        let _ = patched(&deployment(), &patch);
    }
}
