//! Objects whose kind was unknown when they were planned: the namespace in their set is a guess until the cluster serves the kind.

use std::time::Duration;

use emco_engine::apis::ApiResource;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::Method;
use crate::memory::MemoryServer;

fn realms() -> ApiResource {
    ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Realm".to_owned(),
        plural: "realms".to_owned(),
        namespaced: false,
        listable: true,
        watchable: true,
    }
}

fn realm(namespace: Option<&str>, value: &str) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Realm", "metadata": {"name": "r"}, "spec": {"a": value}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn uid(edge: &MemoryServer) -> Option<Value> {
    edge.object("/apis/example.com/v1/realms/r").map(|object| object["metadata"]["uid"].clone())
}

/// A set that was planned before its kind was served, and is complete now.
async fn planned_before_its_kind(rig: &Rig) -> MemoryServer {
    let edge = rig.edge("a");
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), realm(Some("shop"), "1")])])).await;
    rig.until_reason("a", "KindMissing").await;
    edge.register(realms());
    rig.until_complete("a").await;
    assert!(uid(&edge).is_some());
    edge
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_kind_came_late_is_complete_and_survives_an_update() {
    let rig = Rig::new(&["a"]);
    let edge = planned_before_its_kind(&rig).await;
    let row = rig.row("a").unwrap();
    assert_eq!((row.ready, row.total, row.error), (2, 2, None));
    let before = uid(&edge);
    edge.take_seen();
    rig.target(&on("a", &[app("web", vec![config("c", "1"), realm(None, "2")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let writes: Vec<Method> =
        edge.writes().iter().filter(|w| w.path.contains("realms")).map(|w| w.method).collect();
    assert_eq!(writes, [Method::Patch]);
    assert_eq!(uid(&edge), before);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_kind_came_late_survives_every_restart() {
    let rig = Rig::new(&["a"]);
    let edge = planned_before_its_kind(&rig).await;
    let before = uid(&edge);
    for _ in 0..3 {
        edge.take_seen();
        rig.crash().await;
        rig.start().await;
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(edge.writes(), []);
    }
    assert_eq!(uid(&edge), before);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_kind_came_late_is_removed_with_its_owner() {
    let rig = Rig::new(&["a"]);
    let edge = planned_before_its_kind(&rig).await;
    rig.crash().await;
    rig.start().await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(uid(&edge), None);
}

#[tokio::test(start_paused = true)]
async fn a_confined_owner_makes_no_object_of_the_whole_cluster_by_a_late_kind() {
    let rig = Rig::new(&["a"]);
    rig.policy.confined.store(true, std::sync::atomic::Ordering::Relaxed);
    let edge = rig.edge("a");
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), realm(Some("shop"), "1")])])).await;
    rig.until_reason("a", "KindMissing").await;
    edge.register(realms());
    let message = rig.until_reason("a", "NotAllowedByLevel").await.error.unwrap().message;
    assert!(message.contains("Realm"), "{message}");
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!((uid(&edge), rig.complete("a")), (None, false));
}

#[tokio::test(start_paused = true)]
async fn two_objects_that_a_late_kind_makes_one_are_refused() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    rig.start().await;
    let apps = [app("one", vec![realm(Some("shop"), "1")]), app("two", vec![realm(Some("till"), "2")])];
    rig.target(&on("a", &apps)).await;
    rig.until_reason("a", "KindMissing").await;
    edge.register(realms());
    let message = rig.until_reason("a", "DuplicateResource").await.error.unwrap().message;
    assert!(message.contains("one") && message.contains("two") && message.contains("Realm/r"), "{message}");
    assert_eq!(uid(&edge), None);
}

/// An object that is served under two groups is one object.
#[tokio::test(start_paused = true)]
async fn an_object_that_moves_to_another_group_is_not_deleted() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    rig.start().await;
    let event = |api_version: &str| json!({"apiVersion": api_version, "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "note": api_version});
    rig.target(&on("a", &[app("web", vec![event("v1")])])).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[app("web", vec![event("events.k8s.io/v1")])])).await;
    edge.take_seen();
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(edge.writes().iter().all(|write| write.method != Method::Delete), "{:?}", edge.writes());
}
