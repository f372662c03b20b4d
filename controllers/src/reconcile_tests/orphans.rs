//! Owners that are missing: what is proved to have ended is cleaned up, what is not is kept and told. And a hub that is made
//! anew finds its edges as they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::life::*;
use super::shop::{TENANT, deployment, objects};
use crate::api::ApiServerExt;

fn dig() -> String {
    format!("{TENANT}/deploymentintentgroups/shop")
}

async fn installed() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life
}

fn of_shop(life: &Life, kind: &str) -> Vec<Value> {
    let of = |o: &Value| o["kind"] == kind && o["spec"]["owner"]["name"] == "shop";
    life.rig.hub.objects().into_values().filter(of).collect()
}

fn orphaned(life: &Life) -> bool {
    let conditions =
        of_shop(life, "SyncShard").iter().map(|s| s["status"]["conditions"].clone()).collect::<Vec<_>>();
    conditions
        .iter()
        .any(|list| list.as_array().is_some_and(|list| list.iter().any(|c| c["type"] == "Orphaned")))
}

fn without_namespace(life: &Life, edge: &str) -> Vec<String> {
    life.names_on(edge).into_iter().filter(|name| !name.starts_with("namespaces.")).collect()
}

async fn let_go(life: &Life) {
    life.rig.hub.merge(&dig(), &json!({"metadata": {"finalizers": []}})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deployment_whose_finalizer_was_removed_while_it_ended_ends_on_the_clusters_too() {
    let mut life = installed().await;
    life.delete(&dig()).await;
    // The wish is written down, and nothing is removed yet.
    assert!(life.rig.round().await.is_empty());
    let_go(&life).await;
    assert_eq!(life.dig(), Value::Null);
    life.settle().await;
    for edge in EDGES {
        assert_eq!(without_namespace(&life, edge), Vec::<String>::new());
    }
    assert!(of_shop(&life, "SyncShard").is_empty() && of_shop(&life, "AppContext").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_merely_missing_keeps_everything_and_goes_on_when_it_is_there_again() {
    let mut life = installed().await;
    let before = EDGES.map(|edge| versions(&life.edges[edge]));
    let_go(&life).await;
    life.delete(&dig()).await;
    assert_eq!(life.dig(), Value::Null);
    life.settle().await;
    assert!(orphaned(&life), "{:#?}", of_shop(&life, "SyncShard"));
    life.restart().await;
    life.settle().await;
    assert_eq!(EDGES.map(|edge| versions(&life.edges[edge])), before);
    assert!(!of_shop(&life, "AppContext").is_empty());
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(!orphaned(&life));
    assert_eq!(life.says("Ready").0, "True");
    assert_eq!(EDGES.map(|edge| versions(&life.edges[edge])), before, "found as it was");
    // And what is there again can end.
    life.delete(&dig()).await;
    life.settle().await;
    for edge in EDGES {
        assert_eq!(without_namespace(&life, edge), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_change_stays_while_the_deployment_is_missing() {
    let mut life = installed().await;
    let path = "/api/v1/namespaces/team-a/configmaps/page";
    let now = |life: &Life| life.edges["a"].object(path).unwrap()["data"]["text"].clone();
    let was = now(&life);
    let_go(&life).await;
    life.delete(&dig()).await;
    life.settle().await;
    life.edges["a"].merge(path, &json!({"data": {"text": "theirs"}})).await.unwrap();
    life.settle().await;
    assert_eq!(now(&life), "theirs");
    life.restart().await;
    life.settle().await;
    assert_eq!(now(&life), "theirs", "a process that never saw the deployment knows no more of it");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(now(&life), was, "it says that changes are put right");
}

#[tokio::test(start_paused = true)]
async fn a_new_hub_with_the_same_keys_finds_running_edges_and_touches_nothing() {
    let first = installed().await;
    let before = EDGES.map(|edge| versions(&first.edges[edge]));
    let edges: BTreeMap<_, _> = first.edges.clone();
    let mut second = Life::joined(edges);
    for object in objects() {
        second.put(&object);
    }
    second.settle().await;
    assert_eq!(second.says("Ready").0, "True", "{:#}", second.dig());
    assert_eq!(EDGES.map(|edge| versions(&second.edges[edge])), before);
}
