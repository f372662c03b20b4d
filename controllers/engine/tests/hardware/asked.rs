//! The workloads of consumers ask for what is required.

use serde_json::{Value, json};

use super::{Case, case, consumer, gpus, labelled, node, plan, refusal};

/// The manifest of the Deployment on cluster a.
fn web(case: &Case) -> Value {
    let plan = plan(case);
    let (_, apps) = plan.assignment.iter().find(|(id, _)| id.as_str() == "acme/a").unwrap();
    let all = &plan.sets[&apps["web"].set].manifests;
    all.iter().map(|manifest| manifest.json.clone()).find(|json| json["kind"] == "Deployment").unwrap()
}

fn with(consumer: Value, field: &str, value: Value) -> Value {
    let mut consumer = consumer;
    consumer[field] = value;
    consumer
}

#[test]
fn requests_limits_labels_and_replicas_are_set() {
    let mut requirements = gpus(1);
    let more = [
        labelled("avx512", "true")[0].clone(),
        json!({"name": "cpu", "resource": {"name": "cpu", "request": "500m", "limit": 1}}),
    ];
    requirements.as_array_mut().unwrap().extend(more);
    let nodes =
        json!({"n": {"labels": {"avx512": "true"}, "allocatable": {"cpu": "4", "nvidia.com/gpu": "2"}}});
    let case = case(&[with(consumer("web", &requirements), "replicas", json!(2))], &[("a", nodes)]);
    let web = web(&case);
    assert_eq!(web["metadata"]["name"], "shop-web");
    assert_eq!(web["spec"]["replicas"], 2);
    let pod = &web["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"avx512": "true"}));
    assert_eq!(
        pod["containers"][0]["resources"],
        json!({"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}, "limits": {"cpu": "1", "nvidia.com/gpu": "1"}})
    );
}

#[test]
fn the_intent_is_named_where_it_changed_something() {
    let case = case(&[consumer("web", &gpus(1))], &[("a", node(1, 0))]);
    let plan = plan(&case);
    let said = plan.sets.values().flat_map(|set| &set.manifests).flat_map(|manifest| &manifest.edited_by);
    assert_eq!(said.collect::<Vec<_>>(), ["changed by HardwareIntent gpu, spec.consumers[web]"]);
}

#[test]
fn a_consumer_without_target_chooses_clusters_and_changes_nothing() {
    let mut consumer = consumer("web", &labelled("avx512", "true"));
    consumer.as_object_mut().unwrap().retain(|field, _| field != "target" && field != "container");
    let case = case(&[consumer], &[("a", json!({"n": {"labels": {"avx512": "true"}}}))]);
    assert!(web(&case)["spec"]["template"]["spec"]["nodeSelector"].is_null());
}

#[test]
fn an_unknown_container_and_an_unknown_target_are_named() {
    let refused = |consumer: Value| refusal(&case(&[consumer], &[("a", node(1, 0))]));
    let container = refused(with(consumer("web", &gpus(1)), "container", json!("nginx")));
    assert_eq!((container.reason, container.stalled), ("PatchFailed", true));
    assert_eq!(
        container.message,
        "app web on acme/a: HardwareIntent gpu, spec.consumers[web]: apps/Deployment/shop/shop-web: it has no container nginx in \
         spec.template.spec.containers (it has web): change container"
    );
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"});
    let target = refused(with(consumer("web", &gpus(1)), "target", target));
    assert_eq!((target.reason, target.stalled), ("TargetMissing", true));
    assert_eq!(
        target.message,
        "app web on acme/a: HardwareIntent gpu, spec.consumers[web]: app web makes no Deployment wbe here (it makes shop-web): name a workload \
         of the app in target"
    );
}

#[test]
fn an_unknown_app_and_a_missing_intent_are_named() {
    let mut case = case(&[with(consumer("web", &gpus(1)), "app", json!("shop"))], &[("a", node(1, 0))]);
    let unknown = refusal(&case);
    assert_eq!((unknown.condition, unknown.reason), ("Resolved", "AppNotFound"));
    assert_eq!(
        unknown.message,
        "HardwareIntent gpu: spec.consumers[web] names app shop, which CompositeApp shop does not have: it has db, web"
    );
    case.hardware.clear();
    let missing = refusal(&case);
    assert_eq!((missing.reason, missing.stalled), ("IntentNotFound", false));
    assert_eq!(
        missing.message,
        "HardwareIntent gpu does not exist in namespace team-a: create it, or change spec.intents"
    );
}

#[test]
fn what_is_wrong_in_itself_refuses_the_plan() {
    let refused = |resource: Value| {
        let requirements = json!([{"name": "r", "resource": resource}]);
        refusal(&case(&[consumer("web", &requirements)], &[("a", node(1, 0))]))
    };
    let above = refused(json!({"name": "cpu", "request": 2, "limit": "1500m"}));
    assert_eq!((above.reason, above.stalled), ("IntentInvalid", true));
    assert!(above.message.contains("1500m is smaller than the request 2"), "{above}");
    let none = refused(json!({"name": "cpu", "request": "many"}));
    assert!(none.message.contains("many is no amount above 0"), "{none}");
}

#[test]
fn hardware_comes_after_actions_and_intents_do_not_contradict() {
    let mut case = case(&[with(consumer("web", &gpus(1)), "replicas", json!(2))], &[("a", node(4, 0))]);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
    let patch = |patch: Value| json!({"actions": [{"name": "few", "app": "web", "type": "JSONMerge", "target": target, "jsonMerge": patch}]});
    case.dig["intents"] =
        json!([{"kind": "HardwareIntent", "name": "gpu"}, {"kind": "GenericActionIntent", "name": "gpu"}]);
    case.intents = [("gpu".to_owned(), patch(json!({"spec": {"paused": true}})))].into();
    assert_eq!((&web(&case)["spec"]["paused"], &web(&case)["spec"]["replicas"]), (&json!(true), &json!(2)));
    case.intents = [("gpu".to_owned(), patch(json!({"spec": {"replicas": 5}})))].into();
    let conflict = refusal(&case);
    assert_eq!(conflict.reason, "EditConflict", "{conflict}");
    assert!(conflict.message.contains("/spec/replicas"), "{conflict}");
}
