//! What is new after a restart, while the cluster's kinds are still being listed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;

use super::rig::*;
use crate::api::Method;
use crate::memory::Fault;

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn old() -> Vec<serde_json::Value> {
    vec![config("c", "1"), config("old", "1"), config("same", "1")]
}

/// A process that ended while everything was in order, and the gate that holds up the next one's lists.
async fn ended_after(manifests: Vec<serde_json::Value>) -> (Rig, Arc<Semaphore>) {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let lists = request.method == Method::Get && request.path == "/api/v1/configmaps";
        lists.then(|| Fault::Hold(Arc::clone(&held)))
    })));
    rig.edge("a").take_seen();
    (rig, gate)
}

fn says(rig: &Rig, name: &str) -> Option<String> {
    let object = rig.edge("a").object(&format!("{MAPS}/{name}"))?;
    object["data"].as_object()?.values().next()?.as_str().map(str::to_owned)
}

fn writes(rig: &Rig) -> Vec<String> {
    rig.edge("a").writes().into_iter().map(|seen| format!("{:?} {}", seen.method, seen.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_new_after_a_restart_is_applied_before_the_lists_and_pruning_waits_for_them() {
    let (rig, gate) = ended_after(old()).await;
    let fresh = vec![config("c", "2"), config("new", "1"), config("same", "1")];
    rig.target(&on("a", &[app("web", fresh)])).await;
    rig.start().await;
    rig.until("what is new is there", |rig| {
        says(rig, "c").as_deref() == Some("2") && says(rig, "new").is_some()
    })
    .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(says(&rig, "old").is_some(), "what is to go is removed when all is known");
    assert!(!rig.complete("a"));
    gate.add_permits(1);
    rig.until_complete("a").await;
    assert!(says(&rig, "old").is_none());
    assert_eq!(says(&rig, "c").as_deref(), Some("2"));
    let patch = |name: &str| format!("Patch {MAPS}/{name}");
    let mut writes = writes(&rig);
    writes.sort();
    assert_eq!(writes, [format!("Delete {MAPS}/old"), patch("c"), patch("new")], "each once");
}

#[tokio::test(start_paused = true)]
async fn what_others_made_under_a_new_name_is_not_touched_before_the_lists_either() {
    let (rig, gate) = ended_after(old()).await;
    rig.edge("a").put(
        "somebody",
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "new", "namespace": "shop"}, "data": {"of": "others"}}),
    );
    rig.edge("a").take_seen();
    rig.target(&on("a", &[app("web", [old(), vec![config("new", "1")]].concat())])).await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(writes(&rig), Vec::<String>::new());
    gate.add_permits(1);
    rig.until_reason("a", "NotOurs").await;
    assert_eq!(says(&rig, "new").as_deref(), Some("others"));
}

#[tokio::test(start_paused = true)]
async fn an_app_with_a_hook_before_its_upgrade_waits_for_the_lists() {
    let (rig, gate) = ended_after(old()).await;
    let mut manifests: Vec<_> =
        [config("c", "2"), config("same", "1")].into_iter().map(|json| manifest(json, None)).collect();
    manifests.push(hook(config("first", "1"), &["pre-upgrade"], 0, &[]));
    rig.target(&on("a", &[app_of("web", manifests)])).await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(writes(&rig), Vec::<String>::new());
    gate.add_permits(1);
    rig.until_complete("a").await;
    let first = writes(&rig).into_iter().next();
    assert_eq!(first, Some(format!("Patch {MAPS}/first")));
}

#[tokio::test(start_paused = true)]
async fn an_installation_that_a_death_interrupted_goes_on_before_the_lists() {
    let rig = Rig::new(&["a"]);
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let waits = request.method == Method::Get && request.path == "/api/v1/configmaps";
        waits.then(|| Fault::Hold(Arc::clone(&held)))
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", old())])).await;
    rig.until("all is there", |rig| ["c", "old", "same"].iter().all(|name| says(rig, name).is_some())).await;
    rig.crash().await;
    rig.edge("a").take_seen();
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(writes(&rig), Vec::<String>::new(), "what is there already is found by its name");
    gate.add_permits(1);
    rig.until_complete("a").await;
    assert_eq!(writes(&rig), Vec::<String>::new());
}

fn lists(rig: &Rig) -> bool {
    rig.edge("a").take_seen().iter().any(|seen| seen.path == "/api/v1/configmaps")
}

#[tokio::test(start_paused = true)]
async fn what_is_at_rest_is_looked_at_when_others_had_their_turn() {
    let (rig, gate) = ended_after(old()).await;
    gate.add_permits(1);
    rig.edge("a").remove(&format!("{MAPS}/old"));
    rig.start().await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(!lists(&rig));
    rig.until("what was removed meanwhile is back", |rig| says(rig, "old").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn what_changed_is_applied_at_once_and_lists_come_afterwards() {
    let (rig, gate) = ended_after(old()).await;
    gate.add_permits(1);
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    let begun = tokio::time::Instant::now();
    rig.start().await;
    rig.until("it is applied", |rig| says(rig, "c").as_deref() == Some("2")).await;
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    assert!(!lists(&rig));
    rig.until_complete("a").await;
    assert!(says(&rig, "old").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_comes_while_a_row_is_at_rest_ends_its_rest() {
    let (rig, gate) = ended_after(old()).await;
    gate.add_permits(1);
    rig.start().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = tokio::time::Instant::now();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until("it is applied", |rig| says(rig, "c").as_deref() == Some("2")).await;
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_removes_itself_waits_for_the_watch() {
    let (rig, gate) = ended_after(old()).await;
    let once = |image: &str| {
        serde_json::json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "seed", "namespace": "shop"},
            "spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    rig.target(&on("a", &[app("web", [old(), vec![once("seed:1")]].concat())])).await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(writes(&rig), Vec::<String>::new(), "its end would be seen by nobody");
    gate.add_permits(1);
    rig.until("it is made", |rig| !writes(rig).is_empty()).await;
}
