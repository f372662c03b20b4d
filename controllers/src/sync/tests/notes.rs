//! What a row says besides how it is: changes by others, fields that the cluster does not know, and nothing before the first
//! contact.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::DriftPolicy;
use emco_crds::sync_shard::status::Connectivity;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiError, ApiServerExt, Method};
use crate::memory::Fault;
use crate::remote::State as Link;

const CONFIG: &str = "/api/v1/namespaces/shop/configmaps/c";

async fn installed(manifests: Vec<Value>) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig.until_complete("a").await;
    rig
}

#[tokio::test(start_paused = true)]
async fn a_field_that_others_change_is_reported_with_its_writer_until_it_is_ours_again() {
    let rig = installed(vec![config("c", "1"), config("other", "1")]).await;
    rig.drift(DriftPolicy::Report);
    rig.edge("a").put("kubectl-edit", &config("c", "theirs"));
    rig.until("the row says so", |rig| rig.row("a").is_some_and(|row| row.drift.is_some())).await;
    let row = rig.row("a").unwrap();
    let drift = row.drift.unwrap();
    assert_eq!((drift.reported, drift.corrected, drift.last.is_some()), (1, 0, true));
    assert_eq!(drift.objects[0].resource, "ConfigMap/shop/c");
    assert!(drift.objects[0].by.contains("kubectl-edit"), "{}", drift.objects[0].by);
    assert_eq!(row.error, None, "it is no failure");
    assert!(rig.complete("a"));
    // Reported, not undone; and a restart does not take it for how things should be.
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "theirs");
    assert_eq!(rig.row("a").unwrap().drift.unwrap().reported, 1);
    rig.target(&on("a", &[app("web", vec![config("c", "2"), config("other", "1")])])).await;
    rig.until("all is as applied", |rig| rig.complete("a") && rig.row("a").unwrap().drift.is_none()).await;
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "2");
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_and_strange_annotations_are_put_right_and_counted() {
    let rig = installed(vec![config("c", "1"), config("other", "1")]).await;
    rig.edge("a").remove(CONFIG);
    let corrected = |rig: &Rig, n| rig.row("a").and_then(|row| row.drift).is_some_and(|d| d.corrected == n);
    rig.until("the deletion is counted", |rig| corrected(rig, 1)).await;
    let patch = json!({"metadata": {"annotations": {"emco.io/manifest": "another"}}});
    rig.edge("a").merge("/api/v1/namespaces/shop/configmaps/other", &patch).await.unwrap();
    rig.until("the annotation is counted", |rig| corrected(rig, 2)).await;
    let live = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/other").unwrap();
    assert_ne!(live["metadata"]["annotations"]["emco.io/manifest"], "another");
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(corrected(&rig, 2), "a restart forgets nothing");
    assert_eq!(rig.row("a").unwrap().drift.unwrap().reported, 0);
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_cluster_does_not_know_are_named_and_stay_named_after_a_restart() {
    let rig = Rig::new(&["a", "b"]);
    for edge in ["a", "b"] {
        rig.edge(edge).faults(Some(Arc::new(|request, _| {
            let body = request.body.as_ref().map(|(_, body)| String::from_utf8_lossy(body).into_owned());
            body.filter(|body| request.method == Method::Patch && body.contains("odd")).map(|_| {
                Fault::Refuse(ApiError::Status {
                    code: 500,
                    reason: String::new(),
                    message: "failed to create typed patch object (shop/c; v1, Kind=ConfigMap): .odd: field not declared in schema"
                        .to_owned(),
                    retry_after: None,
                    causes: Vec::new(),
                })
            })
        })));
    }
    rig.start().await;
    let mut odd = config("c", "1");
    odd["odd"] = json!({"a": 1});
    let sets = [app("web", vec![odd, config("plain", "1")])];
    let mut wanted = on("a", &sets);
    wanted.extend(on("b", &sets));
    rig.target(&wanted).await;
    let named = |rig: &Rig, edge: &str| {
        rig.row(edge)
            .and_then(|row| row.left_out)
            .is_some_and(|left_out| left_out.fields == 1 && left_out.first == ["ConfigMap/shop/c .odd"])
    };
    for edge in ["a", "b"] {
        rig.until_complete(edge).await;
        rig.until("it is named", |rig| named(rig, edge)).await;
    }
    assert_eq!(rig.row("a").unwrap().error, None);
    rig.until("one range says it for both", |rig| rig.shard().status.unwrap().as_wanted.len() == 1).await;
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(named(&rig, "a"));
    rig.target(&on("a", &[app("web", vec![config("c", "1"), config("plain", "1")])])).await;
    rig.until("nothing is left out any more", |rig| {
        rig.complete("a") && rig.row("a").unwrap().left_out.is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn before_the_first_contact_a_row_says_nothing() {
    let rig = Rig::new(&["a"]);
    rig.edges.link(&cluster("a"), |link| link.state = Link::Connecting);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(rig.row("a"), None, "not reached yet is not unreachable");
    rig.edges.set_down(&cluster("a"), true);
    rig.until_reason("a", "Unreachable").await;
    rig.edges.set_down(&cluster("a"), false);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_leaves_rows_as_they_are_until_the_cluster_was_asked() {
    let rig = installed(vec![config("c", "1")]).await;
    rig.crash().await;
    rig.hub.take_seen();
    rig.edges.link(&cluster("a"), |link| link.state = Link::Connecting);
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(rig.hub.writes().is_empty());
    rig.edges.link(&cluster("a"), |link| link.state = Link::Connected);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(rig.hub.writes().is_empty(), "all is as it was");
    assert_eq!(rig.row("a").unwrap().connectivity, Connectivity::Reachable);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_nobody_connects_is_unreachable_after_a_while() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let mut wanted = on("a", &[app("web", vec![config("c", "1")])]);
    wanted.extend(on("ghost", &[app("web", vec![config("c", "1")])]));
    rig.target(&wanted).await;
    let message = rig.until_reason("ghost", "Unreachable").await.error.unwrap().message;
    assert!(message.contains("not registered"), "{message}");
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_gets_nowhere_names_the_object_that_it_waits_for() {
    let rig = installed(vec![deployment("web", "nginx:1"), config("old", "1")]).await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:2")])])).await;
    tokio::time::sleep(Duration::from_mins(15)).await;
    let error = rig.until_reason("a", "ProgressDeadlineExceeded").await.error.unwrap();
    assert_eq!(error.app.as_deref(), Some("web"));
    assert_eq!(error.resource.as_deref(), Some("apps/Deployment/shop/web"));
    assert!(error.message.starts_with("no progress for 600 seconds: "), "{error:?}");
    assert!(error.message.ends_with("; work goes on") && error.message.contains("generation 2"), "{error:?}");
    rig.edge("a").set_workloads_ready(true);
}
