//! A hub restored by a tool that copies objects: each of them is created anew, with another uid and generation 1.

use serde_json::{Value, json};

use super::life::*;
use super::shop::{TENANT, composite_app, deployment, objects, values};
use crate::api::ApiServerExt;

fn of_shop(life: &Life, kind: &str) -> Vec<Value> {
    let of = |o: &Value| o["kind"] == kind && o["spec"]["owner"]["name"] == "shop";
    life.rig.hub.objects().into_values().filter(of).collect()
}

/// Another hub with the same objects, clusters as they are, and a process on it.
pub(super) async fn copied(before: &Life, with_status: bool, counted: bool) -> Life {
    let edges = before.edges.iter().map(|(name, edge)| (*name, edge.copied()));
    let life = Life::joined(edges.collect());
    let (spaces, others): (Vec<_>, Vec<_>) =
        before.rig.hub.objects().into_iter().partition(|(_, object)| object["kind"] == "Namespace");
    for (key, mut object) in spaces.into_iter().chain(others) {
        if object["kind"] == "Event" || object["kind"] == "Lease" {
            continue;
        }
        let status = object.as_object_mut().and_then(|map| map.remove("status"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let kept = ["name", "namespace", "labels", "annotations", "finalizers"];
            metadata.retain(|key, _| kept.contains(&key.as_str()));
        }
        if let (false, Some(spec)) = (counted, object["spec"].as_object_mut()) {
            spec.remove("writes");
        }
        let mut made = life.rig.hub.put("restore", &object);
        let parts: Vec<&str> = key.splitn(3, '/').collect();
        let [kind, namespace, name] = parts[..] else { panic!("{key}") };
        if let (true, Some(status), Some((plural, "emco.io"))) = (with_status, status, kind.split_once('.')) {
            let space = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
            made["status"] = status;
            let path = format!("/apis/emco.io/v1alpha1/{space}{plural}/{name}/status");
            life.rig.hub.replace(&path, &made).await.unwrap();
        }
    }
    for shard in of_shop(&life, "SyncShard") {
        assert_eq!(
            (&shard["metadata"]["generation"], shard["status"] != Value::Null),
            (&json!(1), with_status)
        );
    }
    life
}

/// Installed and updated once; then its process ended.
async fn lost_with_its_hub() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True");
    life.end().await;
    life
}

/// The same on another hub.
async fn restored(lost: &Life, with_status: bool, counted: bool) -> Life {
    let before: Vec<_> = EDGES.iter().map(|edge| versions(&lost.edges[edge])).collect();
    let mut life = copied(lost, with_status, counted).await;
    life.settle().await;
    let after: Vec<_> = EDGES.iter().map(|edge| versions(&life.edges[edge])).collect();
    assert_eq!(before, after, "nothing is written to edges: status {with_status}, counted {counted}");
    for condition in ["Deployed", "Ready"] {
        assert_eq!(life.says(condition).0, "True", "{:?}", life.says(condition));
    }
    life
}

const ALL: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

#[tokio::test(start_paused = true)]
async fn every_edit_after_a_restore_of_copies_reaches_the_clusters() {
    let lost = lost_with_its_hub().await;
    for (with_status, counted) in ALL {
        let mut life = restored(&lost, with_status, counted).await;
        for page in ["green", "yellow", "white"] {
            life.put(&values(page));
            life.settle().await;
            let found = life.edges["a"].object("/api/v1/namespaces/team-a/configmaps/page").unwrap();
            assert_eq!(found["data"]["text"], page, "with status {with_status}, counted {counted}");
            assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_after_a_restore_of_copies_removes_what_it_has_no_more() {
    let lost = lost_with_its_hub().await;
    for (with_status, counted) in ALL {
        let mut life = restored(&lost, with_status, counted).await;
        life.put(&composite_app("1.1.0"));
        life.settle().await;
        let old = life.edges["a"].object("/api/v1/namespaces/team-a/configmaps/old");
        assert_eq!(old, None, "with status {with_status}, counted {counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_deleted_after_a_restore_of_copies_leaves_nothing() {
    let lost = lost_with_its_hub().await;
    for (with_status, counted) in ALL {
        let mut life = restored(&lost, with_status, counted).await;
        life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
        life.settle().await;
        assert_eq!(life.dig(), Value::Null);
        for edge in EDGES {
            let left = life.names_on(edge).into_iter().filter(|name| !name.starts_with("namespaces."));
            assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_an_owner_that_was_made_again_follow_its_uid() {
    let life = restored(&lost_with_its_hub().await, true, true).await;
    let known = |life: &Life| -> Vec<Value> {
        of_shop(life, "SyncShard").iter().map(|shard| shard["spec"]["owner"]["uid"].clone()).collect()
    };
    assert_eq!(known(&life), [life.dig()["metadata"]["uid"].clone()]);
    // The same where the deployment alone was lost and applied again.
    let mut life = life;
    let dig = format!("{TENANT}/deploymentintentgroups/shop");
    life.rig.hub.merge(&dig, &json!({"metadata": {"finalizers": []}})).await.unwrap();
    life.delete(&dig).await;
    life.settle().await;
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(known(&life), [life.dig()["metadata"]["uid"].clone()]);
}
