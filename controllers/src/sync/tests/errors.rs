//! What goes wrong is said, kept apart, and tried again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_crds::State;
use emco_crds::sync_shard::status::Connectivity;
use serde_json::json;

use super::rig::*;
use crate::api::{ApiError, Method};
use crate::memory::Fault;
use crate::remote::Admission;

fn refuse(code: u16, message: &'static str) -> Fault {
    let reason = String::new();
    Fault::Refuse(ApiError::Status {
        code,
        reason,
        message: message.to_owned(),
        retry_after: None,
        causes: Vec::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_refused_manifest_is_failed_with_the_servers_words_and_never_applied() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        if request.method == Method::Patch && request.path.ends_with("/bad") {
            return Some(refuse(422, "ConfigMap \"bad\" is invalid: data: Required value"));
        }
        None
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("bad", "1"), config("good", "1")])])).await;
    let row = rig.until_reason("a", "Invalid").await;
    let error = row.error.unwrap();
    assert!(
        error.message.ends_with("data: Required value") && !error.message.contains("is invalid"),
        "{}",
        error.message
    );
    assert_eq!(error.resource.unwrap(), "ConfigMap/shop/bad");
    rig.until("the others are applied", |rig| rig.ours("a") == ["configmaps./shop/good"]).await;
    assert!(!rig.complete("a"));
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_object_is_named_with_its_manager_and_not_changed() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("kubectl", &config("c", "theirs"));
    let before = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c");
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "ours")])])).await;
    let error = rig.until_reason("a", "NotOurs").await.error.unwrap();
    let message = error.message;
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/shop/c"));
    assert!(!message.contains("ConfigMap/shop/c") && message.contains("kubectl"), "named once: {message}");
    tokio::time::sleep(Duration::from_mins(20)).await;
    let tries = rig.edge("a").writes().len();
    assert!(tries <= 1, "after its first refusal it is looked at alone: {tries}");
    assert_eq!(rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c"), before);
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_to_look_now_tries_at_once_what_was_refused() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("kubectl", &config("c", "theirs"));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "ours")])])).await;
    rig.until_reason("a", "NotOurs").await;
    // By now the pauses are minutes.
    tokio::time::sleep(Duration::from_mins(30)).await;
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!rig.complete("a"), "it is not looked at again yet");
    let asked = tokio::time::Instant::now();
    rig.request("2026-11-24T12:00:00Z");
    rig.until_complete("a").await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_failing_webhook_is_an_error_of_the_server_with_its_words() {
    let rig = Rig::new(&["a"]);
    let words = "Internal error occurred: failed calling webhook \"deny.example.com\": connection refused";
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        (request.method == Method::Patch && request.path.ends_with("/c")).then(|| refuse(500, words))
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let row = rig.until_reason("a", "ServerError").await;
    assert_eq!((row.connectivity, row.state), (Connectivity::Reachable, State::Instantiating));
    assert_eq!(row.error.unwrap().message, words);
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn all_objects_of_others_are_named_with_who_has_them() {
    let rig = Rig::new(&["a"]);
    for name in ["c", "d", "e"] {
        let mut theirs = config(name, "theirs");
        theirs["metadata"]["annotations"] = json!({
            "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
        });
        rig.edge("a").put("helm", &theirs);
    }
    rig.edge("a").put("kubectl-create", &config("g", "theirs"));
    rig.start().await;
    rig.target(&on("a", &[app("web", ["c", "d", "e", "f", "g"].map(|name| config(name, "ours")).to_vec())]))
        .await;
    let error = rig.until_reason("a", "NotOurs").await.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/shop/c"));
    for part in [
        "Helm release shop/web: helm uninstall web -n shop",
        "; 2 more of Helm release shop/web: ConfigMap/shop/d, ConfigMap/shop/e; 1 of kubectl-create: ConfigMap/shop/g",
    ] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    rig.until("what nobody has is there", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/f").is_some()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_owner_is_a_conflict_that_names_who_placed_it() {
    let rig = Rig::new(&["a"]);
    let mut theirs = config("c", "theirs");
    theirs["metadata"]["labels"] = json!({"emco.io/owner": "other"});
    theirs["metadata"]["annotations"] = json!({"emco.io/placed-by": "team-b/pos"});
    rig.edge("a").put("emco-other", &theirs);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "ours")])])).await;
    let message = rig.until_reason("a", "Conflict").await.error.unwrap().message;
    assert!(message.contains("team-b/pos"), "{message}");
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_cluster_behind_the_same_name_gets_nothing_and_loses_nothing() {
    let rig = Rig::new(&["a"]);
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let mut live = serde_json::to_value(rig.shard()).unwrap();
    live["spec"]["clusters"][0]["uid"] = json!("another");
    crate::api::ApiServerExt::replace(&rig.hub, &format!("{SHARDS}/dig-shop-s00"), &live).await.unwrap();
    rig.start().await;
    rig.until_reason("a", "ClusterReplaced").await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_row_without_identity_gets_nothing_and_says_what_it_waits_for() {
    let rig = Rig::new(&["a"]);
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let path = format!("{SHARDS}/dig-shop-s00");
    let mut live = serde_json::to_value(rig.shard()).unwrap();
    let uid = live["spec"]["clusters"][0]["uid"].take();
    crate::api::ApiServerExt::replace(&rig.hub, &path, &live).await.unwrap();
    rig.start().await;
    let row = rig.until_reason("a", "Progressing").await;
    let message = row.error.unwrap().message;
    assert!(message.starts_with("nothing is sent before the row names this cluster"), "{message}");
    assert!(rig.edge("a").writes().is_empty());
    let mut live = serde_json::to_value(rig.shard()).unwrap();
    live["spec"]["clusters"][0]["uid"] = uid;
    crate::api::ApiServerExt::replace(&rig.hub, &path, &live).await.unwrap();
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_admitted_gets_nothing_and_says_why() {
    let rig = Rig::new(&["a"]);
    rig.edges.link(&cluster("a"), |link| link.admission = Admission::Awaited);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert_eq!(rig.row("a"), None, "nothing is told before it is judged");
    let message = "belongs to another EMCO hub".to_owned();
    rig.edges.link(&cluster("a"), |link| {
        link.admission = Admission::Refused { reason: "ClaimedByAnotherHub", message: message.clone() };
    });
    let row = rig.until_reason("a", "ClaimedByAnotherHub").await;
    assert!(row.error.unwrap().message.contains("another EMCO hub"));
    assert!(rig.edge("a").writes().is_empty());
    rig.edges.link(&cluster("a"), |link| link.admission = Admission::Admitted);
    rig.until_complete("a").await;
    // Refused again, what is there stays, also what is not wanted any more.
    rig.edges.link(&cluster("a"), |link| {
        link.admission = Admission::Refused { reason: "ClusterReplaced", message: message.clone() };
    });
    rig.edge("a").take_seen();
    rig.target(&nowhere()).await;
    rig.until_reason("a", "ClusterReplaced").await;
    assert!(rig.edge("a").writes().is_empty());
    assert_eq!(rig.ours("a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_cluster_is_asked_again_when_it_said_and_delays_no_other() {
    for code in [429, 503] {
        let rig = Rig::new(&["a", "b"]);
        let asked = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let times = asked.clone();
        rig.edge("a").faults(Some(Arc::new(move |request, _| {
            if request.method != Method::Patch || !request.path.contains("/configmaps/") {
                return None;
            }
            times.lock().push(tokio::time::Instant::now());
            let message = "the server is overloaded".to_owned();
            let (reason, causes) = (String::new(), Vec::new());
            (times.lock().len() == 1).then_some(Fault::Refuse(ApiError::Status {
                code,
                reason,
                message,
                retry_after: Some(40),
                causes,
            }))
        })));
        rig.start().await;
        let begun = tokio::time::Instant::now();
        let mut wanted = on("a", &[app("web", vec![config("c", "1")])]);
        wanted.extend(on("b", &[app("web", vec![config("c", "1")])]));
        rig.target(&wanted).await;
        rig.until_complete("b").await;
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
        rig.until_complete("a").await;
        let asked = asked.lock().clone();
        let pause = asked[1] - asked[0];
        assert_eq!(asked.len(), 2);
        assert!((40..=51).contains(&pause.as_secs()), "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_written_to_a_cluster() {
    let rig = Rig::new(&["a"]);
    rig.fence.0.store(false, Ordering::Relaxed);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert!(rig.edge("a").writes().is_empty());
    rig.fence.0.store(true, Ordering::Relaxed);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_of_a_later_epoch_is_left_alone() {
    let rig = Rig::new(&["a"]);
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let mut live = serde_json::to_value(rig.shard()).unwrap();
    live["spec"]["epoch"] = json!(2);
    crate::api::ApiServerExt::replace(&rig.hub, &format!("{SHARDS}/dig-shop-s00"), &live).await.unwrap();
    rig.start().await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_waits_for_its_kind_and_the_rest_does_not() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let custom =
        json!({"apiVersion": "acme.io/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "shop"}});
    rig.target(&on("a", &[app("web", vec![config("c", "1"), custom])])).await;
    let error = rig.until_reason("a", "KindMissing").await.error.unwrap();
    assert_eq!(error.message, "the cluster serves no kind Gadget of acme.io/v1");
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
    rig.edge("a").register(emco_engine::apis::ApiResource {
        group: "acme.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Gadget".to_owned(),
        plural: "gadgets".to_owned(),
        namespaced: true,
        listable: true,
        watchable: true,
    });
    rig.until_complete("a").await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.ours("a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_lost_its_label_is_still_ours_by_its_manager() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    let path = "/api/v1/namespaces/shop/configmaps/c";
    let without = json!({"metadata": {"labels": {"emco.io/owner": null}}});
    crate::api::ApiServerExt::merge(&rig.edge("a"), path, &without).await.unwrap();
    rig.until("it has its label again", |rig| rig.ours("a") == ["configmaps./shop/c"]).await;
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.edge("a").object(path).unwrap()["data"]["value"], "2");
}

#[tokio::test(start_paused = true)]
async fn who_keeps_deleting_our_object_meets_longer_and_longer_pauses() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    for _ in 0..600 {
        rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let writes = rig.edge("a").writes().len();
    assert!((5..=20).contains(&writes), "{writes} writes in ten minutes");
    rig.until("it is there in the end", |rig| rig.ours("a").len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_remade_by_others_between_look_and_delete_is_not_deleted() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    let edge = rig.edge("a");
    let inner = edge.clone();
    let done = std::sync::atomic::AtomicBool::new(false);
    // The first DELETE is held up; meanwhile another object takes the name.
    edge.faults(Some(Arc::new(move |request, _| {
        if request.method != Method::Delete || done.swap(true, Ordering::Relaxed) {
            return None;
        }
        inner.remove("/api/v1/namespaces/shop/configmaps/c");
        inner.put("someone", &config("c", "theirs"));
        Some(refuse(503, "busy"))
    })));
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(edge.object("/api/v1/namespaces/shop/configmaps/c").unwrap()["data"]["value"], "theirs");
}

#[tokio::test(start_paused = true)]
async fn manifests_of_kind_secret_come_from_secret_packs() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"k": "dg=="}});
    rig.target(&on("a", &[app("web", vec![config("c", "1"), secret])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c", "secrets./shop/s"]);
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_cluster_does_not_know_are_left_out_as_they_are_of_what_helm_installs() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        let body = request.body.as_ref().map(|(_, body)| String::from_utf8_lossy(body).into_owned());
        body.filter(|body| request.method == Method::Patch && body.contains("odd")).map(|_| {
            refuse(
                500,
                "failed to create typed patch object (shop/c; v1, Kind=ConfigMap): .odd: field not declared in schema",
            )
        })
    })));
    rig.start().await;
    let mut map = config("c", "1");
    map["odd"] = json!({"a": 1});
    rig.target(&on("a", &[app("web", vec![map])])).await;
    rig.until_complete("a").await;
    let live = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").unwrap();
    assert_eq!((live["data"]["value"].as_str(), live.get("odd")), (Some("1"), None));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_cluster_is_not_asked_for_the_other_thousand_objects_before_the_time_it_named() {
    let rig = Rig::new(&["a"]);
    let asked = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let times = asked.clone();
    let begun = tokio::time::Instant::now();
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        if request.method != Method::Patch || !request.path.contains("/configmaps/") {
            return None;
        }
        times.lock().push(begun.elapsed().as_secs());
        (begun.elapsed().as_secs() < 100).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 429,
                reason: String::new(),
                message: "too many requests".to_owned(),
                retry_after: Some(40),
                causes: Vec::new(),
            })
        })
    })));
    rig.start().await;
    let many = (0..1000).map(|n| config(&format!("c-{n}"), "1")).collect();
    rig.target(&on("a", &[app("web", many)])).await;
    rig.until_complete("a").await;
    let refused = asked.lock().iter().filter(|at| **at < 100).count();
    assert!(refused <= 3 * 8, "{refused} requests within three turns of 40 s");
    assert_eq!(asked.lock().len(), refused + 1000);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_refuses_some_objects_and_the_others_are_not_sent() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").remove("/api/v1/namespaces/shop");
    rig.start().await;
    let many: Vec<_> = (0..1000).map(|n| config(&format!("c-{n}"), "1")).collect();
    let mut elsewhere = config("c", "1");
    elsewhere["metadata"]["namespace"] = json!("default");
    let default = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    rig.edge("a").put("test", &default);
    rig.target(&on("a", &[app("web", [many, vec![elsewhere]].concat())])).await;
    rig.until("what is elsewhere is there", |rig| rig.ours("a") == ["configmaps./default/c"]).await;
    let writes = rig.edge("a").writes().len();
    assert!(writes <= 16, "{writes} requests for what cannot be");
    rig.edge("a")
        .put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_told_with_the_object_and_the_rest_is_applied() {
    let rig = Rig::new(&["a"]);
    let said = "roles.rbac.authorization.k8s.io \"secret-reader\" is forbidden: user \"emco\" cannot create";
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let kept = request.method == Method::Patch && request.path.ends_with("/kept-from-us");
        kept.then(|| refuse(403, said))
    })));
    rig.start().await;
    let both = vec![config("kept-from-us", "1"), config("allowed", "1")];
    rig.target(&on("a", &[app("web", both)])).await;
    let error = rig.until_reason("a", "Forbidden").await.error.unwrap();
    assert_eq!(
        (error.resource.as_deref(), error.message.as_str()),
        (Some("ConfigMap/shop/kept-from-us"), said)
    );
    rig.until("the rest is applied", |rig| rig.ours("a") == ["configmaps./shop/allowed"]).await;
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
}
