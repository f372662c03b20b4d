//! Events of failures of every kind: each is a Warning, and each refusal is told once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::life::Life;
use super::rig::{Rig, emco, namespace, secret, settled, settled_with, world};
use super::shop::{deployment, objects, values};
use crate::api::{ApiError, Method};
use crate::memory::Fault;

const CLOUD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";
const SHOP: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/deploymentintentgroups/shop";

/// Type, reason and message of each Event about an object, in the order of their times.
fn events(rig: &Rig, kind: &str, name: &str) -> Vec<(String, String, String)> {
    let objects = rig.hub.objects();
    let about = |event: &&Value| {
        event["kind"] == "Event"
            && event["involvedObject"]["kind"] == kind
            && event["involvedObject"]["name"] == name
    };
    let mut events: Vec<&Value> = objects.values().filter(about).collect();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events.sort_by_key(|event| {
        let version = event["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        version.parse::<u64>().unwrap_or_default()
    });
    events.iter().map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
}

/// Type and reason of the last one.
fn last(rig: &Rig, kind: &str, name: &str) -> (String, String) {
    let all = events(rig, kind, name);
    let (type_, reason, _) = all.last().unwrap_or_else(|| panic!("no Event of {kind} {name}"));
    (type_.clone(), reason.clone())
}

fn warning(reason: &str) -> (String, String) {
    ("Warning".to_owned(), reason.to_owned())
}

/// How many Warnings of this reason there are.
fn told(rig: &Rig, kind: &str, name: &str, reason: &str) -> usize {
    let all = events(rig, kind, name);
    all.iter().filter(|(type_, said, _)| type_ == "Warning" && said == reason).count()
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_is_a_warning_whatever_the_reason() {
    let mut rig = settled().await;
    assert_eq!(last(&rig, "Cluster", "a").0, "Normal");
    for reason in [
        "Unauthorized",
        "Forbidden",
        "TLSFailed",
        "DNSFailed",
        "Timeout",
        "ConnectionRefused",
        "AddressNotAllowed",
        "ServerError",
    ] {
        rig.fails("a", reason);
        rig.settle().await;
        assert_eq!(last(&rig, "Cluster", "a"), warning(reason));
        // The same Event is written once a second.
        rig.clock.forward(Duration::from_secs(1));
        rig.returns("a", "uid-a");
        rig.settle().await;
        assert_eq!(last(&rig, "Cluster", "a"), ("Normal".to_owned(), "Reachable".to_owned()));
    }
    rig.answers("a", "uid-other");
    rig.settle().await;
    assert_eq!(last(&rig, "Cluster", "a"), warning("ClusterReplaced"));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_cannot_be_used_are_a_warning() {
    let without_secret = world().into_iter().filter(|object| object["kind"] != "Secret").collect();
    let mut rig = settled_with(without_secret).await;
    assert_eq!(last(&rig, "Cluster", "a"), warning("SecretNotFound"));
    let mut broken = secret("a");
    for (data, reason) in [
        (json!({"other": "Og=="}), "SecretKeyNotFound"),
        (json!({"kubeconfig": "Og=="}), "KubeconfigInvalid"),
    ] {
        broken["data"] = data;
        rig.hub.put("test", &broken);
        rig.settle().await;
        assert_eq!(last(&rig, "Cluster", "a"), warning(reason));
    }
    let alone =
        emco("Cluster", Some("nobodys"), "b", &json!({"access": {"kubeconfigSecretRef": {"name": "b"}}}));
    rig.hub.put("test", &namespace("nobodys", &json!({})));
    rig.hub.put("test", &alone);
    rig.settle().await;
    assert_eq!(last(&rig, "Cluster", "b"), warning("NoClusterProvider"));
}

#[tokio::test(start_paused = true)]
async fn charts_that_cannot_be_had_are_a_warning() {
    let mut rig = settled().await;
    let rubbish = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rubbish", "namespace": "team-a"},
        "data": {"web.tgz": "this is no archive"}});
    rig.hub.put("test", &rubbish);
    for (name, chart, depends_on, reason) in [
        ("absent", "absent", json!([]), "ConfigMapNotFound"),
        ("broken", "rubbish", json!([]), "ChartInvalid"),
        ("waits", "absent", json!([{"app": "web"}]), "DependencyCycle"),
    ] {
        let chart = json!({"configMapRef": {"name": chart, "key": "web.tgz"}});
        let spec = json!({"apps": [{"name": "web", "chart": chart, "dependsOn": depends_on}]});
        rig.hub.put("test", &emco("CompositeApp", Some("team-a"), name, &spec));
        rig.settle().await;
        assert_eq!(last(&rig, "CompositeApp", name), warning(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_project_that_gets_no_namespace_is_a_warning() {
    let mut rig = settled().await;
    rig.hub.put("test", &namespace("plain", &json!({})));
    for (name, spec, reason) in [
        ("stranger", json!({"namespace": "plain"}), "NamespaceNotOurs"),
        ("second", json!({"namespace": "team-a"}), "NamespaceTaken"),
    ] {
        rig.hub.put("test", &emco("Project", None, name, &spec));
        rig.settle().await;
        assert_eq!(last(&rig, "Project", name), warning(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_logical_cloud_that_cannot_be_is_a_warning() {
    let mut rig = settled().await;
    let nowhere = json!([{"provider": "acme", "selector": {"matchLabels": {"tier": "none"}}}]);
    for (name, spec, reason) in [
        ("empty", json!({"level": "Admin", "namespace": "x", "clusters": nowhere}), "NoClusters"),
        ("second", json!({"level": "Admin", "namespace": "team-a"}), "NamespaceConflict"),
    ] {
        rig.hub.put("test", &emco("LogicalCloud", Some("team-a"), name, &spec));
        rig.settle().await;
        assert_eq!(last(&rig, "LogicalCloud", name), warning(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_logical_cloud_says_what_runs_and_warns_once() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let cloud = |name: &str, namespace: &str| {
        emco("LogicalCloud", Some("team-a"), name, &json!({"level": "Admin", "namespace": namespace}))
    };
    // Of two that are of one age, the first by name.
    life.put(&cloud("another", "there"));
    life.settle().await;
    life.put(&cloud("default", "there"));
    life.settle().await;
    let runs = "revision 1 runs on 2 of 2 clusters; the last change is refused: ";
    let (status, reason, message) = life.rig.ready(CLOUD);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NamespaceConflict"));
    let why = message.strip_prefix(runs).unwrap_or_else(|| panic!("{message}"));
    assert_eq!(told(&life.rig, "LogicalCloud", "default", "NamespaceConflict"), 1);
    let status = &life.rig.hub.object(CLOUD).unwrap()["status"];
    let conditions = status["conditions"].as_array().unwrap();
    let stalled = conditions.iter().find(|condition| condition["type"] == "Stalled").unwrap();
    assert_eq!(stalled["message"], why, "what clusters do is no part of it");
    assert_eq!(status["clusters"]["ready"], 2);
    // Deployments in it are refused the next change as well.
    life.put(&values("blue"));
    life.settle().await;
    let (status, reason, message) = life.rig.ready(SHOP);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "LogicalCloudNotReady"));
    assert!(message.starts_with(runs), "{message}");
    assert_eq!(told(&life.rig, "DeploymentIntentGroup", "shop", "LogicalCloudNotReady"), 1);
    // A cluster is lost: the counts follow, and nothing is told again.
    life.rig.fails("b", "Timeout");
    life.settle().await;
    let status = &life.rig.hub.object(CLOUD).unwrap()["status"];
    assert_eq!((&status["clusters"]["ready"], &status["clusters"]["unreachable"]), (&json!(1), &json!(1)));
    assert_eq!(told(&life.rig, "LogicalCloud", "default", "NamespaceConflict"), 1);
    life.rig.returns("b", "uid-b");
    life.put(&cloud("default", "team-a"));
    life.settle().await;
    assert_eq!(life.rig.ready(CLOUD).0, "True");
    assert_eq!(life.rig.ready(SHOP).0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_ready_clusters_tolerates_is_told_once() {
    let mut life = Life::with(&objects());
    let mut needs_one = deployment("edge");
    needs_one["spec"]["readyClusters"] = json!(1);
    life.put(&needs_one);
    life.settle().await;
    let warnings = |life: &Life| {
        let mut all = events(&life.rig, "DeploymentIntentGroup", "shop");
        all.retain(|(type_, ..)| type_ == "Warning");
        all
    };
    let before = warnings(&life);
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet \"web\" has timed out progressing."});
    let unready = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": [late]});
    life.edges["a"].set_workloads_ready(false);
    life.edges["a"].set_status("/apis/apps/v1/namespaces/team-a/deployments/web", &unready).unwrap();
    life.settle().await;
    assert_eq!(warnings(&life), before, "it may still come");
    for _ in 0..2 {
        let beyond_its_deadline = Duration::from_mins(11);
        life.rig.clock.forward(beyond_its_deadline);
        tokio::time::sleep(beyond_its_deadline).await;
        life.settle().await;
        assert_eq!(life.rig.ready(SHOP).0, "True");
        let told = warnings(&life).split_off(before.len());
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].1, "ProgressDeadlineExceeded");
        assert!(told[0].2.starts_with("acme/a (web): "), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_keeps_its_cause_and_the_event_has_all_of_it() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let right = |kind: &str| format!("{{APIGroups:[\"apps\"], Resources:[\"{kind}\"], Verbs:[\"get\"]}}");
    let rights: Vec<String> = (1..=8).map(|n| right(&format!("kind-{n}"))).collect();
    let message = format!(
        "configmaps \"page\" is forbidden: user \"x\" is attempting to grant RBAC permissions not currently held:\n{}",
        rights.join("\n")
    );
    life.edges["a"].faults(Some(Arc::new(move |request, _| {
        let refused = request.method == Method::Patch && request.path.as_str().ends_with("/configmaps/page");
        refused.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: message.clone(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    life.put(&values("blue"));
    life.settle().await;
    let failing = life.rig.hub.object(SHOP).unwrap()["status"]["failing"][0].clone();
    let said = failing["message"].as_str().unwrap();
    assert!(said.len() <= 256 && said.starts_with("ConfigMap/team-a/page: attempting to grant"), "{said}");
    assert!(said.contains(" ... ") && said.ends_with(&right("kind-8")), "{said}");
    let events = events(&life.rig, "DeploymentIntentGroup", "shop");
    let told: Vec<_> = events.iter().filter(|(_, reason, _)| reason == "Forbidden").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(rights.iter().all(|right| told[0].2.contains(right)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_others_deleted_is_named_by_the_event_that_it_is_back() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.edges["a"].remove("/api/v1/namespaces/team-a/configmaps/page");
    life.settle().await;
    let told = events(&life.rig, "DeploymentIntentGroup", "shop");
    let told: Vec<_> = told.iter().filter(|(_, reason, _)| reason == "DriftCorrected").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].2.contains("as they were applied: ConfigMap/team-a/page on acme/a; "), "{told:?}");
}
