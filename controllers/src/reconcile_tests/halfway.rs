//! Deployments that are only planned from a moment on in which one of two shards was written and the other one was not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::approvals::page;
use super::life::*;
use super::plans::{edit, is_clean, pending, with};
use super::shop::{deployment, objects};
use crate::api::Method;
use crate::memory::Fault;

/// Two rows never fit, one always does.
const TINY: usize = 900;
/// What the logical cloud has on each edge.
const NOTHING: [&str; 1] = ["namespaces.//team-a"];

async fn with_tiny_shards(objects: &[Value]) -> Life {
    let mut life = Life::new();
    life.rig.settings.largest_shard = TINY;
    life.restart().await;
    for object in objects {
        life.put(object);
    }
    life.settle().await;
    life
}

/// The names of the shards, each with the clusters of its rows.
fn shards(life: &Life) -> Vec<(String, Vec<String>)> {
    let all = life.rig.hub.objects().into_values();
    let shards = all
        .filter(|of| of["kind"] == "SyncShard" && of["metadata"]["labels"]["emco.io/owner-name"] == "shop");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let clusters = |shard: &Value| {
        shard["spec"]["clusters"].as_array().into_iter().flatten().map(|row| text(&row["cluster"])).collect()
    };
    shards.map(|shard| (text(&shard["metadata"]["name"]), clusters(&shard))).collect()
}

/// The edge of a shard with one row.
fn edge((_, clusters): &(String, Vec<String>)) -> String {
    assert_eq!(clusters.len(), 1, "{clusters:?}");
    clusters[0].trim_start_matches("acme/").to_owned()
}

/// Nothing more comes of what was begun.
async fn only_planned(life: &mut Life) {
    for _ in 0..5 {
        life.rig.round().await;
    }
    life.put(&with("desiredState", &json!("Planned")));
    life.restart().await;
    life.settle().await;
    life.restart().await;
    life.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_was_begun_goes_no_further_once_only_planned() {
    let mut life = with_tiny_shards(&objects()).await;
    let before = shards(&life);
    let [first, last] = &before[..] else { panic!("{before:?}") };
    let (leaves, stays) = (edge(first), edge(last));
    let path = format!("/syncshards/{}", last.0);
    life.hub_faults(Arc::new(move |request, _| {
        let refused = request.method == Method::Put && request.path.as_str().ends_with(&path);
        refused.then(|| Fault::Refuse(lost()))
    }));
    let there = life.on(&stays);
    life.put(&with("desiredState", &json!("Terminated")));
    only_planned(&mut life).await;
    assert_eq!((life.names_on(&leaves), life.on(&stays)), (NOTHING.map(str::to_owned).to_vec(), there));
    assert_eq!(
        pending(&life)["apps"][0]["gained"],
        json!([format!("acme/{leaves}")]),
        "{:#}",
        pending(&life)
    );
    let rows: Vec<String> = shards(&life).into_iter().flat_map(|(_, clusters)| clusters).collect();
    assert_eq!(rows, [format!("acme/{stays}")], "what was removed has no row any more");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b"), is_clean(&life)), (json!("red"), json!("red"), true));
}

#[tokio::test(start_paused = true)]
async fn an_update_that_was_begun_goes_no_further_and_says_what_is_left() {
    let mut life = with_tiny_shards(&objects()).await;
    let before = shards(&life);
    let [first, last] = &before[..] else { panic!("{before:?}") };
    let (changes, stays) = (edge(first), edge(last));
    let path = format!("/syncshards/{}", last.0);
    life.hub_faults(Arc::new(move |request, _| {
        let refused = request.method == Method::Put && request.path.as_str().ends_with(&path);
        refused.then(|| Fault::Refuse(lost()))
    }));
    edit(&life);
    only_planned(&mut life).await;
    assert_eq!((page(&life, &changes), page(&life, &stays)), (json!("blue"), json!("red")));
    let waits = pending(&life);
    assert_eq!(waits["clusters"], json!({"added": 0, "changed": 1, "removed": 0}), "{waits:#}");
    assert_eq!(waits["resources"]["changed"], 1, "{waits:#}");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b"), is_clean(&life)), (json!("blue"), json!("blue"), true));
}

#[tokio::test(start_paused = true)]
async fn a_first_revision_that_was_begun_goes_no_further_once_only_planned() {
    let all = objects();
    let mut life = with_tiny_shards(&all[..all.len() - 1]).await;
    let made = AtomicU64::new(0);
    life.hub_faults(Arc::new(move |request, _| {
        let makes = request.method == Method::Post && request.path.as_str().ends_with("/syncshards");
        let refused = makes && made.fetch_add(1, Ordering::SeqCst) > 0;
        refused.then(|| Fault::Refuse(lost()))
    }));
    life.put(&deployment("edge"));
    only_planned(&mut life).await;
    let shards = shards(&life);
    let [first] = &shards[..] else { panic!("{shards:?}") };
    let has = edge(first);
    let gets = EDGES.into_iter().find(|edge| *edge != has).unwrap();
    assert_eq!((page(&life, &has), life.names_on(gets)), (json!("red"), NOTHING.map(str::to_owned).to_vec()));
    assert_eq!(pending(&life)["apps"][0]["gained"], json!([format!("acme/{gets}")]), "{:#}", pending(&life));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b"), is_clean(&life)), (json!("red"), json!("red"), true));
}
