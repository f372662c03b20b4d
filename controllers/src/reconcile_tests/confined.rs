//! Confines logical clouds: what clusters have for it, and what namespaces of others keep.

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::objects;

const CLOUD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";
const NAMESPACE: &str = "/api/v1/namespaces/team-a";
const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/emco-isolation";
const ENFORCE: &str = "/metadata/labels/pod-security.kubernetes.io~1enforce";

fn cloud(more: &Value) -> Value {
    let mut spec = json!({"level": "Admin"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    emco("LogicalCloud", Some("team-a"), "default", &spec)
}

fn confined() -> Value {
    cloud(&json!({"podSecurity": "Restricted", "isolation": "DefaultDeny"}))
}

fn enforced(life: &Life, edge: &str) -> Option<String> {
    let namespace = life.edges[edge].object(NAMESPACE)?;
    namespace.pointer(ENFORCE).and_then(Value::as_str).map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn what_confines_comes_is_put_back_and_goes() {
    let mut life = Life::with(&objects());
    life.settle().await;
    assert_eq!((enforced(&life, "a"), life.edges["a"].object(POLICY)), (None, None));
    life.put(&confined());
    life.settle().await;
    for edge in ["a", "b"] {
        assert_eq!(enforced(&life, edge).as_deref(), Some("restricted"));
        assert!(life.edges[edge].object(POLICY).is_some());
    }
    assert_eq!(life.rig.ready(CLOUD).0, "True");
    // A tenant takes away what confines it.
    life.edges["a"].remove(POLICY);
    let mut open = life.edges["b"].object(NAMESPACE).unwrap();
    *open.pointer_mut(ENFORCE).unwrap() = json!("privileged");
    life.edges["b"].put("tenant", &open);
    life.settle().await;
    assert!(life.edges["a"].object(POLICY).is_some());
    assert_eq!(enforced(&life, "b").as_deref(), Some("restricted"));
    life.put(&cloud(&json!({})));
    life.settle().await;
    assert_eq!((enforced(&life, "b"), life.edges["b"].object(POLICY)), (None, None));
    assert!(life.edges["b"].object(NAMESPACE).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_others_is_not_confined_and_is_named() {
    let mut life = Life::with(&objects());
    let theirs = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "old"}}});
    life.edges["a"].put("somebody", &theirs);
    life.settle().await;
    assert_eq!(life.rig.ready(CLOUD).0, "True");
    life.put(&confined());
    life.settle().await;
    assert_eq!((enforced(&life, "a"), enforced(&life, "b").as_deref()), (None, Some("restricted")));
    assert_eq!(life.edges["a"].object(NAMESPACE).unwrap()["metadata"]["labels"], json!({"team": "old"}));
    let status = &life.rig.hub.object(CLOUD).unwrap()["status"];
    assert_eq!(life.rig.ready(CLOUD).0, "False");
    let failing = &status["failing"][0];
    assert_eq!(failing["cluster"], "acme/a");
    let message = failing["message"].as_str().unwrap();
    let words = "nothing on it says that EMCO made it";
    assert!(message.contains("team-a") && message.contains(words), "{message}");
}

/// What a chart of the tenant left behind.
fn left_behind() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kept", "namespace": "team-a"}})
}

#[tokio::test(start_paused = true)]
async fn what_confines_stays_while_something_of_the_tenant_is_there() {
    let (mut all, quota) = (objects(), "/api/v1/namespaces/team-a/resourcequotas/emco-pods");
    all.pop();
    let quotas = json!([{"name": "pods", "hard": {"pods": "4"}}]);
    let confining = json!({"level": "Standard", "podSecurity": "Restricted", "isolation": "DefaultDeny", "quotas": quotas});
    all.push(cloud(&confining));
    let mut life = Life::with(&all);
    // It makes no other logical cloud in the place of the one that goes.
    life.put(&emco("Project", None, "team-a", &json!({})));
    life.settle().await;
    assert!(life.edges["a"].object(quota).is_some(), "{:?}", life.rig.ready(CLOUD));
    life.edges["a"].put("tenant", &left_behind());
    life.delete(CLOUD).await;
    life.settle().await;
    assert_eq!(life.rig.hub.object(CLOUD), None);
    assert!(life.edges["a"].object(quota).is_some() && life.edges["a"].object(POLICY).is_some());
    assert_eq!(enforced(&life, "a").as_deref(), Some("restricted"));
    // Nothing of anybody is on the other one.
    assert_eq!(life.edges["b"].object(NAMESPACE), None);
    let notes = life.rig.hub.of_kind("Event");
    let told = |event: &Value| {
        event["message"].as_str().is_some_and(|note| note.contains("(it holds Deployment/kept)"))
    };
    assert!(notes.iter().any(told), "{notes:?}");
}
