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

#[allow(clippy::needless_pass_by_value)] // written where it is called
fn container(name: &str, fields: Value) -> Value {
    strategic(name, json!({"spec": {"template": {"spec": {"containers": [fields]}}}}))
}

const CONTAINERS: &str = "/spec/template/spec/containers";

/// An operation on one container, by its place.
#[allow(clippy::needless_pass_by_value)] // written where it is called
fn at(name: &str, op: &str, place: &str, value: Value) -> Value {
    operations(name, json!([{"op": op, "path": format!("{CONTAINERS}/{place}"), "value": value}]))
}

fn image_at(name: &str, image: &str) -> Value {
    at(name, "replace", "0/image", json!(image))
}

fn removed(name: &str) -> Value {
    operations(name, json!([{"op": "remove", "path": "/spec/replicas"}]))
}

/// All labels are others.
fn labels(name: &str) -> Value {
    let whole = json!({"app": "web", "two": "y"});
    operations(name, json!([{"op": "replace", "path": "/metadata/labels", "value": whole}]))
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
        removed("none"),
        container("image", json!({"name": "web", "image": "example.com/web:2"})),
        container("image-as-it-is", json!({"name": "web", "image": "example.com/web"})),
        image_at("image-json", "example.com/web:2"),
        image_at("image-json-as-it-is", "example.com/web"),
        container("gone", json!({"name": "web", "$patch": "delete"})),
        container("side", json!({"name": "side", "image": "example.com/side"})),
        at("args", "add", "0/args/-", json!("b")),
        container("args-as-they-are", json!({"name": "web", "args": ["a"]})),
        merge("label", json!({"metadata": {"labels": {"one": "x"}}})),
        merge("labels-gone", json!({"metadata": {"labels": null}})),
        labels("labels"),
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
                    for refusal in [refusal, turned] {
                        assert_eq!(refusal.reason, "EditConflict", "{names}: {refusal}");
                        for intent in ["GenericActionIntent one", "GenericActionIntent two", "acme/a"] {
                            assert!(refusal.message.contains(intent), "{names}: {refusal}");
                        }
                    }
                }
                [Ok(_), Err(refusal)] | [Err(refusal), Ok(_)] => {
                    panic!("{names}: in one order only: {refusal}")
                }
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
        (removed("a"), removed("b")),
    ] {
        assert!(both(&one, &two).iter().all(Result::is_ok), "{one} and {two}");
    }
}

#[test]
fn what_is_inside_of_what_the_other_replaced_is_a_contradiction() {
    let inside = merge("b", json!({"metadata": {"labels": {"one": "x"}}}));
    for outcome in both(&labels("a"), &inside) {
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, "EditConflict", "{refusal}");
        let part = "Deployment/shop/shop-web: it changes /metadata/labels";
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn an_item_that_one_intent_takes_by_its_place_is_moved_by_no_other() {
    let image = image_at("image", "example.com/web:2");
    let (front, end) = (json!({"name": "front"}), json!({"name": "end"}));
    let (front, end) = (at("front", "add", "0", front), at("end", "add", "-", end));
    let side = container("side", json!({"name": "side", "image": "example.com/side"}));
    for moving in [&front, &side] {
        for outcome in both(&image, moving) {
            let refusal = outcome.unwrap_err();
            assert_eq!(refusal.reason, "EditConflict", "{refusal}");
            assert!(refusal.message.contains("the places of items in /spec/template/spec"), "{refusal}");
        }
    }
    let by_name = container("image", json!({"name": "web", "image": "example.com/web:2"}));
    for (one, two) in [(&image, &end), (&by_name, &front), (&by_name, &side)] {
        assert!(both(one, two).iter().all(Result::is_ok), "{one} and {two}");
    }
}

#[test]
fn what_both_append_would_be_there_twice_and_is_a_contradiction() {
    let args = at("args", "add", "0/args/-", json!("b"));
    for outcome in both(&args, &args) {
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, "EditConflict", "{refusal}");
        assert!(refusal.message.contains("it changes /spec/template/spec/containers/[web]/a"), "{refusal}");
    }
}

#[test]
fn a_test_of_what_another_intent_changed_before_fails_by_its_name() {
    let tested = json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}},
    ]);
    let (tested, five) = (operations("tested", tested), replicas("five", 5));
    let refusal = case(&json!([five]), &json!([tested])).plan().unwrap_err();
    assert_eq!(refusal.reason, "PatchFailed", "{refusal}");
    for part in
        ["GenericActionIntent two, spec.actions[tested]", "another value there than the one to test for"]
    {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn what_is_left_out_by_one_intent_is_nothing_for_another_to_change_or_add() {
    let ignoring = with(replicas("few", 1), "onMissing", json!("Ignore"));
    let name = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "banner"});
    let no_banner =
        json!({"name": "none", "app": "web", "type": "Delete", "target": name, "onMissing": "Ignore"});
    let (out, changed) = (json!([delete("out")]), json!([replicas("few", 1), delete("out")]));
    for (one, two) in [(&out, json!([ignoring])), (&json!([no_banner]), json!([banner()])), (&out, changed)] {
        for outcome in [case(one, &two).plan(), case(&two, one).plan()] {
            let refusal = outcome.unwrap_err();
            assert_eq!(refusal.reason, "EditConflict", "{refusal}");
            assert!(refusal.message.contains("take one of the actions away"), "{refusal}");
        }
    }
}

#[test]
fn a_conflict_on_one_cluster_alone_refuses_and_names_that_cluster() {
    let one = with(replicas("one", 1), "allow", json!([{"provider": "acme"}]));
    let there = json!([{"provider": "acme", "cluster": "b"}, {"provider": "other"}]);
    let two = with(replicas("two", 5), "allow", there);
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
