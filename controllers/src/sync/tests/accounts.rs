//! Applies, changes and removes objects as an account of the cluster.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_crds::names::label;
use emco_engine::role::Derived;
use emco_engine::set::{ManifestSet, SetManifest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rig::*;
use crate::api::{ApiError, Method, Request};
use crate::memory::{Fault, Faults, MemoryServer};

const ACCOUNT: &str = "system:serviceaccount:shop:emco-edge";

fn acting(json: Value) -> SetManifest {
    SetManifest { account: Some(ACCOUNT.to_owned()), ..manifest(json, None) }
}

/// The kind of the account is watched, for the set has one of its own.
fn app_with(value: &str) -> Arc<ManifestSet> {
    let own = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}});
    app_of("web", vec![acting(config("c", value)), acting(own)])
}

/// The account, as a logical cloud makes it.
fn make_account(edge: &MemoryServer) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "emco-edge", "namespace": "shop", "labels": {(label::OWNER): "cloud"}}});
    edge.put("emco", &account);
}

/// The accounts that writes of the ConfigMap were sent as.
fn writers(edge: &MemoryServer) -> Vec<(Method, String)> {
    let writes = edge.writes().into_iter().filter(|write| write.path.ends_with("/configmaps/c"));
    writes.map(|write| (write.method, write.account)).collect()
}

/// The authorizer refuses such requests of the account.
fn without_right(which: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Faults {
    Arc::new(move |request, _| {
        (request.impersonate.is_some() && which(request)).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: format!(
                    "configmaps \"c\" is forbidden: User \"{ACCOUNT}\" cannot patch resource \"configmaps\" in API group \"\" in the namespace \"shop\""
                ),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })
}

#[tokio::test(start_paused = true)]
async fn writes_wait_for_the_account_and_are_sent_as_it() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    rig.start().await;
    // What is there of the kind of the account is known.
    let own = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}});
    rig.target(&on("a", &[app("web", vec![own])])).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[app_with("1")])).await;
    let row = rig.until_reason("a", "Progressing").await;
    let message = row.error.unwrap().message;
    assert_eq!(message, format!("waits for its logical cloud to make {ACCOUNT} there"));
    assert_eq!(writers(&edge), []);
    make_account(&edge);
    rig.until_complete("a").await;
    rig.target(&on("a", &[app_with("2")])).await;
    rig.until_complete("a").await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    let acting = |method| (method, ACCOUNT.to_owned());
    assert_eq!(writers(&edge), [acting(Method::Patch), acting(Method::Patch), acting(Method::Delete)]);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_comes_a_moment_later_costs_seconds() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    make_account(&edge);
    edge.faults(Some(without_right(|request| request.method == Method::Patch)));
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    let error = rig.until_reason("a", "Progressing").await.error.unwrap();
    assert!(error.message.contains("cannot patch resource \"configmaps\""), "{}", error.message);
    let begun = Instant::now();
    edge.faults(None);
    rig.until_complete("a").await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_right_that_never_comes_is_a_failure_in_the_servers_words() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    make_account(&edge);
    edge.faults(Some(without_right(|request| request.method == Method::Patch)));
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let error = rig.row("a").unwrap().error.unwrap();
    assert_eq!(error.reason, "Forbidden");
    assert!(error.message.contains("cannot patch resource \"configmaps\""), "{}", error.message);
    assert_eq!(edge.object("/api/v1/namespaces/shop/configmaps/c"), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_account_may_not_remove_any_more_is_removed_without_it() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    make_account(&edge);
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    rig.until_complete("a").await;
    edge.faults(Some(without_right(|request| request.method == Method::Delete)));
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(writers(&edge).last(), Some(&(Method::Delete, String::new())));
    assert_eq!(edge.object("/api/v1/namespaces/shop/configmaps/c"), None);
    let metrics = rig.sync.lock().as_ref().unwrap().metrics().clone();
    assert_eq!(metrics.beyond_account.load(Ordering::Relaxed), 2, "the ConfigMap and the account");
}

#[tokio::test(start_paused = true)]
async fn another_refusal_than_a_missing_right_is_not_evaded() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    make_account(&edge);
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    rig.until_complete("a").await;
    edge.faults(Some(Arc::new(|request, _| {
        (request.method == Method::Delete && request.impersonate.is_some()).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "admission webhook \"keep.example.com\" denied the request: protected".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.target(&nowhere()).await;
    rig.until_reason("a", "Forbidden").await;
    assert!(edge.object("/api/v1/namespaces/shop/configmaps/c").is_some());
}

fn derived() -> Derived {
    Derived { namespaces: ["shop".to_owned()].into(), cluster: false }
}

/// The role of the account, with these resources, and its binding.
fn give_rights(edge: &MemoryServer, resources: &[&str]) {
    let rbac = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": resources, "verbs": ["create", "delete", "patch"]}]);
    let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
        "metadata": {"name": "emco-edge-own", "namespace": "shop"}, "rules": rules});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "emco-edge-own", "namespace": "shop"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "emco-edge-own"},
        "subjects": [{"kind": "ServiceAccount", "name": "emco-edge", "namespace": "shop"}]});
    edge.put("emco", &role);
    edge.put("emco", &binding);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_target_is_sent_before_all_derived_rights_are_there() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    *rig.policy.derived.lock() = Some(derived());
    make_account(&edge);
    give_rights(&edge, &["configmaps"]);
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    let row = rig.until_reason("a", "Progressing").await;
    let message = row.error.unwrap().message;
    assert_eq!(message, format!("waits for its logical cloud to let {ACCOUNT} create serviceaccounts there"));
    assert_eq!(writers(&edge), [], "also of what it may do already");
    give_rights(&edge, &["configmaps", "serviceaccounts"]);
    rig.until_complete("a").await;
    assert_eq!(writers(&edge), [(Method::Patch, ACCOUNT.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn where_a_cluster_lists_no_rules_each_object_is_tried() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    *rig.policy.derived.lock() = Some(derived());
    make_account(&edge);
    edge.faults(Some(Arc::new(|request, _| {
        request.path.as_str().ends_with("/selfsubjectrulesreviews").then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: format!("User \"{ACCOUNT}\" cannot create resource \"selfsubjectrulesreviews\""),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.start().await;
    rig.target(&on("a", &[app_with("1")])).await;
    rig.until_complete("a").await;
}
