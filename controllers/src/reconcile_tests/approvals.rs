//! Plans that wait for an approval: nothing is written to an edge before, and what runs goes on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects, values};
use crate::api::ApiServerExt as _;
use crate::memory::MemoryServer;
use crate::object::context::Outcome;

pub(super) fn project(spec: &Value) -> Value {
    let mut all = json!({"logicalCloud": {"level": "Admin"}});
    if let (Some(all), Some(more)) = (all.as_object_mut(), spec.as_object()) {
        all.extend(more.clone());
    }
    emco("Project", None, "team-a", &all)
}

pub(super) fn manual(scope: &str) -> Value {
    project(&json!({"approval": {"mode": "Manual", "scope": scope}}))
}

pub(super) fn approval(name: &str, group: &str, digest: &str, decision: &str) -> Value {
    let spec = json!({
        "deploymentIntentGroupRef": {"name": group}, "digest": digest, "decision": decision, "approvedBy": "ann",
    });
    emco("DeploymentApproval", Some("team-a"), name, &spec)
}

/// The shop in a project whose plans wait.
pub(super) async fn waiting(scope: &str) -> Life {
    let mut life = Life::with(&objects());
    life.put(&manual(scope));
    life.settle().await;
    life
}

pub(super) fn pending(life: &Life) -> String {
    let dig = life.dig();
    dig["status"]["pending"]["digest"].as_str().unwrap_or_else(|| panic!("{dig:#}")).to_owned()
}

pub(super) fn short(digest: &str) -> &str {
    &digest["sha256:".len()..][..12]
}

pub(super) async fn decide(life: &mut Life, name: &str, decision: &str) {
    life.put(&approval(name, "shop", &pending(life), decision));
    life.settle().await;
}

/// State and message of an approval.
fn became(life: &Life, name: &str) -> (String, String) {
    let path = format!("{TENANT}/deploymentapprovals/{name}");
    let state = life.rig.hub.object(&path).unwrap()["status"]["state"].clone();
    (state.as_str().unwrap_or_default().to_owned(), life.rig.ready(&path).2)
}

pub(super) fn page(life: &Life, edge: &str) -> Value {
    life.on(edge)["configmaps./team-a/page"]["data"]["text"].clone()
}

pub(super) fn edges(life: &Life) -> Vec<BTreeMap<String, Value>> {
    life.edges.values().map(versions).collect()
}

#[tokio::test(start_paused = true)]
async fn a_first_plan_waits_in_created_until_it_is_approved() {
    let mut life = waiting("Plan").await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"], "that is the logical cloud's");
    let digest = pending(&life);
    let command = format!("approve digest {}: kubectl emco approve dig/shop -n team-a", short(&digest));
    assert_eq!(life.says("Approved"), ("False".into(), "AwaitingApproval".into(), command.clone()));
    let waits = format!("revision 1 waits: {command}");
    assert_eq!(life.says("Ready"), ("False".into(), "AwaitingApproval".into(), waits));
    let status = life.dig()["status"].clone();
    assert_eq!((&status["state"], &status["revision"]), (&json!("Created"), &Value::Null));
    assert_eq!(status["pending"]["requires"], "Approval");
    decide(&mut life, "yes", "Approved").await;
    let status = life.dig()["status"].clone();
    assert_eq!((&status["state"], &status["digest"]), (&json!("Instantiated"), &json!(digest)));
    assert_eq!(status["approval"]["name"], "yes", "{status:#}");
    assert_eq!(life.says("Approved"), ("True".into(), "ApprovedBy".into(), "yes by ann".into()));
    assert_eq!(became(&life, "yes"), ("InEffect".into(), "revision 1".into()));
}

#[tokio::test(start_paused = true)]
async fn an_edit_waits_beside_what_runs_and_survives_a_restart() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    let before = edges(&life);
    life.put(&values("blue"));
    life.settle().await;
    let digest = pending(&life);
    life.restart().await;
    life.settle().await;
    assert_eq!((pending(&life), edges(&life)), (digest, before));
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Ready"));
    assert!(message.starts_with("2 of 2 clusters ready; revision 2 waits: approve digest "), "{message}");
    assert_eq!(
        (life.says("Reconciling").1, life.says("Stalled").0),
        ("AwaitingApproval".into(), String::new())
    );
    decide(&mut life, "second", "Approved").await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("blue"), json!("blue")));
    assert_eq!(life.dig()["status"]["pending"], Value::Null);
    assert_eq!(became(&life, "first").0, "Stale");
    assert_eq!(became(&life, "second"), ("InEffect".into(), "revision 2".into()));
}

#[tokio::test(start_paused = true)]
async fn any_rejection_of_a_digest_wins_until_it_is_deleted() {
    for order in [["no", "yes"], ["yes", "no"]] {
        let mut life = waiting("Plan").await;
        decide(&mut life, "first", "Approved").await;
        life.put(&values("blue"));
        life.settle().await;
        let digest = pending(&life);
        for name in order {
            let decision = if name == "no" { "Rejected" } else { "Approved" };
            life.put(&approval(name, "shop", &digest, decision));
        }
        life.settle().await;
        let (status, reason, message) = life.says("Ready");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "Rejected"));
        let why = "revision 1 runs on 2 of 2 clusters; the last change is refused: DeploymentApproval no by ann rejects digest ";
        assert!(message.starts_with(why), "{message}");
        assert_eq!((life.says("Stalled").0, life.says("Approved").1), ("True".into(), "Rejected".into()));
        assert_eq!((became(&life, "no").0, became(&life, "yes").0), ("InEffect".into(), "Superseded".into()));
        assert_eq!(page(&life, "a"), "red");
        life.delete(&format!("{TENANT}/deploymentapprovals/no")).await;
        life.settle().await;
        assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("blue"), "Ready".into()));
        rests(&life);
    }
}

/// Nothing waits, and nothing is refused.
fn rests(life: &Life) {
    assert_eq!(life.dig()["status"]["pending"], Value::Null);
    assert_eq!((life.says("Stalled").0, life.says("Reconciling").0), (String::new(), String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_that_the_watch_does_not_show_yet_counts() {
    let mut life = waiting("Plan").await;
    let digest = pending(&life);
    life.put(&approval("yes", "shop", &digest, "Approved"));
    life.rig.see();
    life.put(&approval("no", "shop", &digest, "Rejected"));
    life.rig.hub.take_seen();
    let outcome = crate::reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(matches!(outcome, Outcome::After(_)), "{outcome:?}");
    assert!(life.rig.writes().is_empty(), "not even a revision is stored");
    life.settle().await;
    assert_eq!(life.says("Approved").1, "Rejected");
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_comes_before_its_plan_is_waited_for_by_nobody() {
    let mut life = waiting("Inputs").await;
    decide(&mut life, "first", "Approved").await;
    life.put(&values("blue"));
    life.settle().await;
    let digest = pending(&life);
    life.put(&values("red"));
    life.settle().await;
    rests(&life);
    life.put(&approval("early", "shop", &digest, "Approved"));
    life.settle().await;
    let words = "no plan of DeploymentIntentGroup shop has this digest yet";
    assert_eq!(became(&life, "early"), ("Waiting".into(), words.into()));
    assert_eq!(life.says("Ready").1, "Ready");
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!((page(&life, "a"), became(&life, "early").0), (json!("blue"), "InEffect".into()));
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_another_digest_or_group_lets_nothing_pass() {
    let mut life = waiting("Plan").await;
    let digest = pending(&life);
    life.put(&approval("other-group", "pos", &digest, "Approved"));
    let zeros = format!("sha256:{}", "0".repeat(64));
    life.put(&approval("other-digest", "shop", &zeros, "Approved"));
    life.settle().await;
    let (status, reason, message) = life.says("Approved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "StaleApproval"));
    assert!(
        message.starts_with("DeploymentApproval other-digest is of digest 000000000000, which"),
        "{message}"
    );
    let (state, message) = became(&life, "other-digest");
    assert_eq!(state, "Waiting");
    assert!(message.ends_with(&format!("; the plan that waits has digest {}", short(&digest))), "{message}");
    let (state, message) = became(&life, "other-group");
    assert_eq!(state, "Waiting");
    assert!(
        message.starts_with("the digest is of DeploymentIntentGroup shop, and this approval names pos: ")
    );
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
}

#[tokio::test(start_paused = true)]
async fn an_approved_plan_that_moved_on_waits_again() {
    let mut life = waiting("Plan").await;
    let mut dig = deployment("edge");
    dig["spec"]["suspend"] = json!(true);
    life.put(&dig);
    life.settle().await;
    decide(&mut life, "yes", "Approved").await;
    assert_eq!(life.dig()["status"]["pending"]["requires"], "Nothing", "it is suspended, and approved");
    assert_eq!(became(&life, "yes").0, "InEffect");
    life.put(&values("blue"));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((life.says("Approved").1, became(&life, "yes").0), ("StaleApproval".into(), "Stale".into()));
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_matches_joins_by_the_inputs_and_waits_by_the_plan() {
    for (scope, joins) in [("Inputs", true), ("Plan", false)] {
        let mut life = Life::with(&objects());
        life.put(&manual(scope));
        life.put(&labelled("b", &json!({"disk": "fast"})));
        life.settle().await;
        decide(&mut life, "first", "Approved").await;
        life.put(&labelled("b", &json!({"tier": "edge", "disk": "fast"})));
        life.settle().await;
        let there = life.names_on("b").iter().any(|name| name.ends_with("/page"));
        assert_eq!((there, life.dig()["status"]["pending"].is_null()), (joins, joins), "{scope}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_terminated_comes_back_by_the_approval_that_is_there() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "yes", "Approved").await;
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    decide(&mut life, "end", "Approved").await;
    life.delete(&format!("{TENANT}/deploymentapprovals/yes")).await;
    life.put(&deployment("edge"));
    life.settle().await;
    // The approval of its end is none of its return.
    assert_eq!((life.says("Approved").1, life.names_on("a").len()), ("StaleApproval".into(), 1));
    decide(&mut life, "again", "Approved").await;
    assert_eq!((life.says("Ready").1, page(&life, "a")), ("Ready".into(), json!("red")));
}

/// The shop with revision 1, whose page is red, and revision 2, whose page is blue: both approved.
async fn two_approved() -> Life {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    life.put(&values("blue"));
    life.settle().await;
    decide(&mut life, "second", "Approved").await;
    assert_eq!((page(&life, "a"), &life.dig()["status"]["revision"]), (json!("blue"), &json!(2)));
    life
}

fn pinned(revision: i64) -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["revision"] = json!(revision);
    dig
}

#[tokio::test(start_paused = true)]
async fn a_pin_waits_for_an_approval_of_its_own() {
    let mut life = two_approved().await;
    let before = edges(&life);
    life.put(&pinned(1));
    life.settle().await;
    life.restart().await;
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], edges(&life)), (&json!(2), before), "{status:#}");
    assert_eq!(
        (&status["pending"]["revision"], &status["pending"]["requires"]),
        (&json!(1), &json!("Approval"))
    );
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("True", "Ready"), "{message}");
    assert!(message.contains("; revision 1 waits: approve digest "), "{message}");
    assert_eq!((life.says("Pinned").0, life.says("Pinned").1), ("False".into(), "AwaitingApproval".into()));
    decide(&mut life, "back", "Approved").await;
    assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("red"), "Pinned".into()));
    assert_eq!(life.says("Approved"), ("True".into(), "ApprovedBy".into(), "back by ann".into()));
    assert_eq!(became(&life, "back"), ("InEffect".into(), "revision 1".into()));
    life.restart().await;
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Pinned").0), (json!("red"), "True".into()));
}

#[tokio::test(start_paused = true)]
async fn a_pin_that_is_rejected_is_refused_and_what_runs_stays() {
    let mut life = two_approved().await;
    life.put(&pinned(1));
    life.settle().await;
    decide(&mut life, "no", "Rejected").await;
    assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("blue"), "Rejected".into()));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("blue"), "Ready".into()));
}

#[tokio::test(start_paused = true)]
async fn unpinning_brings_back_what_ran_beside_an_edit_that_waits() {
    let mut life = two_approved().await;
    life.put(&pinned(1));
    life.settle().await;
    decide(&mut life, "back", "Approved").await;
    life.put(&values("green"));
    life.settle().await;
    assert_eq!(page(&life, "a"), "red");
    life.delete(&format!("{TENANT}/deploymentapprovals/second")).await;
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("blue"), json!("blue")));
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["pending"]["revision"]), (&json!(2), &json!(3)), "{status:#}");
    assert_eq!(life.says("Approved").0, "False");
    life.restart().await;
    life.settle().await;
    assert_eq!(page(&life, "a"), "blue");
}

#[tokio::test(start_paused = true)]
async fn unpinning_without_an_edit_needs_no_approval() {
    let mut life = two_approved().await;
    life.put(&pinned(1));
    life.settle().await;
    decide(&mut life, "back", "Approved").await;
    life.delete(&format!("{TENANT}/deploymentapprovals/second")).await;
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("blue"), "Ready".into()));
    assert_eq!(life.dig()["status"]["pending"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_replaced_meanwhile_gets_what_runs_beside_a_plan_that_waits() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    life.put(&values("blue"));
    life.settle().await;
    let fresh = MemoryServer::new();
    life.rig.attach("a", &fresh);
    life.edges.insert("a", fresh);
    life.rig.returns("a", "uid-new");
    life.settle().await;
    let confirm = json!({"metadata": {"annotations": {"emco.io/confirm": "uid-new"}}});
    let cluster = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
    life.rig.hub.merge(cluster, &confirm).await.unwrap();
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Approved").1), (json!("red"), "AwaitingApproval".into()));
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}
