//! Two intents that concern one object: when they agree, and that their order in the list does not matter.

use emco_engine::refusal::Refusal;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CLUSTERS, WEB, banner, case, on, plan, replicas, with};

fn target() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"})
}

fn patch(name: &str, type_: &str, field: &str, patch: Value) -> Value {
    with(json!({"name": name, "app": "web", "type": type_, "target": target()}), field, patch)
}

fn merge(name: &str, fields: Value) -> Value {
    patch(name, "JSONMerge", "jsonMerge", fields)
}

fn operations(name: &str, operations: Value) -> Value {
    patch(name, "JSONPatch", "jsonPatch", operations)
}

fn strategic(name: &str, fields: Value) -> Value {
    patch(name, "StrategicMerge", "strategicMerge", fields)
}

fn container(name: &str, fields: Value) -> Value {
    strategic(name, json!({"spec": {"template": {"spec": {"containers": [fields]}}}}))
}

fn image_at(name: &str, image: &str) -> Value {
    let path = "/spec/template/spec/containers/0/image";
    operations(name, json!([{"op": "replace", "path": path, "value": image}]))
}

fn delete(name: &str) -> Value {
    json!({"name": name, "app": "web", "type": "Delete", "target": target()})
}

/// Both orders of two intents with one action each.
fn both(one: &Value, two: &Value) -> [Result<emco_engine::plan::Plan, Box<Refusal>>; 2] {
    let (one, two) = (json!([one]), json!([two]));
    [case(&one, &two).plan(), case(&two, &one).plan()]
}

/// Changes of a Deployment by every type of action: what is there already, the same from others, something else, parts and wholes.
fn pool() -> Vec<Value> {
    vec![
        replicas("two", 2),
        replicas("five", 5),
        operations("five-json", json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])),
        strategic("two-strategic", json!({"spec": {"replicas": 2}})),
        operations("none", json!([{"op": "remove", "path": "/spec/replicas"}])),
        container("image", json!({"name": "web", "image": "example.com/web:2"})),
        container("image-as-it-is", json!({"name": "web", "image": "example.com/web"})),
        image_at("image-json", "example.com/web:2"),
        image_at("image-json-as-it-is", "example.com/web"),
        container("gone", json!({"name": "web", "$patch": "delete"})),
        container("side", json!({"name": "side", "image": "example.com/side"})),
        operations("args", json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "b"}])),
        container("args-as-they-are", json!({"name": "web", "args": ["a"]})),
        merge("label", json!({"metadata": {"labels": {"one": "x"}}})),
        merge("labels-gone", json!({"metadata": {"labels": null}})),
        operations("labels", json!([{"op": "replace", "path": "/metadata/labels", "value": {"app": "web", "two": "y"}}])),
        merge("annotation", json!({"metadata": {"annotations": {"one": "x"}}})),
        delete("out"),
    ]
}

#[test]
fn two_intents_agree_or_contradict_each_other_in_either_order() {
    for (at, one) in pool().iter().enumerate() {
        for two in &pool()[at..] {
            let names = format!("{} and {}", one["name"], two["name"]);
            match both(one, two) {
                [Ok(plan), Ok(turned)] => {
                    for cluster in CLUSTERS {
                        assert_eq!(on(&plan, cluster, "web"), on(&turned, cluster, "web"), "{names}");
                    }
                }
                [Err(refusal), Err(turned)] => {
                    assert_eq!((refusal.reason, turned.reason), ("EditConflict", "EditConflict"), "{names}: {refusal}");
                    for refusal in [refusal, turned] {
                        for intent in ["GenericActionIntent one", "GenericActionIntent two", "acme/a"] {
                            assert!(refusal.message.contains(intent), "{names}: {refusal}");
                        }
                    }
                }
                [Ok(_), Err(refusal)] | [Err(refusal), Ok(_)] => panic!("{names}: in one order only: {refusal}"),
            }
        }
    }
}

#[test]
fn the_same_value_from_two_intents_is_no_contradiction() {
    for (one, two) in [
        (replicas("a", 5), operations("b", json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]))),
        (image_at("a", "x"), container("b", json!({"name": "web", "image": "x"}))),
        (delete("a"), delete("b")),
    ] {
        assert!(both(&one, &two).iter().all(Result::is_ok), "{one} and {two}");
    }
}

#[test]
fn what_is_inside_of_what_the_other_replaced_is_a_contradiction() {
    let whole = json!({"app": "web", "two": "y"});
    let replaced = operations("a", json!([{"op": "replace", "path": "/metadata/labels", "value": whole}]));
    let inside = merge("b", json!({"metadata": {"labels": {"one": "x"}}}));
    for outcome in both(&replaced, &inside) {
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, "EditConflict", "{refusal}");
        assert!(refusal.message.contains("Deployment/shop/shop-web: it changes /metadata/labels"), "{refusal}");
    }
}

#[test]
fn what_is_left_out_by_one_intent_is_nothing_for_another_to_change_or_add() {
    let ignoring = with(replicas("few", 1), "onMissing", json!("Ignore"));
    let name = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "banner"});
    let no_banner = json!({"name": "none", "app": "web", "type": "Delete", "target": name, "onMissing": "Ignore"});
    for (one, two) in [(delete("out"), ignoring), (no_banner, banner())] {
        for outcome in both(&one, &two) {
            let refusal = outcome.unwrap_err();
            assert_eq!(refusal.reason, "EditConflict", "{refusal}");
            assert!(refusal.message.contains("take one of the actions away"), "{refusal}");
        }
    }
}

#[test]
fn a_conflict_on_one_cluster_alone_refuses_and_names_that_cluster() {
    let one = with(replicas("one", 1), "allow", json!([{"provider": "acme"}]));
    let two = with(replicas("two", 5), "allow", json!([{"cluster": "b"}, {"provider": "other"}]));
    for outcome in both(&one, &two) {
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, "EditConflict", "{refusal}");
        assert!(refusal.message.starts_with("app web on acme/b: "), "{refusal}");
    }
}

#[test]
fn the_later_action_of_one_intent_counts_for_the_other_intent_too() {
    let first = json!([replicas("one", 1), replicas("then-five", 5)]);
    let made = case(&first, &json!([replicas("five", 5)])).plan().unwrap();
    assert_eq!(on(&made, "acme/a", "web")[WEB]["spec"]["replicas"], 5);
    let turned = case(&json!([replicas("five", 5)]), &first).plan().unwrap();
    assert_eq!(on(&turned, "acme/a", "web")[WEB]["spec"]["replicas"], 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn several_actions_of_two_intents_agree_in_either_order_or_in_none(
        one in prop::sample::subsequence(pool(), 1..4),
        two in prop::sample::subsequence(pool(), 1..4),
    ) {
        let (one, two) = (json!(one), json!(two));
        let (there, back) = (case(&one, &two).plan(), case(&two, &one).plan());
        let conflicts = |outcome: &Result<_, Box<Refusal>>| {
            outcome.as_ref().err().is_some_and(|refusal| refusal.reason == "EditConflict")
        };
        // An action that fails by itself may be met before a contradiction is, or after.
        let failed = |outcome: &Result<_, Box<Refusal>>| {
            outcome.as_ref().err().is_some_and(|refusal| refusal.reason != "EditConflict")
        };
        if !failed(&there) && !failed(&back) {
            prop_assert_eq!(conflicts(&there), conflicts(&back));
            if let (Ok(there), Ok(back)) = (&there, &back) {
                prop_assert_eq!(on(there, "acme/a", "web"), on(back, "acme/a", "web"));
            }
        }
    }
}

#[test]
fn actions_of_the_pool_are_possible_by_themselves() {
    for action in pool() {
        plan(&json!([action]));
    }
}
