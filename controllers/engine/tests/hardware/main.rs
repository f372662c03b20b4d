//! Apps go where the hardware is, and ask for it: charts, intents and nodes in, who gets what out.

mod asked;
#[path = "../common/mod.rs"]
mod common;
mod fenced;
mod laws;
mod stays;

use std::collections::BTreeMap;

use common::{Case, ClusterCase};
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use serde_json::{Value, json};

const BASE: &str = r#"
about: ""
dig: {placement: {anyOf: [{from: [{selector: {}}]}]}, intents: [{kind: HardwareIntent, name: gpu}]}
charts:
  web:
    templates/web.yaml: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ .Release.Name }}-web"}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: web, image: example.com/web}]}
  db:
    templates/db.yaml: |
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: db}
      spec:
        serviceName: db
        selector: {matchLabels: {app: db}}
        template:
          metadata: {labels: {app: db}}
          spec: {containers: [{name: db, image: example.com/db}]}
clusters: {}
"#;

/// A consumer of an app with these requirements.
fn consumer(app: &str, requirements: &Value) -> Value {
    let (kind, name) = if app == "db" { ("StatefulSet", "db") } else { ("Deployment", "{{release}}-web") };
    let target = json!({"apiVersion": "apps/v1", "kind": kind, "name": name});
    json!({"name": app, "app": app, "target": target, "container": app, "requirements": requirements})
}

fn gpus(number: i64) -> Value {
    json!([{"name": "gpu", "resource": {"name": "nvidia.com/gpu", "request": number}}])
}

fn labelled(key: &str, value: &str) -> Value {
    json!([{"name": "label", "nodeSelector": {"matchLabels": {key: value}}}])
}

/// One node with so many GPUs, of which so many are requested.
fn node(gpus: i64, used: i64) -> Value {
    json!({"n": {"allocatable": {"nvidia.com/gpu": gpus.to_string()}, "requested": {"nvidia.com/gpu": used.to_string()}}})
}

/// The shop with these consumers, on clusters of provider acme with these nodes.
fn case(consumers: &[Value], clusters: &[(&str, Value)]) -> Case {
    let mut case = Case::parse(BASE).unwrap();
    case.hardware = [("gpu".to_owned(), json!({"consumers": consumers}))].into();
    case.clusters = clusters
        .iter()
        .map(|(name, nodes)| {
            let nodes = serde_json::from_value(nodes.clone()).unwrap();
            (format!("acme/{name}"), ClusterCase { nodes: Some(nodes), ..ClusterCase::default() })
        })
        .collect();
    case
}

fn plan(case: &Case) -> Plan {
    case.plan().unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn refusal(case: &Case) -> Refusal {
    *case.plan().unwrap_err()
}

/// The clusters of an app.
fn chosen(plan: &Plan, app: &str) -> Vec<String> {
    let (_, placement) = plan.placement.iter().find(|(name, _)| name == app).unwrap();
    placement.chosen.iter().map(ToString::to_string).collect()
}

/// The reasons of the clusters that an app does not go to, with what they need.
fn rejected(plan: &Plan, app: &str) -> BTreeMap<String, String> {
    let (_, placement) = plan.placement.iter().find(|(name, _)| name == app).unwrap();
    placement.rejected.iter().map(|one| (one.reason.clone(), one.needs.clone())).collect()
}

#[test]
fn any_of_takes_the_cluster_that_has_room_and_says_what_others_need() {
    let case = case(
        &[consumer("web", &gpus(1))],
        &[("a", node(0, 0)), ("b", node(1, 1)), ("c", node(1, 0)), ("d", node(2, 0))],
    );
    let plan = plan(&case);
    assert_eq!(chosen(&plan, "web"), ["acme/c"]);
    let rejected = rejected(&plan, "web");
    assert_eq!(rejected["HardwareMissing"], "1 more nvidia.com/gpu on one node");
    assert_eq!(rejected["HardwareInUse"], "1 more nvidia.com/gpu on one node");
    assert!(rejected.contains_key("NotChosen"));
    assert_eq!(chosen(&plan, "db"), ["acme/a"], "it needs nothing");
}

#[test]
fn all_of_with_a_cluster_without_room_is_refused() {
    let mut case = case(
        &[consumer("web", &labelled("avx512", "true"))],
        &[
            ("a", json!({"n": {"labels": {"avx512": "true"}}})),
            ("b", json!({"n": {}})),
            ("c", json!({"n": {}})),
        ],
    );
    case.dig["placement"] = json!({"allOf": [{"selector": {}}]});
    let refusal = refusal(&case);
    assert_eq!((refusal.condition, refusal.reason), ("Placed", "HardwareUnsatisfiable"));
    assert!(!refusal.stalled, "a node may come");
    assert_eq!(
        refusal.message,
        "app web: spec.placement.allOf takes acme/b (and 1 more), whose nodes have no room for it: HardwareIntent gpu, spec.consumers[web] needs \
         a node with avx512=true; add it there, or take the cluster out of allOf"
    );
}

#[test]
fn a_requirement_that_no_cluster_can_meet_is_refused_with_the_nearest() {
    let case = case(&[consumer("web", &gpus(3))], &[("a", node(1, 0)), ("b", node(2, 0))]);
    let refusal = refusal(&case);
    assert_eq!(refusal.reason, "HardwareUnsatisfiable");
    assert_eq!(
        refusal.message,
        "app web: spec.placement.anyOf[0] needs at least 1 cluster whose nodes have room for it, and 0 have; nearest is acme/a, which needs 2 \
         more nvidia.com/gpu on one node (2 clusters considered)"
    );
}

#[test]
fn apps_of_one_deployment_do_not_take_the_same_hardware() {
    let consumers = [consumer("web", &gpus(1)), consumer("db", &gpus(1))];
    let one = plan(&case(&consumers, &[("a", node(1, 0)), ("b", node(1, 0))]));
    assert_eq!(
        (chosen(&one, "db"), chosen(&one, "web")),
        (vec!["acme/a".to_owned()], vec!["acme/b".to_owned()])
    );
    let both = plan(&case(&consumers, &[("a", node(2, 0)), ("b", node(1, 0))]));
    assert_eq!(
        (chosen(&both, "db"), chosen(&both, "web")),
        (vec!["acme/a".to_owned()], vec!["acme/a".to_owned()])
    );
    let none = refusal(&case(&consumers, &[("a", node(1, 0))]));
    assert_eq!(none.reason, "HardwareUnsatisfiable");
}

#[test]
fn what_all_of_gives_is_left_by_apps_that_have_a_choice() {
    let consumers = [consumer("web", &gpus(1)), consumer("db", &gpus(1))];
    let mut case = case(&consumers, &[("a", node(1, 0)), ("b", node(1, 0))]);
    let any = json!([{"from": [{"selector": {}}]}]);
    // By name, db would take a.
    case.dig["placement"] =
        json!({"anyOf": any, "apps": [{"app": "web", "allOf": [{"provider": "acme", "cluster": "a"}]}]});
    let plan = plan(&case);
    assert_eq!(
        (chosen(&plan, "web"), chosen(&plan, "db")),
        (vec!["acme/a".to_owned()], vec!["acme/b".to_owned()])
    );
}

#[test]
fn clusters_with_more_of_what_is_preferred_come_first() {
    let prefers = |key: &str, weight: i64| json!({"name": key, "nodeSelector": {"matchLabels": {key: "yes"}}, "importance": "Preferred", "weight": weight});
    let with = |labels: Value| json!({"n": {"labels": labels}});
    let case = case(
        &[consumer("web", &json!([prefers("disk", 10), prefers("avx", 20), prefers("old", 5)]))],
        &[
            ("a", with(json!({}))),
            ("b", with(json!({"disk": "yes", "old": "yes"}))),
            ("c", with(json!({"avx": "yes"}))),
        ],
    );
    let first = plan(&case);
    assert_eq!(chosen(&first, "web"), ["acme/c"]);
    let mut two = case.clone();
    two.dig["placement"]["anyOf"][0]["count"] = json!(2);
    assert_eq!(chosen(&plan(&two), "web"), ["acme/b", "acme/c"]);
    let mut three = case;
    three.dig["placement"]["anyOf"][0]["count"] = json!(3);
    assert_eq!(chosen(&plan(&three), "web").len(), 3, "what is preferred removes no cluster");
}

#[test]
fn what_is_not_known_removes_nothing_and_is_chosen_last() {
    let mut case =
        case(&[consumer("web", &gpus(1))], &[("a", node(4, 0)), ("b", node(1, 1)), ("c", node(1, 0))]);
    case.clusters.get_mut("acme/a").unwrap().pods_forbidden = true;
    let known = plan(&case);
    assert_eq!(chosen(&known, "web"), ["acme/c"]);
    assert_eq!(rejected(&known, "web")["HardwareUnknown"], "the right to list its Pods");
    case.clusters.remove("acme/c");
    assert_eq!(chosen(&plan(&case), "web"), ["acme/a"], "b has no room");
    // Labels need no Pods.
    let mut case = self::case(
        &[consumer("web", &labelled("gpu", "yes"))],
        &[("a", json!({"n": {"labels": {"gpu": "yes"}}}))],
    );
    case.clusters.get_mut("acme/a").unwrap().pods_forbidden = true;
    assert_eq!(chosen(&plan(&case), "web"), ["acme/a"]);
}

#[test]
fn pods_that_may_not_be_listed_do_not_refuse_all_of() {
    let mut case = case(&[consumer("web", &gpus(1))], &[("a", node(1, 0))]);
    case.dig["placement"] = json!({"allOf": [{"selector": {}}]});
    case.clusters.get_mut("acme/a").unwrap().pods_forbidden = true;
    assert_eq!(chosen(&plan(&case), "web"), ["acme/a"]);
}

#[test]
fn a_second_deployment_does_not_take_what_was_just_given() {
    let mut case = case(&[consumer("web", &gpus(1))], &[("a", node(1, 0)), ("b", node(1, 0))]);
    case.clusters.get_mut("acme/a").unwrap().given = vec![consumer("web", &gpus(1))];
    let plan = plan(&case);
    assert_eq!(chosen(&plan, "web"), ["acme/b"]);
    assert!(rejected(&plan, "web").contains_key("HardwareInUse"));
}

#[test]
fn nodes_that_are_cordoned_take_nothing_new() {
    let mut closed = node(4, 0);
    closed["n"]["closed"] = json!(true);
    let plan = plan(&case(&[consumer("web", &gpus(1))], &[("a", closed), ("b", node(1, 0))]));
    assert_eq!(chosen(&plan, "web"), ["acme/b"]);
}
