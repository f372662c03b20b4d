//! A suspended project: nothing of any kind is written to clusters for what it has there, and all goes on where it was.

use std::sync::Arc;

use emco_crds::OwnerKind;
use serde_json::{Value, json};

use super::approvals::project;
use super::life::*;
use super::rig::secret;
use super::shop::{TENANT, deployment, labelled, objects, values};
use super::suspended::{SHOP, edges, installed, page, suspended};
use crate::api::{ApiServerExt as _, Method};
use crate::memory::MemoryServer;

const PROJECT: &str = "/apis/emco.io/v1alpha1/projects/team-a";

fn stopped(suspend: bool) -> Value {
    project(&json!({"suspend": suspend}))
}

/// Of all of a tenant: its deployments, and the namespaces of its logical clouds.
#[tokio::test(start_paused = true)]
async fn a_suspended_project_writes_nothing_and_goes_on_when_resumed() {
    let mut life = installed().await;
    life.put(&stopped(true));
    life.settle().await;
    let before = edges(&life);
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Suspended"));
    assert_eq!(
        message,
        "2 of 2 clusters ready; suspended: nothing is written to clusters until spec.suspend of Project team-a is unset"
    );
    assert_eq!(life.dig()["spec"].get("suspend"), None, "nobody writes into what people wrote");
    let at = |path: &str| life.rig.hub.object(path).unwrap()["status"]["conditions"].to_string();
    for path in [PROJECT, &format!("{TENANT}/logicalclouds/default")] {
        assert!(at(path).contains("suspended: nothing is written to clusters"), "{}", at(path));
    }
    // An edit, a namespace that others delete, and a change by others wait.
    life.edges["b"].remove("/api/v1/namespaces/team-a");
    life.put(&values("blue"));
    life.edges["a"].put(
        "other",
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "page", "namespace": "team-a"}, "data": {"text": "theirs"}}),
    );
    let theirs = edges(&life);
    for _ in 0..2 {
        life.settle().await;
        assert_eq!(life.dig()["status"]["pending"]["requires"], "Nothing");
        assert_eq!(edges(&life), theirs);
        life.restart().await;
    }
    assert_ne!(before, theirs);
    life.put(&stopped(false));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("blue"), json!("blue")));
    assert!(life.names_on("b").contains(&"namespaces.//team-a".to_owned()), "{:?}", life.names_on("b"));
    assert_eq!((life.says("Ready").0, life.says("Ready").1), ("True".into(), "Ready".into()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_a_suspended_project_waits_and_names_the_project() {
    let mut life = installed().await;
    life.put(&stopped(true));
    life.settle().await;
    let before = edges(&life);
    life.delete(&format!("{TENANT}/{SHOP}")).await;
    life.settle().await;
    assert_eq!(edges(&life), before);
    let (_, reason, message) = life.says("Ready");
    assert_eq!(reason, "Suspended");
    assert!(
        message.contains("nothing is removed until spec.suspend of Project team-a is unset"),
        "{message}"
    );
    life.put(&stopped(false));
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

/// One field does not take back the other.
#[tokio::test(start_paused = true)]
async fn a_deployment_stays_suspended_when_its_project_is_resumed() {
    let mut life = installed().await;
    life.put(&suspended("edge"));
    life.put(&stopped(true));
    life.settle().await;
    assert!(life.says("Ready").2.contains("spec.suspend of Project team-a and of the deployment is unset"));
    life.put(&stopped(false));
    life.put(&values("blue"));
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Suspended"));
    assert!(message.contains("until spec.suspend is unset"), "{message}");
    assert_ne!(page(&life, "a"), json!("blue"));
}

/// Whoever takes the label of a namespace away, or gives it to others, resumes nothing.
#[tokio::test(start_paused = true)]
async fn a_namespace_with_another_label_is_as_suspended_as_its_project() {
    for label in [Value::Null, json!("team-b")] {
        let mut life = installed().await;
        life.put(&stopped(true));
        life.settle().await;
        let before = edges(&life);
        let path = "/api/v1/namespaces/team-a";
        life.rig.hub.merge(path, &json!({"metadata": {"labels": {"emco.io/project": label}}})).await.unwrap();
        life.put(&values("blue"));
        life.edges["a"].remove("/api/v1/namespaces/team-a");
        life.settle().await;
        life.restart().await;
        life.settle().await;
        let (stores, producers) = (&life.rig.ctx.stores, &life.rig.ctx.producers);
        assert!(producers.is_suspended(stores, &OwnerKind::LogicalCloud, "team-a", "default"));
        assert!(producers.is_suspended(stores, &OwnerKind::DeploymentIntentGroup, "team-a", "gone"));
        assert!(!producers.is_suspended(stores, &OwnerKind::DeploymentIntentGroup, "team-b", "shop"));
        assert_eq!(
            (before[1].clone(), None),
            (edges(&life)[1].clone(), life.on("a").get("namespaces.//team-a"))
        );
    }
}

/// Nobody reconciles an owner that is gone: its jobs are woken by the project.
#[tokio::test(start_paused = true)]
async fn what_a_deployment_left_is_removed_when_its_project_is_resumed() {
    let mut life = installed().await;
    life.put(&stopped(true));
    life.settle().await;
    let before = edges(&life);
    life.rig.hub.remove(&format!("{TENANT}/{SHOP}"));
    life.settle().await;
    assert_eq!(edges(&life), before);
    life.put(&stopped(false));
    life.settle().await;
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"]);
    }
}

/// The watch is behind: what was planned before is stored, and not targeted.
#[tokio::test(start_paused = true)]
async fn a_plan_that_is_stored_while_its_project_is_suspended_waits() {
    let mut life = installed().await;
    let before = edges(&life);
    let hub = life.rig.hub.clone();
    life.hub_faults(Arc::new(move |request, _| {
        if request.method == Method::Post && request.path.as_str().ends_with("/configmaps") {
            hub.put("admin", &stopped(true));
        }
        None
    }));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(edges(&life), before);
    assert!(life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-2")).is_some(), "it was stored");
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["pending"]["revision"]), (&json!(1), &json!(2)), "{status:#}");
    assert_eq!((life.says("Ready").0, life.says("Ready").1), ("True".into(), "Suspended".into()));
    life.rig.hub.faults(None);
    life.put(&stopped(false));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("blue"), json!("blue")));
}

/// The same before anything runs: it has no revision until it goes on.
#[tokio::test(start_paused = true)]
async fn a_first_revision_that_is_stored_while_its_project_is_suspended_is_pending() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    let hub = life.rig.hub.clone();
    life.hub_faults(Arc::new(move |request, _| {
        if request.method == Method::Post && request.path.as_str().ends_with("/configmaps") {
            hub.put("admin", &stopped(true));
        }
        None
    }));
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-1")).is_some(), "it was stored");
    let status = life.dig()["status"].clone();
    assert_eq!(
        (&status["revision"], &status["pending"]["revision"]),
        (&Value::Null, &json!(1)),
        "{status:#}"
    );
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"]);
    }
    life.rig.hub.faults(None);
    life.put(&stopped(false));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}

#[tokio::test(start_paused = true)]
async fn a_refused_deployment_of_a_suspended_project_names_the_project() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.put(&stopped(true));
    life.put(&deployment("nowhere"));
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!(reason, "NoClusterMatches");
    assert!(message.ends_with("until spec.suspend of Project team-a is unset"), "{message}");
}

/// A logical cloud that would get another cluster says so, and gets it afterwards.
#[tokio::test(start_paused = true)]
async fn a_logical_cloud_of_a_suspended_project_stays_on_its_clusters() {
    let path = format!("{TENANT}/logicalclouds/default");
    let mut life = Life::joined(["a", "b", "c"].map(|name| (name, MemoryServer::new())).into());
    for object in objects() {
        life.put(&object);
    }
    life.settle().await;
    life.put(&stopped(true));
    life.settle().await;
    let (status, reason, _) = life.rig.ready(&path);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Suspended"));
    life.put(&secret("c"));
    life.put(&labelled("c", &json!({"tier": "core"})));
    for _ in 0..2 {
        life.settle().await;
        assert_eq!(life.names_on("c"), Vec::<String>::new());
        assert_eq!(life.rig.hub.object(&path).unwrap()["status"]["revision"], 1);
        let (status, reason, message) = life.rig.ready(&path);
        assert_eq!((status.as_str(), reason.as_str()), ("True", "Suspended"));
        let said = "2 of 2 clusters ready; suspended: nothing is written to clusters until spec.suspend of Project team-a is unset; then comes revision 2: ";
        assert!(message.starts_with(said), "{message}");
        let conditions = life.rig.hub.object(&path).unwrap()["status"]["conditions"].clone();
        let type_ = |condition: &Value| condition["type"] == "Reconciling" && condition["status"] == "True";
        assert!(conditions.as_array().unwrap().iter().any(type_), "the change is not done: {conditions:#}");
        life.restart().await;
    }
    life.put(&stopped(false));
    life.settle().await;
    assert_eq!(life.names_on("c"), ["namespaces.//team-a"]);
    assert_eq!(life.rig.ready(&path).1, "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_project_that_is_deleted_says_what_it_waits_for() {
    let mut life = installed().await;
    life.put(&stopped(true));
    life.settle().await;
    let before = edges(&life);
    life.delete(PROJECT).await;
    life.settle().await;
    let waits = "; suspended: nothing is removed from clusters until spec.suspend is unset";
    let (_, reason, message) = life.rig.ready(PROJECT);
    assert_eq!(reason, "Terminating");
    assert!(message.starts_with("deletion waits for ") && message.ends_with(waits), "{message}");
    life.delete(&format!("{TENANT}/{SHOP}")).await;
    life.settle().await;
    assert!(life.rig.ready(PROJECT).2.ends_with(waits), "{}", life.rig.ready(PROJECT).2);
    assert_eq!(edges(&life), before);
    life.rig.hub.merge(PROJECT, &json!({"spec": {"suspend": null}})).await.unwrap();
    life.settle().await;
    assert_eq!(life.rig.hub.object(PROJECT), None);
    for edge in EDGES {
        assert_eq!(life.names_on(edge), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_logical_cloud_deleted_in_a_suspended_project_waits_with_all_it_has() {
    let path = format!("{TENANT}/logicalclouds/default");
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    // Without one that would be made again.
    life.put(&project(&json!({"suspend": true, "logicalCloud": null})));
    life.settle().await;
    let before = edges(&life);
    life.delete(&path).await;
    life.settle().await;
    assert_eq!(edges(&life), before);
    let (_, reason, message) = life.rig.ready(&path);
    assert_eq!(reason, "Suspended");
    let waits = "2 clusters still to be left: acme/a; suspended: nothing is removed until spec.suspend of Project team-a is unset";
    assert_eq!(message, waits);
    life.put(&project(&json!({"logicalCloud": null})));
    life.settle().await;
    assert_eq!(life.rig.hub.object(&path), None);
    for edge in EDGES {
        assert_eq!(life.names_on(edge), Vec::<String>::new());
    }
}
