//! What a traffic intent makes, from the list of a deployment to its clusters, and what keeps the intent.

use serde_json::{Value, json};

use super::approvals::manual;
use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects};

const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/shop-store-db";
const SERVER: &str = "/apis/apps/v1/namespaces/team-a/statefulsets/db";
const APP: &str = "tgi.store";

/// Gives the app `db` a Service: its chart makes none.
fn service() -> Value {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"},
        "spec": {"clusterIP": "10.0.0.9", "selector": {"app": "db"}, "ports": [{"name": "sql", "port": 5432}]}});
    let action = json!({"name": "service", "app": "db", "type": "Add", "add": {"inline": service}});
    emco("GenericActionIntent", Some("team-a"), "service", &json!({"actions": [action]}))
}

/// The server `db`, with these clients.
fn store(clients: &Value) -> Value {
    let server = json!({"name": "db", "app": "db", "clients": clients});
    emco("TrafficGroupIntent", Some("team-a"), "store", &json!({"servers": [server]}))
}

fn web() -> Value {
    json!({"name": "web", "app": "web", "workload": {"kind": "Deployment", "name": "web"}})
}

fn office() -> Value {
    json!({"name": "office", "cidrs": ["10.1.0.0/16"]})
}

fn listing() -> Value {
    let mut dig = deployment("edge");
    // The intent that reads what the other one leaves is listed before it.
    dig["spec"]["intents"] = json!([
        {"kind": "TrafficGroupIntent", "name": "store"}, {"kind": "GenericActionIntent", "name": "service"}
    ]);
    dig
}

async fn fenced() -> Life {
    let mut life = Life::with(&objects());
    life.put(&service());
    life.put(&store(&json!([web()])));
    life.put(&listing());
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life
}

fn written(life: &Life, path: &str) -> u64 {
    let object = life.edges["b"].object(path).unwrap();
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn from(life: &Life) -> Value {
    let policy = life.edges["b"].object(POLICY).unwrap_or_default();
    policy["spec"]["ingress"][0]["from"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_there_before_its_server_and_only_where_that_is() {
    let life = fenced().await;
    assert_eq!(from(&life), json!([{"podSelector": {"matchLabels": {"app": "web"}}}]));
    assert!(written(&life, POLICY) < written(&life, SERVER));
    assert!(life.edges["a"].object(POLICY).is_none(), "db is on b alone");
    assert_eq!(life.says("Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_new_client_reaches_clusters_as_one_changed_policy() {
    let mut life = fenced().await;
    let before = versions(&life.edges["b"]);
    life.put(&store(&json!([web(), office()])));
    life.settle().await;
    assert_eq!(from(&life)[1], json!({"ipBlock": {"cidr": "10.1.0.0/16"}}));
    let now = versions(&life.edges["b"]);
    let moved: Vec<&String> =
        now.iter().filter(|(key, at)| before.get(*key) != Some(*at)).map(|(key, _)| key).collect();
    assert!(!moved.is_empty() && moved.iter().all(|key| key.contains("shop-store-db")), "{moved:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_client_waits_for_its_approval() {
    let mut life = fenced().await;
    life.put(&manual("Inputs"));
    life.settle().await;
    life.put(&store(&json!([web(), office()])));
    life.settle().await;
    assert_eq!(from(&life), json!([{"podSelector": {"matchLabels": {"app": "web"}}}]));
    let pending = life.dig()["status"]["pending"].clone();
    let apps: Vec<&Value> = pending["apps"].as_array().unwrap().iter().map(|app| &app["name"]).collect();
    assert_eq!(apps, [APP], "{pending:#}");
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_is_in_use_stays_until_no_list_has_it() {
    let mut life = fenced().await;
    let path = format!("{TENANT}/trafficgroupintents/store");
    life.delete(&path).await;
    life.settle().await;
    let held = life.rig.hub.object(&path).unwrap();
    assert_eq!(
        held["status"]["inUse"],
        json!({"total": 1, "holders": ["DeploymentIntentGroup/team-a/shop"]})
    );
    let (state, reason, message) = life.rig.ready(&path);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "Terminating"));
    assert_eq!(message, "deletion waits for 1 holder: DeploymentIntentGroup/team-a/shop");
    assert!(from(&life).is_array(), "its policy stays with it");
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(life.rig.hub.object(&path).is_none());
    assert!(life.edges["b"].object(POLICY).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_turns_keeps_the_server_and_its_policy() {
    let mut life = fenced().await;
    let mut cluster = labelled("b", &json!({"tier": "edge", "disk": "fast"}));
    cluster["spec"]["network"] = json!({"networkPolicy": "NotEnforced"});
    life.put(&cluster);
    life.settle().await;
    assert!(life.edges["b"].object(SERVER).is_some() && from(&life).is_array());
    assert_eq!(life.dig()["status"]["revision"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_cannot_be_carried_out_says_so_itself() {
    let mut life = Life::with(&objects());
    life.put(&store(&json!([{"name": "office", "cidrs": ["10.1.0.7/16"]}])));
    life.settle().await;
    let (state, reason, message) = life.rig.ready(&format!("{TENANT}/trafficgroupintents/store"));
    assert_eq!((state.as_str(), reason.as_str()), ("False", "ServerInvalid"));
    assert!(message.starts_with("spec.servers[db].clients[office].cidrs: 10.1.0.7/16 has bits"), "{message}");
}
