//! Removals that wait: those beyond the budget of the project, and deletions that it wants confirmed.

use std::time::Duration;

use emco_engine::marks;
use serde_json::{Value, json};

use super::approvals::{decide, edges, page, project};
use super::life::*;
use super::rig::secret;
use super::shop::{TENANT, deployment, labelled, objects, values};
use super::waited::told;
use crate::api::ApiServerExt as _;
use crate::memory::MemoryServer;

/// What confirms the deletion of what runs.
pub(super) fn confirmation(dig: &Value, digest: &str) -> String {
    let since: k8s_openapi::jiff::Timestamp =
        dig["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    format!("{digest}@{}", since.as_second())
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_began_goes_on_whatever_else_is_confirmed() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"confirmDeletion": "Always"})));
    life.settle().await;
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    let digest = life.dig()["status"]["digest"].as_str().unwrap().to_owned();
    life.rig.fails("b", "Timeout");
    life.delete(&path).await;
    life.settle().await;
    let confirm = |text: &str| json!({"metadata": {"annotations": {"emco.io/confirm": text}}});
    let text = confirmation(&life.dig(), &digest);
    life.rig.hub.merge(&path, &confirm(&text)).await.unwrap();
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminating");
    life.rig.hub.merge(&path, &confirm("lost-0123456789")).await.unwrap();
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminating", "the annotation has another text by now");
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_its_confirmation_where_the_project_wants_one() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"confirmDeletion": "Always"})));
    life.settle().await;
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    let digest = life.dig()["status"]["digest"].as_str().unwrap().to_owned();
    let before = edges(&life);
    life.delete(&path).await;
    life.settle().await;
    life.restart().await;
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "RemovalNeedsConfirmation"));
    let text = confirmation(&life.dig(), &digest);
    let command = format!("kubectl annotate dig shop -n team-a --overwrite emco.io/confirm={text}");
    assert!(message.ends_with(&format!("and nothing is removed before: {command}")), "{message}");
    let told = told(&life, "RemovalNeedsConfirmation");
    assert!(told.len() == 1 && told[0].0 == "Warning" && told[0].1.ends_with(&command), "{told:?}");
    assert_eq!((&life.dig()["status"]["state"], edges(&life)), (&json!("TerminateStopped"), before));
    let confirm = |text: &str| json!({"metadata": {"annotations": {"emco.io/confirm": text}}});
    for other in ["sha256:0", &digest, &format!("{digest}@1")] {
        life.rig.hub.merge(&path, &confirm(other)).await.unwrap();
        life.settle().await;
        assert!(!life.dig().is_null(), "{other} is of something else, or of another deletion");
    }
    life.rig.hub.merge(&path, &confirm(&text)).await.unwrap();
    life.settle().await;
    assert_eq!((life.dig(), life.names_on("a")), (Value::Null, vec!["namespaces.//team-a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn what_is_terminated_by_an_edit_waits_for_an_approval() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"confirmDeletion": "Always"})));
    life.settle().await;
    let before = edges(&life);
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    life.restart().await;
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!((&status["state"], edges(&life)), (&json!("TerminateStopped"), before), "{status:#}");
    assert_eq!(
        (life.says("Ready").1, life.says("Approved").1),
        ("AwaitingApproval".into(), "AwaitingApproval".into())
    );
    assert_eq!(
        (&status["pending"]["revision"], &status["pending"]["requires"]),
        (&json!(0), &json!("Approval"))
    );
    let told = told(&life, "AwaitingApproval");
    assert!(told.len() == 1 && told[0].1.starts_with("its end waits: approve digest "), "{told:?}");
    decide(&mut life, "end", "Approved").await;
    assert_eq!((&life.dig()["status"]["state"], life.names_on("a").len()), (&json!("Terminated"), 1));
    assert_eq!(life.says("Approved").1, "ApprovedBy");
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_waits_is_no_way_around_the_confirmation_of_a_deletion() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"confirmDeletion": "Always"})));
    life.settle().await;
    let before = edges(&life);
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!((life.says("Ready").1, edges(&life)), ("RemovalNeedsConfirmation".into(), before));
    assert_eq!(told(&life, "RemovalNeedsConfirmation").len(), 1);
    assert_eq!(life.says("Approved").0, "", "its end is no question any more");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_taken_back_before_it_is_approved_changes_nothing() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"approval": {"mode": "Manual", "scope": "Plan"}})));
    life.settle().await;
    decide(&mut life, "first", "Approved").await;
    let before = edges(&life);
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    assert_eq!(life.says("Ready").1, "AwaitingApproval");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((life.says("Ready").1, edges(&life)), ("Ready".into(), before));
    assert_eq!(life.dig()["status"]["pending"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_never_ran_is_deleted_without_a_confirmation() {
    let mut life = Life::with(&objects());
    let policy = json!({"confirmDeletion": "Always", "approval": {"mode": "Manual", "scope": "Inputs"}});
    life.put(&project(&policy));
    life.settle().await;
    assert_eq!(life.dig()["status"]["state"], "Created");
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

/// Everything on the hub says that it was made on 1 January 2026: from the clock's start back to an hour later.
const TO_THE_FIRST_HOUR: Duration = Duration::from_secs(1_795_000_000 - 1_767_225_600 - 3600);

/// The shop on four clusters.
async fn on_four() -> Life {
    let names = ["a", "b", "c", "d"];
    let mut life = Life::joined(names.into_iter().map(|name| (name, MemoryServer::new())).collect());
    for object in objects() {
        life.put(&object);
    }
    for name in ["c", "d"] {
        life.put(&secret(name));
        life.put(&labelled(name, &json!({"tier": "edge"})));
    }
    life.settle().await;
    life
}

/// All clusters but `a` are no edges any more.
fn leave(life: &Life) {
    life.put(&labelled("b", &json!({"disk": "fast"})));
    for name in ["c", "d"] {
        life.put(&labelled(name, &json!({})));
    }
}

fn has_page(life: &Life, edge: &str) -> bool {
    life.names_on(edge).iter().any(|name| name.ends_with("/page"))
}

#[tokio::test(start_paused = true)]
async fn a_removal_beyond_the_budget_waits_in_automatic_projects_too() {
    let mut life = on_four().await;
    assert_eq!(life.says("Approved").1, "Automatic");
    leave(&life);
    life.settle().await;
    let (status, reason, message) = life.says("Approved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "RemovalNeedsConfirmation"));
    let why = "app web leaves 3 of the 4 clusters it had within 24 hours: more than the project's removalBudget 50% (at least 2); approve digest ";
    assert!(message.starts_with(why), "{message}");
    assert_eq!(life.dig()["status"]["pending"]["requires"], "RemovalConfirmation");
    assert_eq!((page(&life, "c"), life.says("Ready").0), (json!("red"), "True".into()));
    let events = life.rig.hub.objects().into_values();
    assert_eq!(events.filter(|o| o["kind"] == "Event" && o["reason"] == "RemovalBudget").count(), 1);
    decide(&mut life, "yes", "Approved").await;
    assert_eq!((has_page(&life, "c"), page(&life, "a")), (false, json!("red")));
    // What is removed is removed: the next edit waits for nothing.
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Approved").1), (json!("blue"), "Automatic".into()));
}

#[tokio::test(start_paused = true)]
async fn removals_in_small_steps_count_as_one_until_a_plan_is_confirmed() {
    let mut life = on_four().await;
    life.rig.clock.back(TO_THE_FIRST_HOUR);
    life.put(&labelled("c", &json!({})));
    life.settle().await;
    life.put(&labelled("d", &json!({})));
    life.settle().await;
    assert_eq!((has_page(&life, "d"), life.says("Approved").1), (false, "Automatic".into()));
    life.put(&labelled("b", &json!({"disk": "fast"})));
    life.settle().await;
    assert_eq!((has_page(&life, "b"), life.says("Approved").1), (true, "RemovalNeedsConfirmation".into()));
    decide(&mut life, "yes", "Approved").await;
    assert!(!has_page(&life, "b"));
    for name in ["b", "c"] {
        life.put(&labelled(name, &json!({"tier": "edge", "disk": "fast"})));
    }
    // Another digest than what was approved.
    life.put(&values("blue"));
    life.settle().await;
    leave(&life);
    life.settle().await;
    assert_eq!((has_page(&life, "b"), life.says("Approved").1), (false, "Automatic".into()), "2 of 3");
}

#[tokio::test(start_paused = true)]
async fn a_pin_beyond_the_budget_waits_in_automatic_projects_too() {
    let mut life = on_four().await;
    life.rig.clock.back(TO_THE_FIRST_HOUR);
    leave(&life);
    life.settle().await;
    decide(&mut life, "narrow", "Approved").await;
    assert!(!has_page(&life, "c"), "revision 2 is on one cluster");
    for name in ["b", "c", "d"] {
        life.put(&labelled(name, &json!({"tier": "edge", "disk": "fast"})));
    }
    life.settle().await;
    assert_eq!((has_page(&life, "c"), &life.dig()["status"]["revision"]), (true, &json!(3)));
    let mut pinned = deployment("edge");
    pinned["spec"]["revision"] = json!(2);
    life.put(&pinned);
    life.settle().await;
    assert_eq!((has_page(&life, "c"), life.says("Approved").1), (true, "RemovalNeedsConfirmation".into()));
    assert_eq!(life.says("Pinned").1, "RemovalNeedsConfirmation");
    decide(&mut life, "back", "Approved").await;
    assert_eq!((has_page(&life, "c"), life.says("Ready").1), (false, "Pinned".into()));
}

#[tokio::test(start_paused = true)]
async fn what_a_finalizer_holds_is_named_in_the_status_of_a_deployment() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let page = "/api/v1/namespaces/team-a/configmaps/page";
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    life.edges["a"].merge(page, &held).await.unwrap();
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    let said = "1 cluster still to be cleaned; acme/a: Terminating ConfigMap/team-a/page: it is being deleted since 2026-01-01T00:00:01Z and \
                waits for its finalizers: example.com/hold";
    assert_eq!((reason.as_str(), message.as_str()), ("Terminating", said));
    life.edges["a"].merge(page, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminated");
}

#[tokio::test(start_paused = true)]
async fn objects_that_lost_their_label_are_named_once_nothing_else_is_left() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.end().await;
    let page = "/api/v1/namespaces/team-a/configmaps/page";
    life.edges["a"].merge(page, &json!({"metadata": {"labels": {"emco.io/owner": null}}})).await.unwrap();
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.restart().await;
    life.settle().await;
    let named = "not removed, for others took the label emco.io/owner off: acme/a: ConfigMap/team-a/page";
    let said = format!("nothing of this deployment is left on any cluster; {named}");
    assert_eq!(life.says("Ready"), ("False".into(), "Terminated".into(), said));
    assert!(life.edges["a"].object(page).is_some());
    life.restart().await;
    life.settle().await;
    assert!(life.says("Ready").2.ends_with(named), "it is stored");
    // What is placed again is taken again, and nothing is said of it.
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["notRemoved"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_a_chart_keeps_is_named_at_the_end() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let page = "/api/v1/namespaces/team-a/configmaps/page";
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    life.edges["a"].merge(page, &keep).await.unwrap();
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    let named =
        "left there, without its owner: acme/a: ConfigMap/team-a/page (helm.sh/resource-policy: keep)";
    assert!(life.says("Ready").2.ends_with(named), "{:?}", life.says("Ready"));
    assert_eq!(marks::owner_of(&life.edges["a"].object(page).unwrap()), None);
}
