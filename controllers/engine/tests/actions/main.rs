//! What actions of intents do to what charts make, and on which clusters.

#[path = "../common/mod.rs"]
mod common;
mod generated;
mod laws;
mod meeting;
mod provenance;
mod refused;
mod selected;
mod stored;
mod targets;

use std::collections::BTreeMap;

use common::Case;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use proptest::prelude::*;
use serde_json::{Value, json};

const BASE: &str = r#"
about: ""
dig:
  placement: {allOf: [{selector: {}}]}
  intents: [{kind: GenericActionIntent, name: one}, {kind: GenericActionIntent, name: two}]
charts:
  web:
    templates/web.yaml: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ .Release.Name }}-web", labels: {app: web}}
      spec:
        replicas: 2
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            containers:
            - {name: web, image: example.com/web, args: [a]}
      ---
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: page, labels: {app: web}}
      data: {text: plain, more: kept}
  db:
    templates/db.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: db}
      data: {text: plain}
intents: {one: {}, two: {}}
clusters:
  acme/a: {labels: {tier: edge}, properties: {rack: "12"}}
  acme/b: {}
  other/a: {}
"#;

/// A case in which the intents `one` and `two` have these actions.
fn case(one: &Value, two: &Value) -> Case {
    let mut case = Case::parse(BASE).unwrap();
    case.intents = [("one", one), ("two", two)]
        .map(|(name, actions)| (name.to_owned(), json!({"actions": actions})))
        .into();
    case
}

/// The same without a list of intents.
fn plain() -> Case {
    let mut case = case(&json!([]), &json!([]));
    case.dig.as_object_mut().unwrap().remove("intents");
    case
}

fn plan(one: &Value) -> Plan {
    case(one, &json!([])).plan().unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn refusal(one: &Value, two: &Value) -> Refusal {
    *case(one, two).plan().unwrap_err()
}

/// The manifests of an app on a cluster by kind and name.
fn on(plan: &Plan, cluster: &str, app: &str) -> BTreeMap<String, Value> {
    let (_, apps) = plan.assignment.iter().find(|(id, _)| id.as_str() == cluster).unwrap();
    let set = &plan.sets[&apps[app].set];
    let named = |json: &Value| {
        format!("{}/{}", json["kind"].as_str().unwrap(), json["metadata"]["name"].as_str().unwrap())
    };
    set.manifests.iter().map(|manifest| (named(&manifest.json), manifest.json.clone())).collect()
}

const WEB: &str = "Deployment/shop-web";

fn banner() -> Value {
    json!({
        "name": "banner", "app": "web", "type": "Add", "templating": "Handlebars",
        "add": {"inline": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "banner"},
            "data": {"text": "served from {{cluster.name}}"}}},
    })
}

/// A merge patch of the Deployment.
fn replicas(name: &str, number: i64) -> Value {
    json!({
        "name": name, "app": "web", "type": "JSONMerge",
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"},
        "jsonMerge": {"spec": {"replicas": number}},
    })
}

fn with(mut action: Value, field: &str, value: Value) -> Value {
    action[field] = value;
    action
}

#[test]
fn a_resource_without_any_change_is_added_on_every_cluster_of_the_app() {
    let plan = plan(&json!([banner()]));
    for (cluster, name) in [("acme/a", "a"), ("acme/b", "b"), ("other/a", "a")] {
        let made = on(&plan, cluster, "web");
        assert_eq!(made["ConfigMap/banner"]["data"]["text"], format!("served from {name}"));
        assert_eq!(made["ConfigMap/banner"]["metadata"]["namespace"], "shop");
        assert!(!on(&plan, cluster, "db").contains_key("ConfigMap/banner"), "it is of one app");
    }
}

#[test]
fn each_type_of_patch_changes_what_it_says_and_nothing_else() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
    let plan = plan(&json!([
        {"name": "json", "app": "web", "type": "JSONPatch", "target": target, "jsonPatch": [
            {"op": "test", "path": "/spec/replicas", "value": 2},
            {"op": "replace", "path": "/spec/replicas", "value": 1},
        ]},
        {"name": "strategic", "app": "web", "type": "StrategicMerge", "target": target, "strategicMerge":
            {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.com/web:2"}]}}}}},
        {"name": "merge", "app": "web", "type": "JSONMerge", "target": {"apiVersion": "v1", "kind": "ConfigMap", "selector":
            {"matchLabels": {"app": "web"}}}, "jsonMerge": {"data": {"text": "changed"}}},
        {"name": "delete", "app": "db", "type": "Delete", "target": {"apiVersion": "v1", "kind": "ConfigMap", "name": "db"}},
    ]));
    let made = on(&plan, "acme/a", "web");
    assert_eq!(made[WEB]["spec"]["replicas"], 1);
    let container = json!([{"name": "web", "image": "example.com/web:2", "args": ["a"]}]);
    assert_eq!(made[WEB]["spec"]["template"]["spec"]["containers"], container);
    assert_eq!(made["ConfigMap/page"]["data"], json!({"text": "changed", "more": "kept"}));
    assert_eq!(on(&plan, "acme/a", "db").len(), 0);
}

#[test]
fn a_denied_cluster_gets_nothing_and_all_others_do() {
    let plan =
        plan(&json!([with(banner(), "deny", json!([{"selector": {"matchLabels": {"tier": "edge"}}}]))]));
    let has = |cluster| on(&plan, cluster, "web").contains_key("ConfigMap/banner");
    assert_eq!(["acme/a", "acme/b", "other/a"].map(has), [false, true, true]);
}

#[test]
fn provider_and_name_of_a_cluster_in_an_action_are_compared_together() {
    let terms = json!([{"provider": "acme", "cluster": "a"}]);
    for (field, expected) in [("allow", [true, false, false]), ("deny", [false, true, true])] {
        let plan = plan(&json!([with(banner(), field, terms.clone())]));
        let has = |cluster| on(&plan, cluster, "web").contains_key("ConfigMap/banner");
        assert_eq!(["acme/a", "acme/b", "other/a"].map(has), expected, "{field}");
    }
}

#[test]
fn deny_wins_over_allow() {
    let action = with(banner(), "allow", json!([{"provider": "acme"}]));
    let plan = plan(&json!([with(action, "deny", json!([{"provider": "acme", "cluster": "b"}]))]));
    let has = |cluster| on(&plan, cluster, "web").contains_key("ConfigMap/banner");
    assert_eq!(["acme/a", "acme/b", "other/a"].map(has), [true, false, false]);
}

#[test]
fn actions_are_carried_out_in_the_order_in_which_they_are_listed() {
    let change = json!({"name": "shout", "app": "web", "type": "JSONMerge",
        "target": {"apiVersion": "v1", "kind": "ConfigMap", "name": "banner"}, "jsonMerge": {"data": {"loud": "yes"}}});
    let plan = plan(&json!([banner(), change, replicas("few", 1), replicas("many", 5)]));
    let made = on(&plan, "acme/a", "web");
    assert_eq!(made["ConfigMap/banner"]["data"]["loud"], "yes", "what was added before is changed");
    assert_eq!(made[WEB]["spec"]["replicas"], 5, "within one intent the later one counts");
    let refusal = refusal(&json!([change]), &json!([banner()]));
    assert_eq!(refusal.reason, "TargetMissing");
    assert!(refusal.message.contains("GenericActionIntent one, spec.actions[shout]"), "{refusal}");
}

#[test]
fn intents_that_change_different_fields_of_one_object_agree() {
    let labels = |name: &str, key: &str| {
        let patch = json!({"metadata": {"annotations": {key: "x"}}});
        with(replicas(name, 2), "jsonMerge", patch)
    };
    let made = case(&json!([labels("one", "a")]), &json!([labels("two", "b")])).plan().unwrap();
    let annotations = json!({"a": "x", "b": "x"});
    assert_eq!(on(&made, "acme/a", "web")[WEB]["metadata"]["annotations"], annotations);
}

#[test]
fn clusters_with_the_same_edits_share_one_set() {
    let plan = plan(&json!([replicas("few", 1)]));
    let sets: std::collections::BTreeSet<_> = plan.assignment.values().map(|apps| &apps["web"].set).collect();
    assert_eq!(sets.len(), 1);
}

#[test]
fn intents_that_do_nothing_leave_every_digest_as_it_is() {
    let (without, with) = (plain().plan().unwrap(), case(&json!([]), &json!([])).plan().unwrap());
    assert_eq!(without.assignment, with.assignment);
    assert_ne!(without.inputs_digest, with.inputs_digest, "what is listed is part of what is approved");
}

#[test]
fn intents_that_do_not_meet_make_the_same_objects_in_either_order() {
    let (one, two) = (json!([banner()]), json!([replicas("few", 1)]));
    let plan = case(&one, &two).plan().unwrap();
    let mut turned = case(&one, &two);
    turned.dig["intents"].as_array_mut().unwrap().reverse();
    let turned = turned.plan().unwrap();
    for cluster in ["acme/a", "acme/b", "other/a"] {
        assert_eq!(on(&plan, cluster, "web"), on(&turned, cluster, "web"));
    }
    assert!(plan.sets.keys().eq(turned.sets.keys()));
}

#[test]
fn a_plan_of_what_runs_with_actions_changes_nothing() {
    let case = case(&json!([banner()]), &json!([replicas("few", 1)]));
    let running = case.run(&case.plan().unwrap());
    let again = emco_engine::plan::plan(&case.snapshot(Some(running))).unwrap();
    assert_eq!(again.change, None);
}

#[test]
fn what_an_action_did_is_written_down_with_the_object() {
    let plan = plan(&json!([banner(), replicas("few", 1)]));
    let (_, apps) = plan.assignment.iter().next().unwrap();
    let edits: BTreeMap<String, Vec<String>> = plan.sets[&apps["web"].set]
        .manifests
        .iter()
        .map(|manifest| (manifest.identity().name, manifest.edited_by.clone()))
        .collect();
    let by = |text: &str| vec![text.to_owned()];
    assert_eq!(
        edits,
        BTreeMap::from([
            ("banner".to_owned(), by("added by GenericActionIntent one, spec.actions[banner]")),
            ("page".to_owned(), Vec::new()),
            ("shop-web".to_owned(), by("changed by GenericActionIntent one, spec.actions[few]")),
        ])
    );
}

#[test]
fn the_digest_of_inputs_sees_every_part_of_an_intent() {
    let digest = |change: &dyn Fn(&mut Value)| {
        let mut action = replicas("few", 1);
        change(&mut action);
        let case = case(&json!([action]), &json!([]));
        emco_engine::plan::inputs_digest(&case.snapshot(None)).unwrap()
    };
    let plain = digest(&|_| {});
    for same in [("templating", "None"), ("onMissing", "Fail")] {
        assert_eq!(digest(&|action| action[same.0] = json!(same.1)), plain, "{}", same.0);
    }
    let selector = json!({"apiVersion": "apps/v1", "kind": "Deployment", "selector": {}});
    let changed = [
        digest(&|action| action["jsonMerge"]["spec"]["replicas"] = json!(3)),
        digest(&|action| action["onMissing"] = json!("Ignore")),
        digest(&|action| action["templating"] = json!("Handlebars")),
        digest(&|action| action["allow"] = json!([{"selector": {}}])),
        digest(&|action| action["deny"] = json!([{"provider": "x"}])),
        digest(&|action| action["target"] = selector.clone()),
        digest(&|action| action["name"] = json!("fewer")),
    ];
    let all: std::collections::BTreeSet<_> = changed.iter().chain([&plain]).collect();
    assert_eq!(all.len(), changed.len() + 1);
}

fn some_clusters() -> impl Strategy<Value = Option<Vec<&'static str>>> {
    prop::option::of(prop::sample::subsequence(CLUSTERS.to_vec(), 1..=CLUSTERS.len()))
}

const CLUSTERS: [&str; 3] = ["acme/a", "acme/b", "other/a"];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn an_action_counts_where_it_is_allowed_and_not_denied(allow in some_clusters(), deny in some_clusters()) {
        let mut action = banner();
        for (field, clusters) in [("allow", &allow), ("deny", &deny)] {
            let Some(clusters) = clusters else { continue };
            let term = |cluster: &&str| {
                let (provider, name) = cluster.split_once('/').unwrap();
                json!({"provider": provider, "cluster": name})
            };
            action[field] = clusters.iter().map(term).collect();
        }
        let plan = plan(&json!([action]));
        for cluster in CLUSTERS {
            let allowed = allow.as_ref().is_none_or(|allow| allow.contains(&cluster));
            let denied = deny.as_ref().is_some_and(|deny| deny.contains(&cluster));
            let has = on(&plan, cluster, "web").contains_key("ConfigMap/banner");
            prop_assert_eq!(has, allowed && !denied, "{}", cluster);
        }
    }
}
