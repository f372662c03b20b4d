//! Kinds that a cluster does not serve, or may not be listed: nothing counts as gone before its absence is proven.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_crds::RowStatus;
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::identity::ClusterId;
use emco_engine::set::ManifestSet;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiError, Method};
use crate::memory::Fault;

const WIDGETS: &str = "/apis/example.com/v1/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]}})
}

fn widget() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}, "spec": {"a": 1}})
}

/// The cluster says from now on that it serves nothing of the group.
fn hides_the_group(rig: &Rig) {
    let all = rig.edge("a").apis().resources.into_iter();
    let less = Arc::new(ApiList { resources: all.filter(|r| r.group != "example.com").collect() });
    rig.edges.stale.store(true, Ordering::Relaxed);
    rig.edges.link(&cluster("a"), |link| link.apis = Some(less.clone()));
}

fn shows_the_group(rig: &Rig) {
    rig.edges.stale.store(false, Ordering::Relaxed);
    let all = Arc::new(rig.edge("a").apis());
    rig.edges.link(&cluster("a"), |link| link.apis = Some(all.clone()));
}

/// An app with a Widget is installed, and the engine is stopped.
async fn installed(defined: bool) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("test", &definition());
    shows_the_group(&rig);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), widget()])])).await;
    rig.until_complete("a").await;
    if !defined {
        rig.edge("a").remove(&format!("{DEFINITIONS}/widgets.example.com"));
    }
    rig.crash().await;
    rig
}

fn forbidden(path: &'static str) -> crate::memory::Faults {
    forbidden_where(move |asked| asked == path)
}

fn forbidden_where(refused: impl Fn(&str) -> bool + Send + Sync + 'static) -> crate::memory::Faults {
    Arc::new(move |request, _| {
        let path = request.path.as_str();
        (request.method == Method::Get && refused(path)).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: format!("User \"hub\" cannot list {path} at the cluster scope"),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })
}

/// Everything of the deployment is to leave, and half an hour later it has not: what the row says.
async fn waits_for_removal(rig: &Rig, reason: &str) -> RowStatus {
    rig.start().await;
    rig.target(&nowhere()).await;
    rig.until_reason("a", reason).await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert!(!rig.complete("a"));
    let row = rig.row("a").unwrap();
    assert_eq!(row.error.as_ref().map(|error| error.reason.as_str()), Some(reason), "{row:?}");
    // The rest waits for it: what takes care of its end may be among it.
    assert_eq!(rig.ours("a"), ["configmaps./shop/c", "widgets.example.com/shop/w"]);
    row
}

#[tokio::test(start_paused = true)]
async fn what_discovery_lacks_for_a_moment_is_removed_when_it_is_back() {
    let rig = installed(true).await;
    hides_the_group(&rig);
    let row = waits_for_removal(&rig, "KindMissing").await;
    let message = row.error.unwrap().message;
    assert!(message.contains("widgets.example.com"), "{message}");
    shows_the_group(&rig);
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_definition_has_no_objects() {
    let rig = installed(false).await;
    hides_the_group(&rig);
    rig.start().await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_released_with_its_app_and_never_deleted() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let mut brought = definition();
    brought.as_object_mut().unwrap().remove("status");
    rig.target(&on("a", &[app("web", vec![config("c", "1"), brought])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a").len(), 2, "{:?}", rig.ours("a"));
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
    let definition = rig.edge("a").object(&format!("{DEFINITIONS}/widgets.example.com"));
    assert!(definition.is_some(), "every object of its kind would go with it");
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_see_definitions_nothing_is_forgotten() {
    for path in [DEFINITIONS, SERVICES] {
        let rig = installed(false).await;
        hides_the_group(&rig);
        rig.edge("a").faults(Some(forbidden(path)));
        let message = waits_for_removal(&rig, "Forbidden").await.error.unwrap().message;
        assert!(message.contains("Widget") && message.contains("grant"), "{message}");
        rig.edge("a").faults(None);
        rig.until_complete("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_an_aggregated_api_that_is_down_is_waited_for() {
    let rig = installed(false).await;
    let service = |available: &str| {
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"},
            "spec": {"group": "example.com", "version": "v1", "service": {"name": "widgets", "namespace": "shop"}},
            "status": {"conditions": [{"type": "Available", "status": available}]}})
    };
    rig.edge("a").put("test", &service("False"));
    hides_the_group(&rig);
    let message = waits_for_removal(&rig, "KindMissing").await.error.unwrap().message;
    assert!(message.contains("v1.example.com"), "{message}");
    shows_the_group(&rig);
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
}

/// A cluster with a past, on which a Widget is left that no inventory names.
fn with_a_past(rig: &Rig) {
    let edge = rig.edge("a");
    edge.put("test", &definition());
    let mut left = widget();
    left["metadata"]["labels"] = json!({"emco.io/owner": rig.hash});
    edge.put(&emco_engine::marks::field_manager(&rig.hash), &left);
    shows_the_group(rig);
    rig.edges.link(&cluster("a"), |link| link.returned = true);
}

#[tokio::test(start_paused = true)]
async fn a_scan_names_the_kind_that_it_may_not_list_and_goes_on_with_the_right() {
    let rig = Rig::new(&["a"]);
    with_a_past(&rig);
    rig.edge("a").faults(Some(forbidden(WIDGETS)));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let row = rig.until_reason("a", "Forbidden").await;
    let message = row.error.unwrap().message;
    assert!(message.contains("Widget") && message.contains("example.com"), "{message}");
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert!(!rig.complete("a"));
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}

#[tokio::test(start_paused = true)]
async fn a_scan_waits_for_kinds_that_are_defined_and_not_served() {
    let rig = Rig::new(&["a"]);
    with_a_past(&rig);
    hides_the_group(&rig);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let message = rig.until_reason("a", "KindMissing").await.error.unwrap().message;
    assert!(message.contains("widgets.example.com"), "{message}");
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert!(!rig.complete("a"));
    shows_the_group(&rig);
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_no_object_proves_no_absence() {
    let rig = installed(true).await;
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        request.path.contains("/widgets").then(|| {
            Fault::Refuse(ApiError::Status {
                code: 404,
                reason: "NotFound".to_owned(),
                message: "the server could not find the requested resource".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    waits_for_removal(&rig, "KindMissing").await;
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
}

/// A kind of an aggregated API that has lists and no watches.
fn serves_gadgets(rig: &Rig) {
    rig.edge("a").register(ApiResource {
        group: "gadgets.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Gadget".to_owned(),
        plural: "gadgets".to_owned(),
        namespaced: true,
        listable: true,
        watchable: false,
    });
}

fn gadget(namespace: &str) -> Value {
    json!({"apiVersion": "gadgets.io/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": namespace}})
}

#[tokio::test(start_paused = true)]
async fn a_scan_finds_what_is_left_of_a_kind_that_cannot_be_watched() {
    let rig = Rig::new(&["a"]);
    serves_gadgets(&rig);
    let mut left = gadget("shop");
    left["metadata"]["labels"] = json!({"emco.io/owner": rig.hash});
    rig.edge("a").put(&emco_engine::marks::field_manager(&rig.hash), &left);
    with_a_past(&rig);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_objects_of_a_kind_that_cannot_be_watched_stays() {
    let rig = Rig::new(&["a"]);
    serves_gadgets(&rig);
    shows_the_group(&rig);
    rig.start().await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}});
    rig.target(&on("a", &[app("web", vec![space])])).await;
    rig.until_complete("a").await;
    rig.edge("a").put("somebody", &gadget("extra"));
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.edge("a").object("/api/v1/namespaces/extra").is_some(), "it is only released");
    assert!(rig.edge("a").object("/apis/gadgets.io/v1/namespaces/extra/gadgets/g").is_some());
    assert_eq!(rig.ours("a"), Vec::<String>::new());
}

fn with_a_hook(value: &str) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    let migrate = hook(job("migrate"), &["pre-install", "pre-upgrade"], 0, &["before-hook-creation"]);
    on("a", &[app_of("web", vec![migrate, manifest(config("c", value), None)])])
}

/// The hook ran, the engine was stopped, and its next run is due while Jobs may not be listed; nor read, if `refused` says so.
async fn unlistable_hook(refused: impl Fn(&str) -> bool + Send + Sync + 'static) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&with_a_hook("1")).await;
    rig.until_complete("a").await;
    rig.crash().await;
    rig.edge("a").faults(Some(forbidden_where(refused)));
    rig.edge("a").take_seen();
    rig.target(&with_a_hook("2")).await;
    rig.start().await;
    rig
}

fn writes_of_jobs(rig: &Rig) -> Vec<Method> {
    let writes = rig.edge("a").writes().into_iter();
    writes.filter(|write| write.path.contains("/jobs/")).map(|write| write.method).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_may_not_be_listed_is_cleared_before_its_next_run() {
    let rig = unlistable_hook(|path| path.ends_with("/jobs")).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(writes_of_jobs(&rig), [Method::Delete, Method::Patch]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_may_not_be_read_is_not_taken_for_cleared() {
    let rig = unlistable_hook(|path| path.contains("/jobs")).await;
    rig.until_reason("a", "Forbidden").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(writes_of_jobs(&rig), []);
    assert_eq!(rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").unwrap()["data"]["value"], "1");
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
}
