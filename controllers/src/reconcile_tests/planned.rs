//! Deployments that are only planned: nothing is put anywhere, what runs goes on, and clusters are asked what they would refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::names::label;
use serde_json::{Value, json};

use super::approvals::{decide, edges, page, waiting};
use super::life::*;
use super::lost::packs_of;
use super::plans::{CONFIG_MAP, details, edit, is_clean, pending, secret, with};
use super::shop::{TENANT, deployment, objects, values};
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::Fault;
use crate::object::context::Outcome;
use crate::reconcile;

pub(super) fn planned() -> Value {
    with("desiredState", &json!("Planned"))
}

#[tokio::test(start_paused = true)]
async fn what_was_terminated_stays_gone_while_it_is_only_planned() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.put(&with("desiredState", &json!("Terminated")));
    life.settle().await;
    let before = edges(&life);
    life.put(&planned());
    life.settle().await;
    life.restart().await;
    life.settle().await;
    assert_eq!(edges(&life), before);
    let waits = pending(&life);
    assert_eq!(waits["clusters"], json!({"added": 3, "changed": 0, "removed": 0}), "{waits:#}");
    assert_eq!(waits["apps"][0]["gained"], json!(["acme/a", "acme/b"]));
    assert_eq!((life.says("Ready").0, life.says("Ready").1), ("False".into(), "Planned".into()));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), pending(&life)), (json!("red"), Value::Null));
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_and_not_targeted_is_put_nowhere_once_only_planned() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    life.hub_faults(Arc::new(|request, _| {
        let targets = request.method == Method::Post && request.path.as_str().ends_with("/syncshards");
        targets.then(|| Fault::Refuse(lost()))
    }));
    life.put(&deployment("edge"));
    for _ in 0..5 {
        life.rig.round().await;
    }
    let stored = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
    assert!(stored.contains(&"dig-shop-1".to_owned()), "{stored:?}");
    life.put(&planned());
    life.restart().await;
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"], "that is the logical cloud's");
    assert_eq!(pending(&life)["apps"][0]["gained"], json!(["acme/a", "acme/b"]));
}

/// Loses packs of what runs that revision 1 does not name, under this deployment, and has the next process look.
async fn lose_packs(life: &mut Life, dig: &Value, revision: i64) {
    life.put(dig);
    life.settle().await;
    let name = format!("dig-shop-{revision}");
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/{name}")).unwrap();
    let assignment = context["spec"]["assignment"]["pack"].as_str().unwrap();
    let first = if revision == 1 { Vec::new() } else { packs_of(life, "dig-shop-1") };
    let mut packs = packs_of(life, &name);
    packs.retain(|path| !path.ends_with(assignment) && !first.contains(path));
    assert!(!packs.is_empty());
    for path in &packs {
        life.delete(path).await;
    }
    life.restart().await;
    life.settle().await;
    for path in packs {
        assert!(life.rig.hub.object(&path).is_some(), "{path}");
    }
    assert_eq!(life.dig()["status"]["revision"], revision);
}

#[tokio::test(start_paused = true)]
async fn lost_packs_of_what_runs_are_made_anew_beside_a_plan() {
    let mut life = Life::with(&objects());
    life.settle().await;
    lose_packs(&mut life, &planned(), 1).await;
    assert_eq!(pending(&life), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn lost_packs_are_made_anew_beside_a_rollback_that_is_only_planned() {
    let mut life = Life::with(&objects());
    life.settle().await;
    edit(&life);
    life.settle().await;
    let mut dig = planned();
    dig["spec"]["revision"] = json!(1);
    lose_packs(&mut life, &dig, 2).await;
    assert_eq!(pending(&life)["revision"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_only_planned_is_put_nowhere_until_it_is_instantiated() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.put(&planned());
    life.settle().await;
    life.restart().await;
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"], "that is the logical cloud's");
    let status = life.dig()["status"].clone();
    assert_eq!((&status["state"], &status["revision"]), (&json!("Approved"), &Value::Null));
    let waits = &status["pending"];
    assert_eq!((&waits["revision"], &waits["requires"]), (&json!(1), &json!("Nothing")), "{waits:#}");
    assert_eq!(waits["apps"][0]["gained"], json!(["acme/a", "acme/b"]));
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "Planned"));
    assert!(message.contains("then comes revision 1: web on 2 clusters: 2 clusters added"), "{message}");
    assert_eq!(life.says("Reconciling").0, "", "the plan that was asked for is there");
    let digest = waits["digest"].clone();
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((life.says("Ready").0, page(&life, "a")), ("True".into(), json!("red")));
    assert_eq!(life.dig()["status"]["digest"], digest, "what was planned came");
    assert!(is_clean(&life));
}

#[tokio::test(start_paused = true)]
async fn what_is_written_of_a_plan_goes_when_the_finalizer_was_removed() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.put(&planned());
    life.settle().await;
    life.collect().await;
    assert!(secret(&life).is_some(), "its deployment is there");
    let map = life.rig.hub.object(CONFIG_MAP).unwrap();
    let owner = &map["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], life.dig()["metadata"]["uid"], "the hub removes it with its owner: {owner}");
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    life.rig.hub.merge(&path, &json!({"metadata": {"finalizers": []}})).await.unwrap();
    life.delete(&path).await;
    assert!(life.dig().is_null());
    life.settle().await;
    life.collect().await;
    assert_eq!(secret(&life), None);
}

#[tokio::test(start_paused = true)]
async fn what_runs_stays_while_the_next_revision_is_only_planned() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let before = edges(&life);
    life.put(&planned());
    life.settle().await;
    assert_eq!((pending(&life), life.says("Ready").1), (Value::Null, "Ready".into()));
    edit(&life);
    life.settle().await;
    assert_eq!((pending(&life)["revision"].clone(), edges(&life)), (json!(2), before.clone()));
    assert_eq!((life.says("Ready").0, life.says("Reconciling").0), ("True".into(), String::new()));
    let names = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
    assert!(!names.contains(&"dig-shop-2".to_owned()), "a plan is no revision: {names:?}");
    // What others change is put right all the same.
    life.edges["a"].remove("/api/v1/namespaces/team-a/configmaps/page");
    life.settle().await;
    assert_eq!(page(&life, "a"), "red");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), pending(&life)), (json!("blue"), Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_is_only_planned_says_what_it_would_change() {
    let mut life = Life::with(&objects());
    life.settle().await;
    edit(&life);
    life.settle().await;
    let before = edges(&life);
    let mut dig = planned();
    dig["spec"]["revision"] = json!(1);
    life.put(&dig);
    life.settle().await;
    let waits = pending(&life);
    assert_eq!((&waits["revision"], &waits["resources"]["added"]), (&json!(1), &json!(2)), "{waits:#}");
    assert_eq!(waits["apps"][0]["hooks"], Value::Null, "the chart has no hook of a rollback");
    assert_eq!((life.says("Pinned").0, life.says("Pinned").1), ("False".into(), "Planned".into()));
    assert_eq!(edges(&life), before);
}

/// Has an edge refuse an object where it is asked about it, and counts what it is asked.
pub(super) fn refuse_page(life: &Life, edge: &str) -> Arc<AtomicU64> {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    life.edges[edge].faults(Some(Arc::new(move |request, _| {
        let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
        counted.fetch_add(u64::from(dry), Ordering::SeqCst);
        let refuses = dry && request.path.as_str().ends_with("/configmaps/page");
        refuses.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 422,
                reason: "Invalid".to_owned(),
                message: "data: no such page".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    asked
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_would_refuse_of_a_plan_is_said_and_asked_once() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let asked = refuse_page(&life, "a");
    let before = edges(&life);
    life.put(&planned());
    edit(&life);
    life.settle().await;
    let refused = json!(["acme/a: ConfigMap/team-a/page: Invalid: data: no such page"]);
    assert_eq!(pending(&life)["apps"][0]["refused"], refused, "{:#}", pending(&life));
    let answer = details(&life).apps[0].variants[0].dry_run.clone().unwrap();
    assert_eq!((answer.cluster.as_deref(), answer.asked, answer.refused.len()), (Some("acme/a"), 1, 1));
    let (map, times) = (life.rig.hub.object(CONFIG_MAP), asked.load(Ordering::SeqCst));
    assert!(times > 0 && edges(&life) == before, "nothing is written there");
    life.restart().await;
    let asked = refuse_page(&life, "a");
    life.settle().await;
    assert_eq!((life.rig.hub.object(CONFIG_MAP), asked.load(Ordering::SeqCst)), (map, 0));
    life.put(&values("green"));
    life.settle().await;
    let times = asked.load(Ordering::SeqCst);
    assert!(times > 0, "another plan is another question");
    let mut dig = planned();
    dig["metadata"]["annotations"] = json!({"emco.io/requestedAt": "now"});
    life.put(&dig);
    life.settle().await;
    assert_eq!(asked.load(Ordering::SeqCst), times + 1, "people want it asked again, once");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_refused_in_a_plan() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    let page = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "1"},
        "metadata": {"name": "page", "namespace": "team-a"}});
    life.edges["a"].put("somebody", &page);
    life.put(&planned());
    life.settle().await;
    let refused = pending(&life)["apps"][0]["refused"].clone();
    assert_eq!(refused.as_array().map(Vec::len), Some(1), "{refused}");
    assert!(
        refused[0].as_str().unwrap().starts_with("acme/a: ConfigMap/team-a/page: NotOurs: "),
        "{refused}"
    );
    let there = life.edges["a"].object("/api/v1/namespaces/team-a/configmaps/page").unwrap();
    assert_eq!(there["data"], json!({"mine": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_others_in_a_plan_is_judged_by_the_policy_of_conflicts() {
    for (policy, owner, refused) in [
        ("AdoptIfSame", None, "differs in data"),
        ("Force", None, ""),
        ("Force", Some("0"), "another deployment"),
    ] {
        let mut life = Life::with(&objects()[..objects().len() - 1]);
        life.settle().await;
        let mut page = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "mine"},
            "metadata": {"name": "page", "namespace": "team-a"}});
        if let Some(owner) = owner {
            page["metadata"]["labels"] = json!({(label::OWNER): owner.repeat(32)});
        }
        life.edges["a"].put("somebody", &page);
        let mut dig = planned();
        dig["spec"]["sync"] = json!({"conflicts": policy});
        life.put(&dig);
        life.settle().await;
        let said = pending(&life)["apps"][0]["refused"].clone();
        assert_eq!(said.is_null(), refused.is_empty(), "{policy} {owner:?}: {said}");
        assert!(said.to_string().contains(refused), "{policy} {owner:?}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_or_comes_by_itself_is_not_refused_in_a_plan() {
    for (code, reason, message) in [
        (400, "BadRequest", "admission webhook \"w.example.com\" does not support dry run"),
        (404, "NotFound", "namespaces \"team-a\" not found"),
    ] {
        let mut life = Life::with(&objects());
        life.settle().await;
        let error = ApiError::Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        life.edges["a"].faults(Some(Arc::new(move |request, _| {
            let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
            dry.then(|| Fault::Refuse(error.clone()))
        })));
        life.put(&planned());
        edit(&life);
        life.settle().await;
        assert_eq!(pending(&life)["apps"][0]["refused"], Value::Null, "{message}");
        let run = details(&life).apps[0].variants[0].dry_run.clone().unwrap();
        assert_eq!((run.cluster.as_deref(), run.asked), (Some("acme/a"), 0), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_no_judge_of_a_plan() {
    let mut life = Life::with(&objects());
    life.settle().await;
    for edge in EDGES {
        life.edges[edge].faults(Some(Arc::new(|request, _| {
            let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
            dry.then(|| Fault::Refuse(lost()))
        })));
    }
    life.put(&planned());
    edit(&life);
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["refused"], Value::Null);
    let run = |life: &Life| details(life).apps[0].variants[0].dry_run.clone().unwrap();
    assert_eq!(run(&life).cluster, None);
    let outcome = reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!(outcome, Outcome::After(Duration::from_mins(1)));
    let asked = refuse_page(&life, "a");
    let outcome = reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!((outcome, asked.load(Ordering::SeqCst)), (Outcome::After(Duration::from_mins(1)), 0));
    for edge in EDGES {
        life.edges[edge].faults(None);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    life.settle().await;
    assert_eq!((run(&life).cluster.as_deref(), run(&life).asked), (Some("acme/a"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_field_that_a_cluster_does_not_know_hides_no_refusal_in_a_plan() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let status = |code, reason: &str, message: &str| ApiError::Status {
        code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        retry_after: None,
        causes: Vec::new(),
    };
    let unknown = "failed to create typed patch object (team-a/page; /v1, Kind=ConfigMap): .data.text: field not declared in schema";
    let answers = [status(500, "", unknown), status(422, "Invalid", "data: no such page")];
    let asked = AtomicU64::new(0);
    life.edges["a"].faults(Some(Arc::new(move |request, _| {
        let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
        let number = dry.then(|| asked.fetch_add(1, Ordering::SeqCst))?;
        let answer = answers.get(usize::try_from(number).unwrap_or(1)).unwrap_or(&answers[1]);
        Some(Fault::Refuse(answer.clone()))
    })));
    life.put(&planned());
    edit(&life);
    life.settle().await;
    let refused = pending(&life)["apps"][0]["refused"].to_string();
    assert!(refused.contains("page: Invalid: data: no such page"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_is_only_planned_may_be_approved_before_it_is_instantiated() {
    let mut life = waiting("Plan").await;
    life.put(&planned());
    life.settle().await;
    assert_eq!(pending(&life)["requires"], "Approval");
    decide(&mut life, "yes", "Approved").await;
    assert_eq!((pending(&life)["requires"].clone(), life.names_on("a").len()), (json!("Nothing"), 1));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Approved").1), (json!("red"), "ApprovedBy".into()));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_planned_is_refused_though_only_planned() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let mut dig = deployment("nowhere");
    dig["spec"]["desiredState"] = json!("Planned");
    life.put(&dig);
    life.settle().await;
    assert_eq!((life.says("Ready").1, pending(&life)), ("NoClusterMatches".into(), Value::Null));
}
