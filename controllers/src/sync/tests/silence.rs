//! Watches that say nothing, and stores that are not what they were.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::rig::*;
use crate::api::{ApiServer, ApiServerExt, Content, Method, Request};

async fn installed() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig
}

fn lists(rig: &Rig) -> u64 {
    rig.sync.lock().as_ref().map_or(0, |sync| sync.metrics().lists.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_listed_afresh_only_where_the_store_moved_on_without_it() {
    let rig = installed().await;
    let version =
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").unwrap()["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap();
    *rig.edges.revision.lock() = Some(version);
    let before = lists(&rig);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(lists(&rig), before, "nothing was written there: nothing is missed");
    *rig.edges.revision.lock() = Some(version + 1000);
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert!(lists(&rig) > before, "three probes saw what the watch did not tell");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_its_last_seconds_is_noticed_though_no_probe_can_see_it() {
    for probed in [true, false] {
        let rig = installed().await;
        let edge = rig.edge("a");
        let before = edge.revision();
        rig.target(&on("a", &[app("web", vec![config("c", "2"), config("d", "1")])])).await;
        rig.until_complete("a").await;
        // The watch was told of it, and goes on from there.
        tokio::time::sleep(Duration::from_secs(5)).await;
        if probed {
            // It ended in good order, so that nothing was asked when it began again.
            *rig.edges.revision.lock() = Some(before);
        }
        edge.set_down(true);
        edge.go_back(before);
        if !probed {
            // It was away long enough for the watch to fail.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        edge.set_down(false);
        rig.until("what was lost is there again", |rig| {
            let d = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/d");
            let c = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").unwrap();
            d.is_some() && c["data"]["value"] == "2"
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_and_came_as_far_again_is_known_by_what_it_lacks() {
    for last in [config("d", "1"), config("c", "2")] {
        let rig = installed().await;
        let edge = rig.edge("a");
        let before = edge.revision();
        let now: Vec<_> = match last["metadata"]["name"].as_str() {
            Some("c") => vec![last],
            _ => vec![config("c", "1"), last],
        };
        rig.target(&on("a", &[app("web", now)])).await;
        rig.until_complete("a").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let known = edge.revision();
        rig.edges.set_down(&cluster("a"), true);
        edge.go_back(before);
        tokio::time::sleep(Duration::from_secs(2)).await;
        // What happens on the cluster before this hub is back: its store is further then than it ever was.
        while edge.revision() <= known + 10 {
            edge.put("somebody", &config("busy", &edge.revision().to_string()));
        }
        rig.edges.set_down(&cluster("a"), false);
        let back = tokio::time::Instant::now();
        rig.until("what was undone is done again", |rig| {
            let value = |name: &str| {
                let path = format!("/api/v1/namespaces/shop/configmaps/{name}");
                rig.edge("a").object(&path).map(|object| object["data"]["value"].clone())
            };
            match value("d") {
                None => value("c") == Some(json!("2")),
                Some(_) => value("c") == Some(json!("1")),
            }
        })
        .await;
        assert!(back.elapsed() < Duration::from_mins(1), "found by the first request, not by a long silence");
        assert_eq!(rig.edges.alarms.load(Ordering::Relaxed), 1);
        rig.until_complete("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_went_by_itself_while_nobody_could_look_is_no_store_that_went_back() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let mut once = job("seed");
    once["spec"]["ttlSecondsAfterFinished"] = json!(60);
    rig.target(&on("a", &[app("web", vec![config("c", "1"), once])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edges.set_down(&cluster("a"), true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    rig.edge("a").remove("/apis/batch/v1/namespaces/shop/jobs/seed");
    rig.edges.set_down(&cluster("a"), false);
    let before = lists(&rig);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(rig.edges.alarms.load(Ordering::Relaxed), 0);
    assert_eq!(lists(&rig), before);
}

#[tokio::test(start_paused = true)]
async fn the_newest_object_may_have_a_name_that_reads_as_a_selector() {
    for name in ["a,b", "x,metadata.name!=x"] {
        let rig = Rig::new(&["a"]);
        rig.start().await;
        let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []});
        role["metadata"] = json!({"namespace": "shop", "name": name});
        rig.target(&on("a", &[app("web", vec![role])])).await;
        rig.until_complete("a").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.edges.set_down(&cluster("a"), true);
        tokio::time::sleep(Duration::from_secs(2)).await;
        rig.edges.set_down(&cluster("a"), false);
        let before = lists(&rig);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(rig.edges.alarms.load(Ordering::Relaxed), 0, "{name}");
        assert_eq!(lists(&rig), before, "{name}");
    }
}

/// Of a kind that nothing here has any more, as it was placed long ago.
async fn placed_long_ago(rig: &Rig) -> &'static str {
    let old = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "old", "namespace": "shop", "labels": {"emco.io/owner": rig.hash}}});
    let path = "/api/v1/namespaces/shop/secrets/old";
    let applied = Request::new(Method::Patch, path)
        .query("fieldManager", format!("emco-{}", rig.hash))
        .body(Content::Apply, &old);
    rig.edge("a").send(applied).await.unwrap();
    path
}

#[tokio::test(start_paused = true)]
async fn a_restored_store_is_searched_for_what_no_revision_of_today_knows() {
    let rig = installed().await;
    let path = placed_long_ago(&rig).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(rig.edge("a").object(path).is_some(), "nobody looks at rest");
    rig.edges.link(&cluster("a"), |link| link.epoch += 1);
    rig.until("it is removed", |rig| rig.edge("a").object(path).is_none()).await;
    assert!(rig.complete("a"));
    assert!(rig.edge("a").get_opt("/api/v1/namespaces/shop/configmaps/c").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_restored_while_an_update_waits_is_searched_all_the_same() {
    let rig = installed().await;
    let path = placed_long_ago(&rig).await;
    rig.edges.set_down(&cluster("a"), true);
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.edges.link(&cluster("a"), |link| link.epoch += 1);
    rig.edges.set_down(&cluster("a"), false);
    rig.until_complete("a").await;
    assert!(rig.edge("a").object(path).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_this_hubs_before_is_searched_once_when_it_is_registered_again() {
    for returned in [true, false] {
        let rig = Rig::new(&["a"]);
        rig.edges.link(&cluster("a"), |link| link.returned = returned);
        let path = placed_long_ago(&rig).await;
        rig.start().await;
        rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
        rig.until_complete("a").await;
        assert_eq!(rig.edge("a").object(path).is_none(), returned);
        if returned {
            // Once: what comes there later under our label is nothing that an inventory lost.
            placed_long_ago(&rig).await;
            rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
            rig.until_complete("a").await;
            assert!(rig.edge("a").object(path).is_some());
        }
    }
}
