//! A suspended deployment as a whole: edits wait, nothing is written to an edge, and it goes on where it was.

use serde_json::{Value, json};

use super::life::*;
use super::shop::{TENANT, composite_app, deployment, objects, values};
use crate::api::{ApiServerExt as _, Method};
use crate::memory::{MemoryServer, Seen};

pub(super) const SHOP: &str = "deploymentintentgroups/shop";

pub(super) async fn installed() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life
}

pub(super) fn suspended(tier: &str) -> Value {
    let mut dig = deployment(tier);
    dig["spec"]["suspend"] = json!(true);
    dig
}

pub(super) fn edges(life: &Life) -> Vec<std::collections::BTreeMap<String, Value>> {
    life.edges.values().map(versions).collect()
}

pub(super) fn page(life: &Life, edge: &str) -> Value {
    life.on(edge)["configmaps./team-a/page"]["data"]["text"].clone()
}

fn reconciling(life: &Life) -> bool {
    life.says("Reconciling").0 == "True"
}

#[tokio::test(start_paused = true)]
async fn a_suspended_deployment_stays_ready_and_says_so() {
    let mut life = installed().await;
    let before = edges(&life);
    life.put(&suspended("edge"));
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Suspended"));
    assert_eq!(
        message,
        "2 of 2 clusters ready; suspended: nothing is written to clusters until spec.suspend is unset"
    );
    assert_eq!((&life.dig()["status"]["state"], reconciling(&life)), (&json!("Instantiated"), false));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Ready");
    assert_eq!(before, edges(&life), "neither costs a write");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_suspended_deployment_is_pending_until_it_is_resumed() {
    let mut life = installed().await;
    life.put(&suspended("edge"));
    life.settle().await;
    let before = edges(&life);
    for (number, color) in ["blue", "green"].into_iter().enumerate() {
        life.put(&values(color));
        if number == 1 {
            life.put(&composite_app("1.1.0"));
        }
        life.settle().await;
        life.restart().await;
        life.settle().await;
        let status = life.dig()["status"].clone();
        let pending = &status["pending"];
        assert_eq!(
            (&pending["revision"], &pending["requires"]),
            (&json!(2), &json!("Nothing")),
            "{status:#}"
        );
        assert!(pending["summary"].as_str().unwrap().starts_with("web on 2 clusters: "), "{pending}");
        assert_eq!((&status["revision"], &status["state"]), (&json!(1), &json!("Instantiated")));
        assert_eq!((life.says("Ready").0, life.says("Ready").1), ("True".into(), "Suspended".into()));
        assert!(reconciling(&life), "whoever applies and waits is not told that all is done");
    }
    assert_eq!(before, edges(&life));
    let names = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
    assert!(!names.contains(&"dig-shop-2".to_owned()), "an edit that waits is no revision: {names:?}");
    let digest = life.dig()["status"]["pending"]["digest"].clone();
    life.put(&deployment("edge"));
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["digest"]), (&json!(2), &digest), "what was pending came");
    assert_eq!((&status["pending"], &status["state"]), (&Value::Null, &json!("Updated")));
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("green"), json!("green")));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_made_suspended_puts_nothing_anywhere() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.put(&suspended("edge"));
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"], "that is the logical cloud's");
    let status = life.dig()["status"].clone();
    assert_eq!(
        (&status["state"], &status["pending"]["revision"]),
        (&json!("Approved"), &json!(1)),
        "{status:#}"
    );
    assert_eq!((life.says("Ready").0, life.says("Ready").1), ("False".into(), "Suspended".into()));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}

#[tokio::test(start_paused = true)]
async fn a_refused_edit_of_a_suspended_deployment_is_refused() {
    let mut life = installed().await;
    life.put(&suspended("nowhere"));
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoClusterMatches"));
    assert!(
        message.contains("the last change is refused: ") && message.contains("; suspended: "),
        "{message}"
    );
}

/// Suspends the deployment on the hub the moment an edge gets this write of one of its objects; the watch shows it at once.
fn suspend_at_write(life: &Life, edge: &str, write: u64) {
    let count = std::sync::atomic::AtomicU64::new(0);
    let stop = life.suspension();
    life.edges[edge].faults(Some(std::sync::Arc::new(move |request, _| {
        let number =
            count.fetch_add(u64::from(request.method != Method::Get), std::sync::atomic::Ordering::SeqCst);
        if request.method != Method::Get && number + 1 == write {
            stop.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        None
    })));
}

/// Writes of an edge since the last look.
fn writes(life: &Life, edge: &str) -> Vec<Seen> {
    life.edges[edge].writes()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_suspended_in_the_middle_of_an_update_goes_on_when_resumed() {
    let mut life = installed().await;
    life.edges["a"].take_seen();
    suspend_at_write(&life, "a", 1);
    life.put(&composite_app("1.1.0"));
    life.put(&values("blue"));
    let stopped = life.suspension();
    for _ in 0..20 {
        if !stopped.load(std::sync::atomic::Ordering::SeqCst) {
            life.next().await;
        }
    }
    life.put(&suspended("edge"));
    life.next().await;
    assert_eq!(writes(&life, "a").len(), 1, "after that one write there is none");
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!(status["state"], "InstantiateStopped", "{status:#}");
    assert_eq!((life.says("Ready").0, life.says("Ready").1), ("False".into(), "Suspended".into()));
    assert!(reconciling(&life) && life.says("Stalled").0.is_empty());
    let before = edges(&life);
    life.restart().await;
    life.settle().await;
    assert_eq!(before, edges(&life), "another process leaves it alone, too");
    // A second edit takes the place of what was under way.
    life.put(&values("green"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["pending"]["revision"], 3, "{:#}", life.dig());
    assert_eq!(before, edges(&life));
    life.resume();
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("green"), json!("green")));
    assert!(!life.names_on("a").iter().any(|name| name.ends_with("/old")));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_deleted_while_suspended_waits_with_all_it_has() {
    let mut life = installed().await;
    life.put(&suspended("edge"));
    life.settle().await;
    let before = edges(&life);
    life.delete(&format!("{TENANT}/{SHOP}")).await;
    life.settle().await;
    life.restart().await;
    life.settle().await;
    assert_eq!(before, edges(&life));
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Suspended"));
    assert_eq!(
        message,
        "2 clusters still to be cleaned; suspended: nothing is removed until spec.suspend is unset"
    );
    assert_eq!(life.dig()["status"]["state"], "TerminateStopped");
    // A spec may be edited while its object is being deleted.
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_deployment_that_has_nothing_anywhere_can_be_deleted() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.put(&suspended("edge"));
    life.settle().await;
    life.delete(&format!("{TENANT}/{SHOP}")).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_others_delete_while_it_is_suspended_comes_back_when_resumed() {
    let mut life = installed().await;
    life.put(&suspended("edge"));
    life.settle().await;
    for object in life.edges["a"].objects().into_values() {
        if object["kind"] == "ConfigMap" && object["metadata"]["namespace"] == "team-a" {
            let name = object["metadata"]["name"].as_str().unwrap();
            life.edges["a"].remove(&format!("/api/v1/namespaces/team-a/configmaps/{name}"));
        }
    }
    life.edges["a"].take_seen();
    life.settle().await;
    assert_eq!(life.dig()["status"]["drift"]["reported"], 2, "{:#}", life.dig());
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(page(&life, "a"), "red");
    assert_eq!(life.says("Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_replaced_meanwhile_gets_all_once_confirmed_and_resumed() {
    for confirmed_first in [true, false] {
        let mut life = installed().await;
        life.put(&suspended("edge"));
        life.settle().await;
        let fresh = MemoryServer::new();
        life.rig.attach("a", &fresh);
        life.edges.insert("a", fresh);
        life.rig.returns("a", "uid-new");
        life.settle().await;
        let (status, reason, message) = life.says("Ready");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "Suspended"), "{message}");
        assert!(message.starts_with("1 of 2 clusters ready; acme/a: ClusterReplaced: "), "{message}");
        for confirms in [confirmed_first, !confirmed_first] {
            assert!(!life.names_on("a").iter().any(|name| name.ends_with("/page")), "not before both");
            if confirms {
                let confirm = json!({"metadata": {"annotations": {"emco.io/confirm": "uid-new"}}});
                let cluster = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
                life.rig.hub.merge(cluster, &confirm).await.unwrap();
            } else {
                life.put(&deployment("edge"));
            }
            life.settle().await;
        }
        assert_eq!(page(&life, "a"), "red");
        assert_eq!(life.says("Ready").1, "Ready", "{:#}", life.dig());
    }
}
