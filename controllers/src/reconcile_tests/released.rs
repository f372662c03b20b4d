//! Namespaces of logical clouds that were released because they held data, and are wanted again: each way that leads there.

use emco_crds::SyncShard;
use emco_engine::marks::made;
use emco_engine::{marks, shard};
use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects};

const SPACE: &str = "/api/v1/namespaces/team-a";
const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/emco-default";
const CLOUD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";

/// A change that somebody makes.
type Change = fn(&Life);

fn cloud(more: &Value) -> Value {
    let mut spec = json!({"level": "Standard", "quotas": [{"name": "pods", "hard": {"pods": "20"}}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    emco("LogicalCloud", Some("team-a"), "default", &spec)
}

/// Both clusters are prepared, and each has data in the namespace.
async fn with_data(mut all: Vec<Value>, more: &Value) -> Life {
    all.push(cloud(more));
    let mut life = Life::with(&all);
    life.settle().await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "namespace": "team-a"}});
    for edge in life.edges.values() {
        edge.put("statefulset", &claim);
    }
    life
}

/// No deployment is there.
async fn prepared() -> Life {
    let mut all = objects();
    all.pop();
    with_data(all, &json!({})).await
}

fn live(life: &Life) -> Value {
    life.edges["a"].object(SPACE).unwrap()
}

fn is_ours(life: &Life) -> bool {
    marks::owner_of(&live(life)).is_some()
}

fn has_quota(life: &Life) -> bool {
    life.edges["a"].object(&format!("{SPACE}/resourcequotas/emco-pods")).is_some()
}

/// The namespace is nobody's, and can be proven to have been made for the logical cloud.
fn is_released(life: &Life, how: &str) {
    let proven = made::proof_on(&live(life)).is_some();
    // What bounds the pods that may be there stays with them.
    assert_eq!((is_ours(life), proven, has_quota(life)), (false, true, true), "{how}");
    assert_eq!(life.edges["a"].object(BINDING), None, "{how}: nobody has rights there");
}

/// It is the cloud's, as it was before.
fn is_taken(life: &Life, uid: &Value, how: &str) {
    assert_eq!((is_ours(life), has_quota(life)), (true, true), "{how}: {:?}", life.rig.ready(CLOUD));
    assert_eq!(live(life)["metadata"]["uid"], *uid, "{how}");
    assert_eq!(life.rig.ready(CLOUD).0, "True", "{how}: {:?}", life.rig.ready(CLOUD));
}

async fn leaves_and_returns(leave: Change, back: Change) {
    let mut life = prepared().await;
    let uid = live(&life)["metadata"]["uid"].clone();
    leave(&life);
    life.settle().await;
    is_released(&life, "it leaves");
    back(&life);
    life.settle().await;
    is_taken(&life, &uid, "it returns");
}

fn scheduled(life: &Life, scheduling: &str) {
    let mut cluster = labelled("a", &json!({"tier": "edge"}));
    cluster["spec"]["scheduling"] = json!(scheduling);
    life.put(&cluster);
}

fn drain(life: &Life) {
    scheduled(life, "Drained");
}

fn enable(life: &Life) {
    scheduled(life, "Enabled");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_drained_and_is_enabled_has_its_namespace_again() {
    leaves_and_returns(drain, enable).await;
}

/// Of a grant or of a logical cloud.
fn b_alone() -> Value {
    json!({"clusters": [{"provider": "acme", "cluster": "b"}]})
}

fn grant(life: &Life, more: &Value) {
    let mut grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin"});
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_was_withdrawn_and_is_given_brings_the_namespace_back() {
    let withdraw = |life: &Life| grant(life, &b_alone());
    leaves_and_returns(withdraw, |life| grant(life, &json!({}))).await;
}

#[tokio::test(start_paused = true)]
async fn clusters_that_were_narrowed_and_are_widened_have_the_namespace_again() {
    let narrow = |life: &Life| life.put(&cloud(&b_alone()));
    leaves_and_returns(narrow, |life| life.put(&cloud(&json!({})))).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_on_demand_has_its_namespace_again_with_the_next_deployment() {
    let mut life = with_data(objects(), &json!({"provision": "OnDemand"})).await;
    let uid = live(&life)["metadata"]["uid"].clone();
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    is_released(&life, "the last deployment left");
    life.put(&deployment("edge"));
    life.settle().await;
    is_taken(&life, &uid, "the next one comes");
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_drain_leaves_the_proof() {
    let begin = async || prepared().await;
    let check = async |life: &mut Life, how: &str| is_released(life, how);
    Box::pin(deaths::at_each_write(begin, drain, check, 3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_an_enabling_ends_with_the_namespace_taken() {
    let begin = async || {
        let mut life = prepared().await;
        drain(&life);
        life.settle().await;
        life
    };
    let check = async |life: &mut Life, how: &str| {
        let uid = live(life)["metadata"]["uid"].clone();
        is_taken(life, &uid, how);
    };
    Box::pin(deaths::at_each_write(begin, enable, check, 3)).await;
}

/// What rows of deployments say is in their way.
fn errors(life: &Life) -> Vec<String> {
    let of_deployments =
        |object: &Value| object["spec"]["owner"]["kind"].as_str() == Some("DeploymentIntentGroup");
    let mut all = Vec::new();
    for object in life.rig.hub.of_kind("SyncShard").into_iter().filter(of_deployments) {
        let found: SyncShard = serde_json::from_value(object).unwrap();
        let rows = found.status.as_ref().map(|status| shard::decode_status(&found.spec, status));
        let errors = rows.unwrap_or_default().into_values().filter_map(|row| row.error);
        all.extend(errors.map(|error| error.message));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_deployment_says_what_is_in_the_way_of_its_logical_cloud() {
    let mut all = objects();
    all.push(cloud(&json!({})));
    let mut life = Life::with(&all);
    let theirs = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    life.edges["a"].put("somebody", &theirs);
    life.settle().await;
    let says = errors(&life);
    let why = "its logical cloud cannot make system:serviceaccount:team-a:emco-default there: ";
    // Its beginning and its end are kept.
    let cause = "NotOurs: Namespace/team-a: is there, and";
    assert!(says.iter().any(|said| said.starts_with(why) && said.contains(cause)), "{says:?}");
    // Whoever may write the namespace gives it over, and nothing in it is lost.
    let status = &life.rig.hub.object(CLOUD).unwrap()["status"];
    let message = status["failing"][0]["message"].as_str().unwrap();
    let command = "or give it over there: kubectl label ns team-a emco.io/owner=";
    let hash = message.split(command).nth(1).unwrap_or_else(|| panic!("{message}"));
    let mut given = live(&life);
    given["metadata"]["labels"] = json!({"emco.io/owner": &hash[..32]});
    life.edges["a"].put("administrator", &given);
    // It is tried again within five minutes.
    for _ in 0..4 {
        life.tell().await;
    }
    life.settle().await;
    assert!(has_quota(&life));
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
}
