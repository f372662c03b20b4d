//! A suspended owner: nothing is written to its clusters, what is there is still watched, and resuming goes on where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::State;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::rig::*;
use crate::api::{ApiServerExt, Method};
use crate::memory::{Fault, Seen};

const CONFIG: &str = "/api/v1/namespaces/shop/configmaps/c";

fn configs(number: usize, value: &str) -> Vec<Value> {
    (0..number).map(|at| config(&format!("c{at:02}"), value)).collect()
}

/// One request at a time: what is under way at a moment is one.
async fn installed(manifests: Vec<Value>) -> Rig {
    let mut rig = Rig::new(&["a"]);
    rig.in_flight = 1;
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig.until_complete("a").await;
    // Its first look at what it applied is over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edge("a").take_seen();
    rig
}

/// The state of the row, without an error.
fn rests(rig: &Rig, state: State) -> bool {
    rig.row("a").is_some_and(|row| row.state == state && row.error.is_none())
}

/// The owner is suspended at the moment in which this write arrives at the edge.
fn suspend_at(rig: &Rig, write: u64) {
    let (policy, count) = (Arc::clone(&rig.policy), AtomicU64::new(0));
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        if request.method != Method::Get && count.fetch_add(1, Ordering::SeqCst) + 1 == write {
            policy.suspended.store(true, Ordering::SeqCst);
        }
        None
    })));
}

fn differing(rig: &Rig) -> (i64, i64) {
    rig.row("a").and_then(|row| row.drift).map_or((0, 0), |drift| (drift.corrected, drift.reported))
}

/// Writes to what charts made: the hub's mark on a cluster is no owner's.
fn writes(rig: &Rig) -> Vec<Seen> {
    let of_hub = |seen: &Seen| seen.path.contains("/namespaces/emco-system/");
    rig.edge("a").writes().into_iter().filter(|seen| !of_hub(seen)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_only_reported_while_the_owner_is_suspended() {
    let rig = installed(vec![config("c", "1"), config("other", "1")]).await;
    rig.suspend(true);
    rig.edge("a").put("kubectl-edit", &config("c", "theirs"));
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/other");
    rig.until("both are reported", |rig| differing(rig) == (0, 2)).await;
    tokio::time::sleep(Duration::from_mins(15)).await;
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert_eq!((differing(&rig), writes(&rig)), ((0, 2), vec![]), "also after a restart");
    rig.suspend(false);
    rig.until("both are put right", |rig| differing(rig) == (2, 0)).await;
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "1");
    assert_eq!(writes(&rig).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_suspended_halfway_stops_at_the_next_write() {
    for write in [1, 5, 9] {
        let rig = installed(configs(8, "1")).await;
        suspend_at(&rig, write);
        rig.target(&on("a", &[app("web", [configs(8, "2"), vec![config("last", "2")]].concat())])).await;
        rig.until("it stands still", |rig| rests(rig, State::InstantiateStopped)).await;
        // Longer than any deadline; and another process knows no more than the row says.
        tokio::time::sleep(Duration::from_mins(15)).await;
        rig.edge("a").faults(None);
        rig.crash().await;
        rig.start().await;
        tokio::time::sleep(Duration::from_mins(15)).await;
        assert!(rests(&rig, State::InstantiateStopped), "{:?}", rig.row("a"));
        assert_eq!(writes(&rig).len() as u64, write, "the one under way was the last");
        let metrics = rig.sync.lock().as_ref().unwrap().metrics();
        assert_eq!(metrics.rows.waiting().0, 0, "nobody waits for what is suspended");
        rig.suspend(false);
        rig.until_complete("a").await;
        assert_eq!(writes(&rig).len(), 9, "each object is written once");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_targeted_while_the_owner_is_suspended_waits() {
    let rig = installed(vec![config("c", "1")]).await;
    rig.suspend(true);
    rig.target(&on("a", &[app("web", vec![config("c", "2"), config("new", "2")])])).await;
    rig.until("it waits", |rig| rests(rig, State::InstantiateStopped)).await;
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(writes(&rig).is_empty());
    rig.suspend(false);
    rig.until_complete("a").await;
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_removal_waits_while_its_owner_is_suspended() {
    for write in [0, 1, 3] {
        let rig = installed(configs(4, "1")).await;
        if write == 0 {
            rig.suspend(true);
        } else {
            suspend_at(&rig, write);
        }
        rig.target(&nowhere()).await;
        rig.until("it stands still", |rig| rests(rig, State::TerminateStopped)).await;
        tokio::time::sleep(Duration::from_mins(15)).await;
        assert_eq!(writes(&rig).len() as u64, write);
        rig.edge("a").faults(None);
        rig.suspend(false);
        rig.until_complete("a").await;
        assert!(rig.ours("a").is_empty());
        assert_eq!(writes(&rig).len(), 4, "each object is deleted once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_goes_while_the_owner_is_suspended_is_seen() {
    let rig = installed(vec![config("c", "1")]).await;
    rig.edge("a").merge(CONFIG, &json!({"metadata": {"finalizers": ["example.com/held"]}})).await.unwrap();
    rig.target(&nowhere()).await;
    let going = |rig: &Rig| {
        rig.edge("a").object(CONFIG).is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string())
    };
    rig.until("it is asked to go", going).await;
    rig.suspend(true);
    rig.until("it stands still", |rig| rests(rig, State::TerminateStopped)).await;
    rig.edge("a").take_seen();
    rig.edge("a").merge(CONFIG, &json!({"metadata": {"finalizers": []}})).await.unwrap();
    rig.edge("a").take_seen();
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(rests(&rig, State::TerminateStopped), "{:?}", rig.row("a"));
    rig.suspend(false);
    rig.until_complete("a").await;
    assert_eq!(writes(&rig), vec![], "nothing was left to be asked");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_ends_while_the_owner_is_suspended_ran_once() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    let set =
        app_of("web", vec![hook(job("migrate"), &["pre-install"], 0, &[]), manifest(config("c", "1"), None)]);
    rig.target(&on("a", &[set])).await;
    let path = "/apis/batch/v1/namespaces/shop/jobs/migrate";
    rig.until("the hook runs", |rig| rig.edge("a").object(path).is_some()).await;
    rig.suspend(true);
    rig.until("it stands still", |rig| rests(rig, State::InstantiateStopped)).await;
    rig.edge("a").take_seen();
    let done = json!({"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1});
    rig.edge("a").set_status(path, &done).unwrap();
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(writes(&rig).is_empty(), "what comes after the hook waits: {:?}", writes(&rig));
    rig.suspend(false);
    rig.until_complete("a").await;
    let names: Vec<_> = writes(&rig).into_iter().map(|seen| seen.path).collect();
    assert_eq!(names, [CONFIG]);
}

#[tokio::test(start_paused = true)]
async fn the_way_to_a_pinned_revision_runs_the_hooks_of_a_rollback() {
    let set = |value: &str| {
        let hooks = ["install", "upgrade", "rollback"].map(|what| {
            hook(job(&format!("before-{what}")), &[&format!("pre-{what}")], 0, &["before-hook-creation"])
        });
        app_of("web", [hooks.to_vec(), vec![manifest(config("c", value), None)]].concat())
    };
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let ran = |rig: &Rig| -> Vec<String> {
        let jobs = |seen: &Seen| seen.method == Method::Patch && seen.path.contains("/jobs/");
        let last = |seen: Seen| seen.path.rsplit('/').next().unwrap().to_owned();
        rig.edge("a").take_seen().into_iter().filter(jobs).map(last).collect()
    };
    for (value, hooks) in [("1", "before-install"), ("2", "before-upgrade")] {
        rig.target(&on("a", &[set(value)])).await;
        rig.until_complete("a").await;
        assert_eq!(ran(&rig), [hooks]);
    }
    *rig.policy.pinned.lock() = Some(1);
    rig.target_again(1, &on("a", &[set("1")])).await;
    rig.until_complete("a").await;
    assert_eq!(ran(&rig), ["before-rollback"]);
    *rig.policy.pinned.lock() = None;
    rig.target_again(2, &on("a", &[set("2")])).await;
    rig.until_complete("a").await;
    assert_eq!(ran(&rig), ["before-upgrade"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_from_others_stays_ready_while_the_owner_is_suspended() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("somebody", &config("theirs", "0"));
    let mut taken = manifest(config("theirs", "1"), None);
    taken.take_existing = true;
    rig.start().await;
    rig.target(&on("a", &[app_of("web", vec![taken, manifest(config("c", "1"), None)])])).await;
    rig.until_complete("a").await;
    rig.suspend(true);
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_mins(15)).await;
        let row = rig.row("a").unwrap();
        assert_eq!((row.ready, row.total, row.error), (2, 2, None));
        rig.crash().await;
        rig.start().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspension_as_short_as_a_pass_is_no_failure() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", configs(8, "1"))])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    let (policy, answer, count) = (Arc::clone(&rig.policy), Arc::new(Semaphore::new(0)), AtomicU64::new(0));
    let held = Arc::clone(&answer);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        if request.method == Method::Get || count.fetch_add(1, Ordering::SeqCst) > 0 {
            return None;
        }
        policy.suspended.store(true, Ordering::SeqCst);
        Some(Fault::Hold(Arc::clone(&held)))
    })));
    rig.target(&on("a", &[app("web", configs(8, "2"))])).await;
    rig.until("it was suspended", |rig| rig.policy.suspended.load(Ordering::SeqCst)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(writes(&rig).len(), rig.in_flight, "what was not under way is not sent");
    rig.suspend(false);
    answer.add_permits(1);
    rig.until("it is complete, and nothing failed", |rig| {
        assert!(rig.row("a").is_none_or(|row| row.error.is_none()), "{:?}", rig.row("a"));
        rig.complete("a")
    })
    .await;
}
