//! Rows that end together are written together; nobody waits long for the others.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShard};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::rig::*;
use super::world::FixedClock;
use crate::api::ApiServerExt;
use crate::api::world::testing::Counter;
use crate::memory::MemoryServer;
use crate::sync::SyncMetrics;
use crate::sync::budget::Budget;
use crate::sync::report::{Reporter, Rows};

const SHARD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/syncshards/s";

/// A shard with two rows, and what writes its status.
async fn reporter() -> (MemoryServer, Arc<Reporter>) {
    let hub = MemoryServer::new();
    hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}));
    let row = |id: i64, name: &str| json!({"id": id, "cluster": format!("acme/{name}"), "target": "t1"});
    let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
        "metadata": {"name": "s", "namespace": "team-a"},
        "spec": {"format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": "shop", "uid": "u"}, "slot": 0,
            "bits": 0, "epoch": 1, "nextId": 3, "clusters": [row(1, "a"), row(2, "b")],
            "combinations": [{"name": "t1", "revision": 1, "apps": [{"app": "web", "set": "s"}]}]}});
    let shard: SyncShard = serde_json::from_value(hub.create(SHARDS, &object).await.unwrap()).unwrap();
    let (clock, random) = (Arc::new(FixedClock), Arc::new(Counter::default()));
    let (metrics, budget) = (Arc::new(SyncMetrics::default()), Budget::new());
    let reporter =
        Reporter::new(Arc::new(hub.clone()), clock, random, metrics, budget, Arc::default(), shard);
    tokio::spawn(reporter.clone().run(CancellationToken::new()));
    (hub, reporter)
}

fn row(id: i64, state: State) -> RowStatus {
    let cluster = format!("acme/{}", if id == 1 { "a" } else { "b" });
    RowStatus { id, cluster, state, connectivity: Connectivity::Reachable, ..RowStatus::default() }
}

/// How long it takes until the status is written.
async fn written(hub: &MemoryServer) -> Duration {
    let begun = Instant::now();
    while hub.writes().iter().all(|seen| !seen.path.ends_with("/status")) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    hub.take_seen();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn rows_that_end_together_are_written_once() {
    let (hub, reporter) = reporter().await;
    hub.take_seen();
    for id in [1, 2] {
        reporter.begun(id, row(id, State::Updating));
    }
    reporter.set(1, row(1, State::Updated));
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert!(hub.writes().is_empty(), "the other one is at work");
    reporter.set(2, row(2, State::Updated));
    assert!(written(&hub).await < Duration::from_millis(5));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(hub.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_takes_long_holds_up_the_others_for_a_moment_only() {
    let (hub, reporter) = reporter().await;
    hub.take_seen();
    reporter.begun(2, row(2, State::Updating));
    reporter.set(1, row(1, State::Updated));
    let took = written(&hub).await;
    assert!(took > Duration::from_millis(90) && took < Duration::from_millis(120), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_write_is_not_held_up() {
    let (hub, reporter) = reporter().await;
    hub.take_seen();
    reporter.begun(2, row(2, State::Updating));
    reporter.set(1, row(1, State::Updating));
    let begun = Instant::now();
    reporter.written(1).await;
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    assert!(hub.object(SHARD).unwrap()["status"].is_object());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_ends_the_pause_and_others_do_not() {
    let (hub, reporter) = reporter().await;
    hub.take_seen();
    reporter.set(1, row(1, State::Updating));
    reporter.set(2, row(2, State::Updated));
    written(&hub).await;
    let begun = Instant::now();
    reporter.set(1, row(1, State::Updated));
    reporter.written(1).await;
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    hub.take_seen();
    reporter.set(2, row(2, State::Terminated));
    let took = written(&hub).await;
    assert!(took > Duration::from_millis(450) && took < Duration::from_millis(520), "{took:?}");
}

/// With all of what it is to have, as far as that goes.
fn has(id: i64, ready: i64) -> RowStatus {
    let applied = Some(Applied { combination: Some("t1".to_owned()), ..Applied::default() });
    RowStatus { applied, total: 2, applied_count: 2, ready, ..row(id, State::Updated) }
}

#[tokio::test(start_paused = true)]
async fn readiness_that_comes_first_ends_the_pause_and_what_follows_does_not() {
    let (hub, reporter) = reporter().await;
    hub.take_seen();
    reporter.set(1, has(1, 0));
    reporter.set(2, has(2, 1));
    written(&hub).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    reporter.set(1, has(1, 2));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(hub.writes().is_empty(), "the other one is not ready");
    reporter.set(2, has(2, 2));
    assert!(written(&hub).await < Duration::from_millis(5));
    // Readiness that comes and goes is told in the usual pace.
    for ready in [1, 2] {
        reporter.set(2, has(2, ready));
        let took = written(&hub).await;
        assert!(took > Duration::from_millis(450) && took < Duration::from_millis(520), "{took:?}");
    }
}
