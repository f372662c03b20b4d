//! Fields that are others' although a chart says them: replicas that an autoscaler sets, pull secrets that a platform adds,
//! bundles that are left empty.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiError, ApiServer as _, ApiServerExt as _, Content, Method, Request};
use crate::memory::Fault;

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const SCALE: &str = "/apis/apps/v1/namespaces/shop/deployments/web/scale";
const SCALER: &str = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/h";
const SCALERS: &str = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers";
const ACCOUNT: &str = "/api/v1/namespaces/shop/serviceaccounts/web";
const API: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com";

async fn installed(object: Value) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![object])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edge("a").take_seen();
    rig
}

async fn update(rig: &Rig, object: Value) {
    rig.target(&on("a", &[app("web", vec![object])])).await;
    rig.until_complete("a").await;
}

fn corrected(rig: &Rig) -> i64 {
    rig.row("a").and_then(|row| row.drift).map_or(0, |drift| drift.corrected)
}

fn field(rig: &Rig, path: &str, pointer: &str) -> Value {
    rig.edge("a").object(path).unwrap().pointer(pointer).cloned().unwrap_or_default()
}

fn replicas(rig: &Rig) -> Value {
    field(rig, WEB, "/spec/replicas")
}

async fn scale(rig: &Rig, manager: &str, replicas: i64) {
    let request = Request::new(Method::Patch, SCALE)
        .query("fieldManager", manager)
        .body(Content::Merge, &json!({"spec": {"replicas": replicas}}));
    rig.edge("a").send(request).await.unwrap();
}

fn put_scaler(rig: &Rig) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "shop"}, "spec": {"scaleTargetRef": target, "maxReplicas": 9}});
    rig.edge("a").put("keda", &scaler);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_of_others_has_the_replicas_until_it_is_deleted() {
    let rig = installed(deployment("web", "nginx:1")).await;
    put_scaler(&rig);
    for number in [3, 4, 5, 6, 7, 8] {
        scale(&rig, "kube-controller-manager", number).await;
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!((replicas(&rig), corrected(&rig)), (json!(number), 0));
    }
    update(&rig, deployment("web", "nginx:2")).await;
    assert_eq!(replicas(&rig), 8, "an update leaves them alone");
    assert_eq!(field(&rig, WEB, "/spec/template/spec/containers/0/image"), "nginx:2");
    // A program beside an autoscaler takes what that scales to nothing, and back.
    scale(&rig, "keda", 0).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((replicas(&rig), corrected(&rig)), (json!(0), 0));
    scale(&rig, "kube-controller-manager", 8).await;
    // Also after a restart, and in an update that comes before anything was listed.
    rig.crash().await;
    rig.target(&on("a", &[app("web", vec![deployment("web", "nginx:3")])])).await;
    rig.start().await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((replicas(&rig), rig.row("a").unwrap().error), (json!(8), None));
    assert_eq!(field(&rig, WEB, "/spec/template/spec/containers/0/image"), "nginx:3");
    rig.edge("a").remove(SCALER);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((replicas(&rig), corrected(&rig)), (json!(1), 1), "nobody scales it any more");
    assert_eq!(rig.row("a").unwrap().drift.unwrap().restored, ["apps/Deployment/shop/web"]);
}

#[tokio::test(start_paused = true)]
async fn replicas_that_nobody_scales_are_set_back_whoever_set_them() {
    for manager in ["kubectl", "kube-controller-manager"] {
        let rig = installed(deployment("web", "nginx:1")).await;
        scale(&rig, manager, 3).await;
        rig.until("it is counted", |rig| corrected(rig) == 1).await;
        assert_eq!(replicas(&rig), 1, "{manager}");
    }
}

/// The list of autoscalers is refused.
fn refuse_lists(rig: &Rig, code: u16, reason: &str, message: &str) {
    let (reason, message) = (reason.to_owned(), message.to_owned());
    let refusal = ApiError::Status { code, reason, message, retry_after: None, causes: Vec::new() };
    rig.edge("a").faults(Some(Arc::new(move |request: &Request, _| {
        let lists = request.method == Method::Get && request.path.as_str() == SCALERS;
        lists.then(|| Fault::Refuse(refusal.clone()))
    })));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_set_back_while_the_list_of_autoscalers_gets_no_answer() {
    let rig = installed(deployment("web", "nginx:1")).await;
    put_scaler(&rig);
    refuse_lists(&rig, 500, "InternalError", "etcdserver: request timed out");
    scale(&rig, "keda", 0).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((replicas(&rig), corrected(&rig)), (json!(0), 0));
    rig.edge("a").faults(None);
    rig.edge("a").remove(SCALER);
    rig.until("it is counted", |rig| corrected(rig) == 1).await;
    assert_eq!(replicas(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn where_autoscalers_cannot_be_listed_the_live_object_is_believed() {
    let rig = installed(deployment("web", "nginx:1")).await;
    let words = "horizontalpodautoscalers.autoscaling is forbidden: User cannot list resource";
    refuse_lists(&rig, 403, "Forbidden", words);
    scale(&rig, "kube-controller-manager", 3).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((replicas(&rig), corrected(&rig)), (json!(3), 0));
    scale(&rig, "kubectl", 4).await;
    rig.until("it is counted", |rig| corrected(rig) == 1).await;
    assert_eq!(replicas(&rig), 1, "a person is no autoscaler");
}

fn account(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"},
        "imagePullSecrets": list})
}

fn pulls(rig: &Rig) -> Vec<String> {
    let list = field(rig, ACCOUNT, "/imagePullSecrets");
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// A platform makes a Secret for the account whenever it finds none of its own there.
async fn platform(rig: &Rig, names: &[&str]) {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    rig.edge("a").merge(ACCOUNT, &json!({"imagePullSecrets": list})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pull_secrets_that_a_platform_adds_stay_and_are_no_drift() {
    let rig = installed(account(&["one"])).await;
    platform(&rig, &["one", "theirs"]).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((pulls(&rig), corrected(&rig)), (vec!["one".to_owned(), "theirs".to_owned()], 0));
    update(&rig, account(&["two"])).await;
    assert_eq!(pulls(&rig), ["two", "theirs"], "what the chart said before goes");
    platform(&rig, &["theirs"]).await;
    rig.until("it is counted", |rig| corrected(rig) == 1).await;
    assert_eq!(pulls(&rig), ["two", "theirs"]);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((corrected(&rig), rig.row("a").unwrap().error), (1, None));
    // Also while the list is the platform's alone.
    platform(&rig, &["two", "theirs", "more"]).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((pulls(&rig).len(), corrected(&rig)), (3, 1));
    platform(&rig, &["theirs"]).await;
    rig.until("it is counted again", |rig| corrected(rig) == 2).await;
    assert_eq!(pulls(&rig), ["two", "theirs"]);
    // Also in the first request after a restart.
    rig.crash().await;
    rig.target(&on("a", &[app("web", vec![account(&["three"])])])).await;
    rig.start().await;
    rig.until_complete("a").await;
    assert_eq!(pulls(&rig), ["three", "theirs"]);
    update(&rig, account(&[])).await;
    assert_eq!(pulls(&rig), ["theirs"]);
    let mut labelled = account(&[]);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    update(&rig, labelled).await;
    assert_eq!(pulls(&rig), ["theirs"], "the list is ours by now, and stays");
}

#[tokio::test(start_paused = true)]
async fn pull_secrets_stay_in_an_account_that_is_taken_over() {
    for policy in [ConflictPolicy::AdoptIfSame, ConflictPolicy::Adopt, ConflictPolicy::Force] {
        let rig = Rig::new(&["a"]);
        rig.conflicts(policy);
        rig.edge("a").put("openshift", &account(&["theirs", "one"]));
        rig.start().await;
        update(&rig, account(&["one"])).await;
        assert_eq!(pulls(&rig), ["theirs", "one"], "{policy:?}");
        assert_eq!(field(&rig, ACCOUNT, "/metadata/annotations/emco.io~1adopted"), "true", "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_pull_secrets_takes_none_of_a_platforms_away() {
    let rig = installed(account(&[])).await;
    platform(&rig, &["theirs"]).await;
    let mut labelled = account(&[]);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    update(&rig, labelled).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((pulls(&rig), corrected(&rig)), (vec!["theirs".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_is_left_empty_belongs_to_whoever_fills_it() {
    let service = |priority: i64| {
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"},
            "spec": {"caBundle": "", "group": "example.com", "versionPriority": priority}})
    };
    let rig = installed(service(1)).await;
    rig.edge("a").merge(API, &json!({"spec": {"caBundle": "eA=="}})).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((field(&rig, API, "/spec/caBundle"), corrected(&rig)), (json!("eA=="), 0));
    rig.target(&on("a", &[app("web", vec![service(2)])])).await;
    rig.until("it is updated", |rig| field(rig, API, "/spec/versionPriority") == 2).await;
    assert_eq!(field(&rig, API, "/spec/caBundle"), "eA==");
}
