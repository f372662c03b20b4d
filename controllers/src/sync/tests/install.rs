//! Installing, updating, pruning, removing.

use serde_json::json;

use super::rig::*;
use crate::api::{ApiServer, Method};
use crate::remote::{Claim, claim};

#[tokio::test(start_paused = true)]
async fn a_target_is_applied_with_our_marks_and_reported_once_it_is_there() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    let live = rig.edge("a").object("/apis/apps/v1/namespaces/shop/deployments/web").unwrap();
    assert_eq!(live["metadata"]["labels"]["emco.io/owner"], json!(rig.hash));
    assert_eq!(live["metadata"]["annotations"]["emco.io/placed-by"], "team-a/shop");
    assert!(live["spec"]["template"]["metadata"]["labels"].get("emco.io/owner").is_none());
    let manager = format!("emco-{}", rig.hash);
    assert!(
        live["metadata"]["managedFields"].as_array().unwrap().iter().any(|e| e["manager"] == json!(manager))
    );
    rig.until("the row is ready", |rig| rig.row("a").is_some_and(|row| (row.ready, row.total) == (2, 2)))
        .await;
    assert_eq!(rig.shard().status.unwrap().as_wanted.len(), 1, "a row as wanted costs a range");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let _ = (rig.edge("a").take_seen(), rig.hub.take_seen());
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert!(rig.edge("a").writes().is_empty() && rig.hub.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_done_at_once_is_reported_once_and_one_that_lasts_is_reported_as_begun() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    rig.hub.take_seen();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let statuses = rig.hub.writes().iter().filter(|seen| seen.path.ends_with("/status")).count();
    assert_eq!(statuses, 1, "its beginning is not worth a write");
    rig.edge("a").set_workloads_ready(false);
    // What is to go waits for what is to come.
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:1")])])).await;
    rig.until("it is under way", |rig| {
        rig.row("a").is_some_and(|row| row.state == emco_crds::State::Updating)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_update_prunes_what_is_no_longer_wanted_after_the_rest_is_ready() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("old", "1"), deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &[app("web", vec![config("new", "1"), deployment("web", "nginx:2")])])).await;
    rig.until("the new one is there", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/new").is_some()
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/old").is_some(),
        "not before it is ready"
    );
    assert!(!rig.complete("a"));
    rig.edge("a").set_workloads_ready(true);
    let live = rig.edge("a").object("/apis/apps/v1/namespaces/shop/deployments/web").unwrap();
    rig.edge("a").put(
        "kubelet",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"touched": "yes"}}}),
    );
    assert!(live["metadata"]["annotations"].get("touched").is_none());
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/new", "deployments.apps/shop/web"]);
}

/// A request that applies a ConfigMap of the shop.
fn apply(object: &serde_json::Value, manager: &str) -> crate::api::Request {
    let path = format!("/api/v1/namespaces/shop/configmaps/{}", object["metadata"]["name"].as_str().unwrap());
    crate::api::Request::new(Method::Patch, path)
        .query("fieldManager", manager)
        .query("force", "true")
        .body(crate::api::Content::Apply, object)
}

#[tokio::test(start_paused = true)]
async fn what_a_request_of_before_makes_late_is_removed_all_the_same() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), config("old", "1")])])).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    let edge = rig.edge("a");
    // As if an API server carried out what it was asked before, and its answer was lost.
    let late = emco_engine::marks::mark(config("old", "1"), &rig.hash, "digest", "team-a/shop");
    edge.send(apply(&late, &emco_engine::marks::field_manager(&rig.hash))).await.unwrap();
    rig.until("it is removed", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/old").is_none()
    })
    .await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
    assert!(rig.complete("a"));
}

#[tokio::test(start_paused = true)]
async fn what_carries_our_label_and_is_in_no_inventory_is_removed_and_copies_of_the_label_are_not() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    // A revision that a hub restored from a backup does not know; a copy of our label; an object of another owner.
    let edge = rig.edge("a");
    let mut lost = emco_engine::marks::mark(config("lost", "1"), &rig.hash, "digest", "team-a/shop");
    edge.send(apply(&lost, &emco_engine::marks::field_manager(&rig.hash))).await.unwrap();
    lost["metadata"]["name"] = json!("copy");
    edge.send(apply(&lost, "a-controller")).await.unwrap();
    let other = emco_engine::marks::mark(config("other", "1"), "another", "digest", "team-b/pos");
    edge.send(apply(&other, "emco-another")).await.unwrap();
    rig.start().await;
    rig.until("it is removed", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/lost").is_none()
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    for stays in ["c", "copy", "other"] {
        assert!(edge.object(&format!("/api/v1/namespaces/shop/configmaps/{stays}")).is_some(), "{stays}");
    }
    assert!(rig.complete("a"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_marked_with_how_far_the_hub_had_come_beside_work_and_never_at_rest() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    claim::take(&edge, &Claim::Absent, "inst", "now").await.unwrap();
    let held = claim::read(&edge).await.unwrap();
    rig.edges.link(&cluster("a"), |link| link.claim = held.clone());
    rig.start().await;
    let mark = |rig: &Rig| {
        let map = rig.edge("a").object("/api/v1/namespaces/emco-system/configmaps/hub").unwrap();
        map["data"]["seen"].as_str().unwrap_or("0").parse::<u64>().unwrap()
    };
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.until("it is marked", |rig| mark(rig) > 0).await;
    let first = mark(&rig);
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    rig.until("later work is marked, too", |rig| mark(rig) > first).await;
    rig.edge("a").take_seen();
    tokio::time::sleep(std::time::Duration::from_mins(60)).await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_unchanged_costs_no_request_in_an_update() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("same", "1"), config("other", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &[app("web", vec![config("same", "1"), config("other", "2")])])).await;
    rig.until_complete("a").await;
    let writes = rig.edge("a").writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(writes[0].path.ends_with("/other"));
}

#[tokio::test(start_paused = true)]
async fn removal_ends_with_a_clean_edge_and_leaves_what_others_made() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("someone", &config("theirs", "x"));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.ours("a").is_empty());
    assert!(rig.edge("a").object("/api/v1/namespaces/shop/configmaps/theirs").is_some());
    let deletes: Vec<String> =
        rig.edge("a").writes().into_iter().filter(|w| w.method == Method::Delete).map(|w| w.path).collect();
    assert!(
        deletes[0].contains("deployments") && deletes[1].contains("configmaps"),
        "reverse order: {deletes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_comes_back_by_itself() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
    rig.until("it is there again", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").is_some()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_to_stay_is_released_with_its_content_untouched() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let mut kept = manifest(config("kept", "precious"), None);
    kept.keep = true;
    rig.target(&on("a", &[app_of("web", vec![kept, manifest(config("c", "1"), None)])])).await;
    rig.until_complete("a").await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.ours("a").is_empty());
    let live = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/kept").unwrap();
    assert_eq!(live["data"]["value"], "precious");
    assert!(live["metadata"].get("annotations").is_none_or(|a| a.get("emco.io/manifest").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_last_and_only_when_nothing_of_others_is_in_it() {
    for others in [false, true] {
        let rig = Rig::new(&["a"]);
        rig.start().await;
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}});
        let mut inside = config("c", "1");
        inside["metadata"]["namespace"] = json!("mine");
        rig.target(&on("a", &[app("web", vec![space, inside])])).await;
        rig.until_complete("a").await;
        if others {
            let mut theirs = config("theirs", "1");
            theirs["metadata"]["namespace"] = json!("mine");
            rig.edge("a").put("someone", &theirs);
        }
        rig.target(&nowhere()).await;
        rig.until_complete("a").await;
        assert!(rig.ours("a").is_empty());
        assert_eq!(rig.edge("a").object("/api/v1/namespaces/mine").is_some(), others);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_wanted_objects_live_in_outlives_its_manifest() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}});
    let mut inside = config("c", "1");
    inside["metadata"]["namespace"] = json!("mine");
    rig.target(&on("a", &[app("web", vec![space, inside.clone()])])).await;
    rig.until_complete("a").await;
    let uid = |rig: &Rig| {
        rig.edge("a").object("/api/v1/namespaces/mine/configmaps/c").map(|o| o["metadata"]["uid"].clone())
    };
    let before = uid(&rig);
    rig.target(&on("a", &[app("web", vec![inside])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    assert!(before.is_some());
    assert_eq!(uid(&rig), before);
}

#[tokio::test(start_paused = true)]
async fn apps_on_one_cluster_and_clusters_do_not_fail_each_other() {
    let rig = Rig::new(&["a", "b", "c"]);
    rig.edges.set_down(&cluster("b"), true);
    rig.edge("c").put("someone", &config("c", "theirs"));
    rig.start().await;
    let sets = vec![app("web", vec![config("c", "1")]), app("db", vec![config("d", "1")])];
    let wanted = ["a", "b", "c"].iter().map(|name| (cluster(name), sets.clone())).collect();
    rig.target(&wanted).await;
    rig.until_complete("a").await;
    let row = rig.until_reason("c", "NotOurs").await;
    assert_eq!(row.error.unwrap().app.unwrap(), "web");
    rig.until("the other app is there", |rig| {
        rig.edge("c").object("/api/v1/namespaces/shop/configmaps/d").is_some()
    })
    .await;
    rig.until_reason("b", "Unreachable").await;
    rig.edges.set_down(&cluster("b"), false);
    rig.until_complete("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_another_owner_is_taken_as_it_is_and_stays() {
    let rig = Rig::new(&["a"]);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared", "labels": {"emco.io/owner": "other"}}});
    rig.edge("a").put("emco-other", &space);
    rig.start().await;
    let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}});
    let mut ours = manifest(plain, None);
    ours.take_existing = true;
    rig.target(&on("a", &[app_of("namespace", vec![ours])])).await;
    rig.until_complete("a").await;
    rig.until("it is ready", |rig| rig.row("a").is_some_and(|row| (row.ready, row.total) == (1, 1))).await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.edge("a").object("/api/v1/namespaces/shared").is_some());
    assert!(rig.edge("a").writes().is_empty());
}
