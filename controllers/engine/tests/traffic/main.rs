//! What intents of traffic make of charts: which policies, on which clusters, and what is refused.

mod clusters;
#[path = "../common/mod.rs"]
mod common;
mod laws;
mod numbers;
mod proof;
mod refused;
mod second;

use std::collections::BTreeMap;

use common::Case;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use serde_json::{Value, json};

const BASE: &str = r#"
about: ""
dig:
  release: r1
  placement: {allOf: [{selector: {}}]}
  intents: [{kind: TrafficGroupIntent, name: front}]
charts:
  catalog:
    templates/catalog.yaml: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ .Release.Name }}-catalog"}
      spec:
        selector: {matchLabels: {app: catalog}}
        template:
          metadata: {labels: {app: catalog, version: one}}
          spec:
            containers:
            - {name: catalog, image: example.com/c, ports: [{name: web, containerPort: 8080}, {name: ssh, containerPort: 22}]}
      ---
      apiVersion: v1
      kind: Service
      metadata: {name: "{{ .Release.Name }}-catalog"}
      spec:
        selector: {app: catalog}
        ports: [{name: http, port: 9000, targetPort: web}, {name: metrics, port: 9100, targetPort: 9100, protocol: UDP}]
  ui:
    templates/ui.yaml: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ .Release.Name }}-ui"}
      spec:
        selector: {matchLabels: {app: ui}}
        template:
          metadata: {labels: {app: ui, version: one}}
          spec: {containers: [{name: ui, image: example.com/u}]}
      ---
      apiVersion: batch/v1
      kind: CronJob
      metadata: {name: "{{ .Release.Name }}-warm"}
      spec:
        schedule: "* * * * *"
        jobTemplate:
          spec:
            template:
              metadata: {labels: {job: warm}}
              spec: {restartPolicy: Never, containers: [{name: warm, image: example.com/w}]}
clusters: {acme/a: {networkPolicy: Enforced}, acme/b: {networkPolicy: Enforced}}
"#;

/// A case in which the intent `front` has one server `catalog`, with this over it.
fn case(server: &Value) -> Case {
    let mut case = Case::parse(BASE).unwrap();
    case.traffic = [("front".to_owned(), json!({"servers": [with_server(server)]}))].into();
    case
}

fn with_server(over: &Value) -> Value {
    let mut server = json!({"name": "catalog", "app": "catalog", "ports": ["http"], "clients": [{"name": "ui", "app": "ui"}]});
    for (key, value) in over.as_object().unwrap() {
        if value.is_null() {
            server.as_object_mut().unwrap().remove(key);
        } else {
            server[key] = value.clone();
        }
    }
    server
}

/// Another chart for an app.
fn chart(case: &mut Case, app: &str, template: &str) {
    case.charts.insert(app.to_owned(), [("templates/all.yaml".to_owned(), template.to_owned())].into());
}

fn plan(case: &Case) -> Plan {
    case.plan().unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn refusal(case: &Case) -> Refusal {
    match case.plan() {
        Err(refusal) => *refusal,
        Ok(plan) => panic!("{:?}", plan.change),
    }
}

/// What an app has on a cluster, by kind and name.
fn on(plan: &Plan, cluster: &str, app: &str) -> BTreeMap<String, Value> {
    let cluster = emco_engine::identity::ClusterId::parse(cluster).unwrap();
    let assigned = plan.assignment.get(&cluster).and_then(|apps| apps.get(app));
    let manifests = assigned.into_iter().flat_map(|assigned| &plan.sets[&assigned.set].manifests);
    manifests.map(|m| (format!("{}/{}", m.identity().kind, m.identity().name), m.json.clone())).collect()
}

/// The policy of the server `catalog` on a cluster.
fn policy(plan: &Plan, cluster: &str) -> Value {
    on(plan, cluster, "tgi.front").remove("NetworkPolicy/r1-front-catalog").unwrap_or_default()
}

fn ingress(server: &Value) -> Value {
    policy(&plan(&case(server)), "acme/a")["spec"]["ingress"].clone()
}

#[test]
fn a_server_lets_in_its_clients_on_its_ports_and_nothing_else() {
    let plan = plan(&case(&json!({})));
    for cluster in ["acme/a", "acme/b"] {
        let policy = policy(&plan, cluster);
        assert_eq!(policy["metadata"]["namespace"], "shop");
        assert_eq!(
            policy["spec"],
            json!({
                "podSelector": {"matchLabels": {"app": "catalog"}},
                "policyTypes": ["Ingress"],
                // What a workload tells its pods by, not what a version of its chart adds to them.
                "ingress": [{
                    "from": [
                        {"podSelector": {"matchLabels": {"app": "ui"}}},
                        {"podSelector": {"matchLabels": {"job": "warm"}}},
                    ],
                    "ports": [{"protocol": "TCP", "port": "web"}],
                }],
            })
        );
    }
}

#[test]
fn all_ports_of_the_service_count_where_none_is_named() {
    let rules = ingress(&json!({"ports": null}));
    assert_eq!(
        rules[0]["ports"],
        json!([{"protocol": "TCP", "port": "web"}, {"protocol": "UDP", "port": 9100}])
    );
    let by_number = ingress(&json!({"ports": [9100]}));
    assert_eq!(by_number[0]["ports"], json!([{"protocol": "UDP", "port": 9100}]));
}

#[test]
fn one_workload_of_an_app_may_be_the_client() {
    let warm =
        json!([{"name": "warm", "app": "ui", "workload": {"kind": "CronJob", "name": "{{release}}-warm"}}]);
    let rules = ingress(&json!({"clients": warm}));
    assert_eq!(rules[0]["from"], json!([{"podSelector": {"matchLabels": {"job": "warm"}}}]));
}

#[test]
fn pods_of_others_and_addresses_may_be_clients() {
    let clients = json!([
        {"name": "report", "podSelector": {"matchLabels": {"app": "report"}}, "namespaces": ["batch"]},
        {"name": "near", "podSelector": {"matchLabels": {"app": "near"}}},
        {"name": "corp", "cidrs": ["10.1.0.0/16", "2001:db8::/48"]},
    ]);
    assert_eq!(
        ingress(&json!({"clients": clients}))[0]["from"],
        json!([
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "batch"}},
                "podSelector": {"matchLabels": {"app": "report"}},
            },
            {"podSelector": {"matchLabels": {"app": "near"}}},
            {"ipBlock": {"cidr": "10.1.0.0/16"}},
            {"ipBlock": {"cidr": "2001:db8::/48"}},
        ])
    );
}

#[test]
fn pods_of_a_job_are_told_by_its_name() {
    let mut case = case(&json!({}));
    let job = "
apiVersion: batch/v1
kind: Job
metadata: {name: seed, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/c}]}}}
";
    chart(&mut case, "ui", job);
    let from = policy(&plan(&case), "acme/a")["spec"]["ingress"][0]["from"].clone();
    assert_eq!(from, json!([{"podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "seed"}}}]));
}

#[test]
fn an_app_may_be_a_client_of_itself() {
    let rules = ingress(&json!({"clients": [{"name": "peers", "app": "catalog"}]}));
    assert_eq!(rules[0]["from"], json!([{"podSelector": {"matchLabels": {"app": "catalog"}}}]));
}

#[test]
fn the_graph_is_read_from_what_other_intents_leave() {
    let mut case = case(&json!({"clients": [{"name": "peers", "app": "catalog"}]}));
    let target = json!({"apiVersion": "v1", "kind": "Service", "name": "r1-catalog"});
    let patch = json!({"spec": {"selector": {"tier": "front"}}});
    case.intents = [(
        "tier".to_owned(),
        json!({"actions": [
            {"name": "tier", "app": "catalog", "type": "JSONMerge", "target": target, "jsonMerge": patch},
        ]}),
    )]
    .into();
    // Listed after the intent that reads what it leaves: the priority of the kind decides.
    case.dig["intents"] = json!([
        {"kind": "TrafficGroupIntent", "name": "front"}, {"kind": "GenericActionIntent", "name": "tier"}
    ]);
    let mut plain = case.clone();
    plain.traffic.get_mut("front").unwrap()["servers"][0]["ports"] = json!(["metrics"]);
    let selector = policy(&plan(&plain), "acme/a")["spec"]["podSelector"]["matchLabels"].clone();
    assert_eq!(selector, json!({"app": "catalog", "tier": "front"}));
    // No container is behind the Service any more that would name the port.
    assert_eq!(refusal(&case).reason, "TargetMissing");
}

#[test]
fn two_intents_on_one_server_add_up() {
    let mut case = case(&json!({}));
    let back = json!({"servers": [with_server(&json!({"ports": ["metrics"], "clients": [{"name": "net", "cidrs": ["10.0.0.0/8"]}]}))]});
    case.traffic.insert("back".to_owned(), back);
    case.dig["intents"] = json!([{"kind": "TrafficGroupIntent", "name": "front"}, {"kind": "TrafficGroupIntent", "name": "back"}]);
    let plan = plan(&case);
    assert_eq!(on(&plan, "acme/a", "tgi.front").len(), 1);
    let back = on(&plan, "acme/a", "tgi.back").remove("NetworkPolicy/r1-back-catalog").unwrap();
    assert_eq!(back["spec"]["ingress"][0]["from"], json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]));
    case.traffic.get_mut("back").unwrap()["networkPolicy"] = json!("None");
    let refused = refusal(&case);
    assert_eq!((refused.reason, refused.stalled), ("EditConflict", true));
    assert_eq!(
        refused.message,
        "TrafficGroupIntent front and back both name Service r1-catalog of app catalog, and spec.networkPolicy is Servers in the one and \
         None in the other: set it to the same in both, or name the server in one of them"
    );
}

#[test]
fn a_new_client_changes_one_generated_app_and_no_chart() {
    let case = case(&json!({}));
    let first = plan(&case);
    let mut next = case.clone();
    next.traffic.get_mut("front").unwrap()["servers"][0]["clients"] =
        json!([{"name": "ui", "app": "ui"}, {"name": "corp", "cidrs": ["10.1.0.0/16"]}]);
    let second = emco_engine::plan::plan(&next.snapshot(Some(case.run(&first)))).unwrap();
    assert_ne!(first.inputs_digest, second.inputs_digest, "an approval of the one is none of the other");
    for (cluster, apps) in &second.assignment {
        for (app, assigned) in apps {
            let before = &first.assignment[cluster][app];
            assert_eq!(app == "tgi.front", before != assigned, "{app} on {cluster}");
        }
    }
    let summary = second.change.unwrap().summary;
    assert!(summary.contains("tgi.front"), "{summary}");
    assert!(!summary.contains("catalog on"), "{summary}");
}
