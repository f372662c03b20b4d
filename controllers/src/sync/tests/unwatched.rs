//! Edges whose watches are refused, silent, buffered or ended at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::rig::*;
use crate::api::{ApiServer, Content, Method, Request};
use crate::memory::{MemoryServer, Watching};

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

async fn installed() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let objects = vec![config("c", "1"), config("d", "1"), deployment("web", "x")];
    rig.target(&on("a", &[app("web", objects)])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig
}

/// Lets time pass on an edge that others write to, too, and that is probed every minute.
async fn minutes(rig: &Rig, minutes: u64) {
    let edge = rig.edge("a");
    for _ in 0..minutes {
        edge.put("somebody", &config("busy", &edge.revision().to_string()));
        *rig.edges.revision.lock() = Some(edge.revision());
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
}

fn version(edge: &MemoryServer, path: &str) -> u64 {
    let object = edge.object(path).unwrap();
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn lists(rig: &Rig) -> u64 {
    rig.sync.lock().as_ref().map_or(0, |sync| sync.metrics().lists.load(Ordering::Relaxed))
}

/// The ConfigMap that a look at the newest object of its kind does not miss.
fn older(edge: &MemoryServer) -> String {
    let [c, d] = ["c", "d"].map(|name| format!("{MAPS}/{name}"));
    if version(edge, &c) < version(edge, &d) { c } else { d }
}

async fn fail_workload(edge: &MemoryServer) {
    edge.set_workloads_ready(false);
    let status = json!({"status": {"readyReplicas": 0, "availableReplicas": 0}});
    let request = Request::new(Method::Patch, format!("{WEB}/status"));
    edge.send(request.body(Content::Merge, &status)).await.unwrap();
    assert_eq!(edge.object(WEB).unwrap()["status"]["readyReplicas"], 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_where_no_watch_works_is_made_again() {
    for watching in [Watching::Refused, Watching::Silent, Watching::Buffered, Watching::Empty] {
        let rig = installed().await;
        let edge = rig.edge("a");
        edge.set_watching(watching);
        minutes(&rig, 1).await;
        for _ in 0..3 {
            let gone = older(&edge);
            edge.remove(&gone);
            minutes(&rig, 11).await;
            assert!(edge.object(&gone).is_some(), "{watching:?}: {gone} is not made again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_fails_where_no_watch_works_is_not_ready() {
    for watching in [Watching::Refused, Watching::Silent, Watching::Buffered] {
        let rig = installed().await;
        let edge = rig.edge("a");
        edge.set_watching(watching);
        minutes(&rig, 1).await;
        fail_workload(&edge).await;
        minutes(&rig, 11).await;
        let row = rig.row("a").unwrap();
        assert!(row.ready < row.total, "{watching:?}: {row:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_says_which_kind_may_not_be_watched_until_it_may() {
    let rig = installed().await;
    let edge = rig.edge("a");
    assert!(rig.row("a").unwrap().error.is_none());
    edge.set_watching(Watching::Refused);
    minutes(&rig, 10).await;
    let row = rig.row("a").unwrap();
    let error = row.error.clone().unwrap();
    assert_eq!(error.reason, "Forbidden", "{row:?}");
    assert!(error.message.contains("watch"), "{error:?}");
    assert!(rig.complete("a"), "what is listed is worked with: {row:?}");
    let written = rig.hub.revision();
    minutes(&rig, 30).await;
    assert_eq!(rig.hub.revision(), written, "what is said already is not written again");
    edge.set_watching(Watching::Works);
    minutes(&rig, 11).await;
    assert!(rig.row("a").unwrap().error.is_none(), "{:?}", rig.row("a"));
    let before = (lists(&rig), edge.watches_asked());
    *rig.edges.revision.lock() = None;
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!((lists(&rig), edge.watches_asked()), before, "no list where a watch works");
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_asked_for_with_growing_pauses() {
    let all = [Watching::Empty, Watching::OneEvent, Watching::Gone, Watching::GoneLater, Watching::Refused];
    for watching in all {
        let rig = installed().await;
        let edge = rig.edge("a");
        edge.set_watching(watching);
        let before = (lists(&rig), edge.watches_asked());
        minutes(&rig, 60).await;
        let (lists, asked) = (lists(&rig) - before.0, edge.watches_asked() - before.1);
        // Two kinds: a few tries while the pause grows, then one each five minutes.
        assert!(asked <= 2 * 30, "{watching:?}: {asked} watches within an hour");
        assert!(lists <= 2 * 30, "{watching:?}: {lists} lists within an hour");
        assert!(asked > 0, "{watching:?}");
    }
}
