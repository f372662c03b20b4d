//! Deployments that need something of nodes: clusters are chosen by what was read of them, and nobody is given what another one got.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::hardware::Read;
use emco_engine::identity::ClusterId;
use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, deployment, objects};
use crate::api::{ApiError, Request};
use crate::memory::{Fault, Faults};
use crate::reconcile::hardware;

/// One GPU for `web`.
fn intent() -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let gpu = json!({"name": "gpu", "resource": {"name": "nvidia.com/gpu", "request": 1}});
    let consumer =
        json!({"name": "web", "app": "web", "target": target, "container": "web", "requirements": [gpu]});
    emco("HardwareIntent", Some("team-a"), "gpu", &json!({"consumers": [consumer]}))
}

/// The shop, or another deployment of it, with `web` on any one cluster, that lists the intent.
fn listing(name: &str) -> Value {
    let mut dig = deployment("edge");
    dig["metadata"]["name"] = json!(name);
    dig["spec"]["intents"] = json!([{"kind": "HardwareIntent", "name": "gpu"}]);
    let any = json!([{"from": [{"selector": {"matchLabels": {"tier": "edge"}}}]}]);
    let none = json!([{"app": "db", "anyOf": [{"from": [{"selector": {"matchLabels": {"disk": "fast"}}}]}]}]);
    dig["spec"]["placement"] = json!({"anyOf": any, "apps": none});
    dig
}

fn node(gpus: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": gpus.to_string()}}})
}

fn pod(gpus: i64) -> Value {
    let requests = json!({"requests": {"nvidia.com/gpu": gpus.to_string()}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": requests}]}})
}

fn gpus(life: &Life, a: i64, b: i64) {
    life.rig.has_nodes("a", &[], Some(&[node(a)]));
    life.rig.has_nodes("b", &[], Some(&[node(b)]));
}

/// The shop with the intent, where these clusters have so many GPUs.
async fn running(a: i64, b: i64) -> Life {
    let mut life = Life::with(&objects());
    gpus(&life, a, b);
    life.put(&intent());
    life.put(&listing("shop"));
    life.settle().await;
    life
}

/// The clusters where a deployment has `web`.
fn of_web(life: &Life, name: &str) -> Vec<String> {
    let shards = life.rig.hub.of_kind("SyncShard").into_iter();
    let own = shards.filter(|shard| {
        shard["spec"]["owner"]["name"] == name && shard["spec"]["owner"]["kind"] == "DeploymentIntentGroup"
    });
    let mut clusters = Vec::new();
    for shard in own {
        let with_web = |target: &Value| {
            let combinations = shard["spec"]["combinations"].as_array().unwrap();
            let named = combinations.iter().find(|one| one["name"] == *target);
            named.is_some_and(|one| one["apps"].as_array().unwrap().iter().any(|app| app["app"] == "web"))
        };
        for row in shard["spec"]["clusters"].as_array().unwrap() {
            if with_web(&row["target"]) {
                clusters.push(row["cluster"].as_str().unwrap().to_owned());
            }
        }
    }
    clusters
}

fn rejected(life: &Life, app: &str) -> Vec<(String, String)> {
    let apps = life.dig()["status"]["apps"].as_array().cloned().unwrap_or_default();
    let app = apps.into_iter().find(|one| one["name"] == app).unwrap_or_default();
    let all = app["rejected"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| (text(&one["reason"]), text(&one["needs"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn web_goes_where_a_gpu_is_free_and_asks_for_it() {
    let mut life = Life::with(&objects());
    gpus(&life, 1, 1);
    life.edges["a"].put("kubelet", &pod(1));
    life.put(&intent());
    life.put(&listing("shop"));
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/b"], "{:#}", life.dig());
    let web = &life.on("b")["deployments.apps/team-a/web"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        web["resources"],
        json!({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}})
    );
    assert_eq!(life.rig.ready(&format!("{TENANT}/hardwareintents/gpu")).1, "Valid");
    let in_use = ("HardwareInUse".to_owned(), "1 more nvidia.com/gpu on one node".to_owned());
    assert!(rejected(&life, "web").contains(&in_use), "{:#}", life.dig());
}

#[tokio::test(start_paused = true)]
async fn a_second_deployment_does_not_take_the_same_gpu() {
    let mut life = running(1, 1).await;
    assert_eq!(of_web(&life, "shop"), ["acme/a"]);
    // No Pod of the shop is there yet.
    life.put(&listing("till"));
    life.settle().await;
    assert_eq!(of_web(&life, "till"), ["acme/b"]);
    life.put(&listing("third"));
    life.settle().await;
    assert!(of_web(&life, "third").is_empty());
    let third = life.rig.hub.object(&format!("{TENANT}/deploymentintentgroups/third")).unwrap();
    let conditions = third["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["reason"] == "HardwareUnsatisfiable"), "{conditions:#?}");
}

#[tokio::test(start_paused = true)]
async fn two_deployments_that_come_at_once_do_not_take_the_same_gpu() {
    let mut life = Life::with(&objects());
    gpus(&life, 1, 1);
    life.put(&intent());
    life.put(&listing("shop"));
    life.put(&listing("till"));
    life.settle().await;
    let both = [of_web(&life, "shop"), of_web(&life, "till")].concat();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0] != both[1], "{both:?}");
}

/// The clock shows the minute in which a hub in memory makes everything: revisions are new then.
fn goes_to_when_things_are_made(life: &Life) {
    let made: jiff::Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
    let ahead = life.rig.ctx.now().as_second() - made.as_second();
    life.rig.clock.back(Duration::from_secs(ahead.unsigned_abs()));
}

#[tokio::test(start_paused = true)]
async fn what_was_given_is_known_after_a_restart_and_ends_after_ten_minutes() {
    let mut life = Life::with(&objects());
    goes_to_when_things_are_made(&life);
    for edge in life.edges.values() {
        edge.set_workloads_ready(false);
    }
    gpus(&life, 1, 0);
    life.put(&intent());
    life.put(&listing("shop"));
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/a"]);
    life.restart().await;
    life.put(&listing("till"));
    life.settle().await;
    assert!(of_web(&life, "till").is_empty(), "the shop has it");
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    assert_eq!(of_web(&life, "till"), ["acme/a"], "its Pods never came");
}

#[tokio::test(start_paused = true)]
async fn a_restart_moves_nothing_before_nodes_are_listed() {
    let mut life = running(1, 1).await;
    let shards = |life: &Life| -> Vec<Value> {
        life.rig.hub.of_kind("SyncShard").into_iter().map(|shard| shard["spec"].clone()).collect()
    };
    let before = shards(&life);
    life.restart().await;
    for cluster in EDGES {
        life.rig.forgets_nodes(cluster);
    }
    life.edges["a"].put("kubelet", &pod(1));
    for _ in 0..3 {
        life.next().await;
        assert_eq!(of_web(&life, "shop"), ["acme/a"]);
    }
    gpus(&life, 1, 1);
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/a"], "use moves nothing");
    assert_eq!(shards(&life), before, "nothing was targeted");
}

#[tokio::test(start_paused = true)]
async fn a_new_deployment_waits_until_nodes_are_listed() {
    let mut life = Life::with(&objects());
    life.put(&intent());
    life.put(&listing("shop"));
    for _ in 0..3 {
        life.next().await;
    }
    assert!(of_web(&life, "shop").is_empty());
    gpus(&life, 0, 1);
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/b"]);
}

#[tokio::test(start_paused = true)]
async fn clusters_that_do_not_tell_are_not_waited_for_longer_than_a_minute() {
    let mut life = Life::with(&objects());
    life.put(&intent());
    life.put(&listing("shop"));
    life.settle().await;
    assert!(of_web(&life, "shop").is_empty(), "it waits");
    life.rig.clock.forward(Duration::from_mins(2));
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/a"], "not known, by name");
    let unknown = ("HardwareUnknown".to_owned(), "its nodes to be listed".to_owned());
    assert!(rejected(&life, "web").contains(&unknown), "{:#}", life.dig());
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_not_be_listed_are_unknown_and_that_is_said() {
    let mut life = Life::with(&objects());
    gpus(&life, 1, 1);
    for edge in life.edges.values() {
        edge.faults(Some(forbidden_pods()));
    }
    life.put(&intent());
    life.put(&listing("shop"));
    life.settle().await;
    assert_eq!(of_web(&life, "shop"), ["acme/a"]);
    let unknown = ("HardwareUnknown".to_owned(), "the right to list its Pods".to_owned());
    assert!(rejected(&life, "web").contains(&unknown), "{:#}", life.dig());
}

fn forbidden_pods() -> Faults {
    Arc::new(|request: &Request, _| {
        let error = ApiError::Status {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: "pods is forbidden".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        (request.path.as_str() == "/api/v1/pods").then_some(Fault::Refuse(error))
    })
}

#[tokio::test(start_paused = true)]
async fn only_deployments_that_list_it_look_again_and_only_for_another_verdict() {
    // One of the two is the shop's own.
    let life = running(2, 1).await;
    let [a, b] = EDGES.map(|name| ClusterId::new("acme", name));
    let news = || hardware::news(&life.rig.ctx, &[a.clone(), b.clone()]);
    assert!(news().is_empty());
    // More of what is there already changes nothing.
    gpus(&life, 3, 2);
    assert!(news().is_empty());
    gpus(&life, 3, 0);
    assert_eq!(news(), [("team-a".to_owned(), "shop".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn without_a_listed_intent_no_pod_is_read() {
    let mut life = Life::with(&objects());
    gpus(&life, 1, 1);
    life.put(&intent());
    life.edges["a"].take_seen();
    life.settle().await;
    assert!(!life.edges["a"].take_seen().iter().any(|seen| seen.path == "/api/v1/pods"));
}

#[tokio::test(start_paused = true)]
async fn pods_that_were_read_longest_ago_are_read_first() {
    let life = running(1, 1).await;
    let [a, b] = EDGES.map(|name| ClusterId::new("acme", name));
    assert!(hardware::due(&life.rig.ctx).is_empty(), "just read");
    life.rig.clock.forward(Duration::from_mins(6));
    life.rig.ctx.hardware.set_pods(&b, Read::Not, 0);
    assert_eq!(hardware::due(&life.rig.ctx), [b, a]);
}

#[tokio::test(start_paused = true)]
async fn an_intent_says_what_is_wrong_with_its_requirements() {
    let mut life = Life::with(&objects());
    let mut broken = intent();
    broken["spec"]["consumers"][0]["requirements"][0]["resource"]["request"] = json!("many");
    life.put(&broken);
    life.settle().await;
    let (status, reason, message) = life.rig.ready(&format!("{TENANT}/hardwareintents/gpu"));
    assert_eq!((status.as_str(), reason.as_str()), ("False", "RequirementInvalid"));
    assert!(
        message.starts_with("spec.consumers[web].requirements[gpu].resource.request: many is no amount"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_is_listed_is_held_until_it_is_no_more() {
    let mut life = running(1, 1).await;
    let path = format!("{TENANT}/hardwareintents/gpu");
    life.delete(&path).await;
    life.settle().await;
    let (_, reason, message) = life.rig.ready(&path);
    assert_eq!(reason, "Terminating");
    assert!(message.contains("deletion waits for 1 holder: DeploymentIntentGroup/team-a/shop"), "{message}");
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(life.rig.hub.object(&path).is_none());
}
