//! What is not ready is named, with the cause, after some seconds; and fails when it stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use emco_crds::sync_shard::status::RowUnready;
use emco_crds::{RowStatus, State};
use emco_engine::apis::ApiResource;
use emco_engine::identity::split_api_version;
use serde_json::{Value, json};

use super::rig::*;
use super::world::PausedClock;
use crate::api::{ApiError, Method};
use crate::memory::{Fault, MemoryServer};
use crate::remote::Connections;

async fn unready(manifests: Vec<Value>) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig
}

async fn named(rig: &Rig) -> Vec<RowUnready> {
    rig.until("something is named", |rig| rig.row("a").is_some_and(|row| !row.unready.is_empty())).await;
    rig.row("a").unwrap().unready
}

fn pod(name: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}}})
}

/// Requests for Pods since the last look.
fn looks(rig: &Rig) -> usize {
    rig.edge("a").take_seen().iter().filter(|seen| seen.path.ends_with("/pods")).count()
}

#[tokio::test(start_paused = true)]
async fn an_unready_workload_is_named_with_the_cause_of_its_pod() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.edge("a")
        .put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    rig.edge("a").put("kubelet", &pod("web-1", "web"));
    rig.edge("a").put("kubelet", &pod("other-1", "other"));
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    let named = named(&rig).await;
    assert_eq!(named.len(), 1);
    assert_eq!((named[0].app.as_str(), named[0].resource.as_str()), ("web", "apps/Deployment/shop/web"));
    let message = &named[0].message;
    assert!(message.ends_with("; Pod web-1: it did not start yet"), "{message}");
    rig.edge("a").set_workloads_ready(true);
    rig.edge("a").put(
        "test",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"touched": "yes"}}}),
    );
    rig.until("nothing is named", |rig| rig.row("a").is_some_and(|row| row.unready.is_empty())).await;
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_unready_objects_are_named_by_three_and_looked_at_seldom() {
    let rig = unready((0..100).map(|n| deployment(&format!("web-{n:03}"), "nginx:1")).collect()).await;
    let first = named(&rig).await;
    assert_eq!(first.len(), 3);
    tokio::time::sleep(Duration::from_mins(1)).await;
    looks(&rig);
    let writes = rig.shard().metadata.resource_version;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let looks = looks(&rig);
    assert!((1..=4).contains(&looks), "{looks} looks in five minutes");
    assert_eq!(rig.shard().metadata.resource_version, writes, "nothing changed, nothing is written");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_forbids_pods_is_said_to_and_asked_seldom() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let pods = request.method == Method::Get && request.path.to_string().ends_with("/pods");
        pods.then(|| {
            counted.fetch_add(1, Ordering::Relaxed);
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "pods is forbidden".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:1")])])).await;
    let message = named(&rig).await[0].message.clone();
    assert!(message.ends_with("; its Pods may not be listed with the Cluster's credentials"), "{message}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    asked.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(5)).await;
    let asked = asked.load(Ordering::Relaxed);
    assert!((1..=4).contains(&asked), "asked {asked} times in five minutes");
}

#[tokio::test(start_paused = true)]
async fn rows_of_one_cluster_share_looks_at_pods_and_all_have_their_turn() {
    const ROWS: usize = 60;
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    edge.set_workloads_ready(false);
    rig.start().await;
    let names: Vec<String> = (0..ROWS).map(|n| format!("web-{n:02}")).collect();
    for name in &names {
        edge.put("kubelet", &pod(&format!("{name}-1"), name));
        rig.target_of(name, &on("a", &[app("web", vec![deployment(name, "nginx:1")])])).await;
    }
    looks(&rig);
    // Half a second is between two looks, however many rows wait for one.
    let mut seen = 0;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let looks = looks(&rig);
        assert!(looks <= 21, "{looks} looks in ten seconds");
        seen += looks;
    }
    assert!(seen >= ROWS, "{seen} looks");
    for name in &names {
        let named = rig.row_of(name, "a").unwrap().unready;
        assert!(named[0].message.contains(&format!("; Pod {name}-1: ")), "{named:?}");
    }
}

/// A set of one object that its cluster leaves unready, what its controller says of it, and what the row says.
fn left_unready() -> Vec<(Value, Value, &'static str, &'static str)> {
    let of = |api: &str, kind: &str, spec: Value| {
        let metadata = json!({"name": "x", "namespace": "shop"});
        json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let of_cluster = |api: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        let condition = json!({"type": type_, "status": status, "reason": reason, "message": message});
        json!({"observedGeneration": 1, "conditions": [condition]})
    };
    let pods = json!({"selector": {"matchLabels": {"app": "x"}}, "replicas": 2});
    vec![
        (
            of("apps/v1", "StatefulSet", pods.clone()),
            json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 1}),
            "apps/StatefulSet/shop/x",
            "1 of 2 replicas are ready",
        ),
        (
            of("apps/v1", "DaemonSet", json!({"selector": {"matchLabels": {"app": "x"}}})),
            json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "updatedNumberScheduled": 3, "numberAvailable": 2, "numberReady": 2}),
            "apps/DaemonSet/shop/x",
            "2 of 3 replicas are available",
        ),
        (
            of("apps/v1", "Deployment", pods),
            condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out progressing"),
            "apps/Deployment/shop/x",
            "ProgressDeadlineExceeded: timed out progressing",
        ),
        (
            of("batch/v1", "Job", json!({"template": {}})),
            condition(
                "Failed",
                "True",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ),
            "batch/Job/shop/x",
            "the job failed: BackoffLimitExceeded: Job has reached the specified backoff limit",
        ),
        (
            of("v1", "PersistentVolumeClaim", json!({})),
            json!({"phase": "Pending"}),
            "PersistentVolumeClaim/shop/x",
            "its phase is Pending",
        ),
        (
            of("v1", "Service", json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"})),
            json!({}),
            "Service/shop/x",
            "its load balancer has no address yet",
        ),
        (
            of_cluster(
                "apiregistration.k8s.io/v1",
                "APIService",
                "v1.acme.io",
                json!({"group": "acme.io", "version": "v1"}),
            ),
            condition(
                "Available",
                "False",
                "MissingEndpoints",
                "endpoints for service/x in \"shop\" have no addresses",
            ),
            "apiregistration.k8s.io/APIService/v1.acme.io",
            "Available is not True: MissingEndpoints: endpoints for service/x in \"shop\" have no addresses",
        ),
        (
            of_cluster(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "gadgets.acme.io",
                json!({"group": "acme.io", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
                    "versions": [{"name": "v1"}]}),
            ),
            condition("NamesAccepted", "False", "ListKindConflict", "\"GadgetList\" is already in use"),
            "apiextensions.k8s.io/CustomResourceDefinition/gadgets.acme.io",
            "its names are not accepted: ListKindConflict: \"GadgetList\" is already in use",
        ),
        (
            of("example.com/v1", "Certificate", json!({})),
            condition("Ready", "False", "Pending", "the issuer does not answer"),
            "example.com/Certificate/shop/x",
            "Ready is not True: Pending: the issuer does not answer",
        ),
    ]
}

fn path_of(edge: &MemoryServer, manifest: &Value) -> String {
    let (group, version) = split_api_version(manifest["apiVersion"].as_str().unwrap());
    let (apis, kind) = (edge.apis(), manifest["kind"].as_str().unwrap());
    let metadata = &manifest["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    apis.find(group, version, kind).unwrap().path(namespace, metadata["name"].as_str()).to_string()
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_unready_object_is_named_with_its_own_reason() {
    for (manifest, status, resource, message) in left_unready() {
        let rig = Rig::new(&["a"]);
        let edge = rig.edge("a");
        edge.register(ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Certificate".to_owned(),
            plural: "certificates".to_owned(),
            namespaced: true,
            listable: true,
            watchable: true,
        });
        edge.set_workloads_ready(false);
        rig.edges.refresh_apis(&cluster("a"));
        rig.start().await;
        rig.target(&on("a", &[app("web", vec![manifest.clone()])])).await;
        rig.until(&format!("{resource} is there"), |rig| !rig.ours("a").is_empty()).await;
        edge.set_status(&path_of(&edge, &manifest), &status).unwrap();
        let has = |rig: &Rig| {
            let named = rig.row("a").map(|row| row.unready).unwrap_or_default();
            named.first().is_some_and(|one| one.resource == resource && one.message == message)
        };
        rig.until(&format!("{resource} is named: {message}"), has).await;
        rig.crash().await;
    }
}

fn failing_webhook() -> ApiError {
    ApiError::Status {
        code: 500,
        reason: "InternalError".to_owned(),
        message: "failed calling webhook".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_cluster_is_unreachable_since_it_was_lost() {
    let mut rig = Rig::new(&["a"]);
    let begun = tokio::time::Instant::now();
    rig.clock = Arc::new(PausedClock(begun));
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        (request.method == Method::Patch && request.path.ends_with("/c"))
            .then(|| Fault::Refuse(failing_webhook()))
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_reason("a", "ServerError").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let lost = rig.clock.now_ms() / 1000;
    rig.edges.set_down(&cluster("a"), true);
    let row = rig.until_reason("a", "Unreachable").await;
    let since = |row: &RowStatus| row.since.as_ref().map(|time| time.0.as_second());
    assert!(since(&row).is_some_and(|since| since >= lost), "{row:?}");
    // Meanwhile it counts as failed for want of progress: that is no other time of the loss.
    tokio::time::sleep(Duration::from_mins(20)).await;
    let later = rig.row("a").unwrap();
    assert_eq!((later.state, since(&later)), (State::InstantiateFailed, since(&row)));
}

#[tokio::test(start_paused = true)]
async fn what_stays_unready_fails_after_its_deadline_and_recovers() {
    let mut rig = Rig::new(&["a"]);
    rig.clock = Arc::new(PausedClock(tokio::time::Instant::now()));
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    named(&rig).await;
    assert_eq!(rig.row("a").unwrap().state, State::Instantiated, "all is applied");
    tokio::time::sleep(Duration::from_mins(9)).await;
    assert_eq!(rig.row("a").unwrap().state, State::Instantiated);
    // Another process counts from the same time.
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let row = rig.until_reason("a", "ProgressDeadlineExceeded").await;
    assert_eq!(row.state, State::InstantiateFailed);
    let error = row.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("apps/Deployment/shop/web"));
    assert!(error.message.starts_with("no progress for 600 seconds: "), "{error:?}");
    rig.edge("a").set_workloads_ready(true);
    rig.edge("a").put(
        "test",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"touched": "yes"}}}),
    );
    rig.until("it recovers", |rig| {
        rig.row("a").is_some_and(|row| row.state == State::Instantiated && row.error.is_none())
    })
    .await;
    assert_eq!(rig.row("a").unwrap().unready_since, None);
}

#[tokio::test(start_paused = true)]
async fn a_new_revision_begins_the_deadline_anew() {
    let mut rig = Rig::new(&["a"]);
    rig.clock = Arc::new(PausedClock(tokio::time::Instant::now()));
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    named(&rig).await;
    tokio::time::sleep(Duration::from_mins(9)).await;
    let first = rig.row("a").unwrap().unready_since.unwrap();
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:2")])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_mins(9)).await;
    let row = rig.row("a").unwrap();
    assert_ne!(row.state, State::UpdateFailed, "{row:?}");
    assert!(row.unready_since.unwrap().0 > first.0);
    rig.until_reason("a", "ProgressDeadlineExceeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_workload_whose_pods_never_come_is_named_with_its_newest_warning() {
    let rig = unready(vec![deployment("web", "nginx:1")]).await;
    // Nothing says why yet.
    let first = named(&rig).await[0].message.clone();
    assert!(!first.contains("; "), "{first}");
    let uid =
        rig.edge("a").object("/apis/apps/v1/namespaces/shop/deployments/web").unwrap()["metadata"]["uid"]
            .clone();
    rig.edge("a").put(
        "kube-controller-manager",
        &json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": "web.1", "namespace": "shop"},
            "involvedObject": {"uid": uid}, "type": "Warning", "reason": "FailedCreate",
            "message": "exceeded quota: small", "lastTimestamp": "2026-01-01T00:00:00Z"}),
    );
    rig.until("the warning is told", |rig| {
        rig.row("a").is_some_and(|row| row.unready[0].message.contains("exceeded quota: small"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_workload_behind_pending_claims_is_named_with_its_cause() {
    let claim = |n: usize| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("data-{n}"), "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    };
    let manifests = (0..4).map(claim).chain([deployment("web", "nginx:1")]).collect();
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.edge("a")
        .put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    rig.edge("a").put("kubelet", &pod("web-1", "web"));
    rig.target(&on("a", &[app("web", manifests)])).await;
    let named = named(&rig).await;
    let resources: Vec<&str> = named.iter().map(|one| one.resource.as_str()).collect();
    assert_eq!(
        resources,
        [
            "PersistentVolumeClaim/shop/data-0",
            "PersistentVolumeClaim/shop/data-1",
            "apps/Deployment/shop/web"
        ]
    );
    assert!(named[2].message.ends_with("; Pod web-1: it did not start yet"), "{}", named[2].message);
    assert!(!named[0].message.contains("Pod"), "{}", named[0].message);
}
