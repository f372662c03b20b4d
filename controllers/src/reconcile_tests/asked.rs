//! What clusters are asked about plans, and how long their answers count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_engine::changes::{DETAILS, DryRun, MOST_ASKED};
use serde_json::{Value, json};

use super::approvals::edges;
use super::life::*;
use super::planned::{planned, refuse_page};
use super::plans::{CONFIG_MAP, details, edit, pending};
use super::rig::emco;
use super::shop::{TENANT, objects, packed};
use crate::api::{ApiError, ApiServerExt as _};
use crate::memory::Fault;
use crate::object::context::Outcome;
use crate::reconcile;

fn run(life: &Life, app: usize) -> Option<DryRun> {
    details(life).apps[app].variants[0].dry_run.clone()
}

/// Counts dry runs on an edge, which answers them all.
fn count(life: &Life, edge: &str) -> Arc<AtomicU64> {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    life.edges[edge].faults(Some(Arc::new(move |request, _| {
        let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
        counted.fetch_add(u64::from(dry), Ordering::SeqCst);
        None
    })));
    asked
}

#[tokio::test(start_paused = true)]
async fn another_policy_of_conflicts_is_another_question() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    let page = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "mine"},
        "metadata": {"name": "page", "namespace": "team-a"}});
    life.edges["a"].put("somebody", &page);
    life.put(&planned());
    life.settle().await;
    assert!(pending(&life)["apps"][0]["refused"].to_string().contains("NotOurs"), "{:#}", pending(&life));
    let mut dig = planned();
    dig["spec"]["sync"] = json!({"conflicts": "Force"});
    life.put(&dig);
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["refused"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn answers_that_others_wrote_are_not_believed() {
    let mut life = Life::with(&objects());
    life.settle().await;
    refuse_page(&life, "a");
    life.put(&planned());
    edit(&life);
    life.settle().await;
    let refused = pending(&life)["apps"][0]["refused"].clone();
    assert_eq!(refused.as_array().map(Vec::len), Some(1), "{refused}");
    let mut forged = details(&life);
    forged.apps[0].variants[0].dry_run.as_mut().unwrap().refused.clear();
    let text = serde_json::to_string(&forged).unwrap();
    life.rig.hub.merge(CONFIG_MAP, &json!({"data": {(DETAILS): text}})).await.unwrap();
    life.restart().await;
    refuse_page(&life, "a");
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["refused"], refused);
}

#[tokio::test(start_paused = true)]
async fn objects_without_an_answer_are_counted_and_asked_about_again() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    life.edges["a"].faults(Some(Arc::new(|request, _| {
        let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
        (dry && request.path.ends_with("/deployments/web")).then(|| Fault::Refuse(lost()))
    })));
    life.put(&planned());
    life.settle().await;
    let found = run(&life, 0).unwrap();
    assert_eq!((found.cluster.as_deref(), found.unanswered), (Some("acme/a"), 1));
    let whole = found.asked + found.unanswered;
    let asked = refuse_page(&life, "a");
    tokio::time::sleep(Duration::from_mins(1)).await;
    life.settle().await;
    let found = run(&life, 0).unwrap();
    assert_eq!((found.asked, found.unanswered, found.refused.len()), (whole, 0, 1));
    let times = asked.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_mins(3)).await;
    life.settle().await;
    assert_eq!(asked.load(Ordering::SeqCst), times, "that was all");
}

#[tokio::test(start_paused = true)]
async fn one_deployment_of_a_project_asks_at_a_time() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let asked = count(&life, "a");
    let askers = life.rig.ctx.revisions.askers.clone();
    let others = askers.turn("project team-a".to_owned(), Duration::ZERO).await;
    assert!(others.is_some());
    life.put(&planned());
    edit(&life);
    life.settle().await;
    let outcome = reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!((outcome, asked.load(Ordering::SeqCst)), (Outcome::After(Duration::from_secs(15)), 0));
    assert_eq!(run(&life, 0).unwrap().cluster, None, "that is no answer");
    drop(others);
    let outcome = reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!((outcome, asked.load(Ordering::SeqCst) > 0), (Outcome::Settled, true));
}

const NAMED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.name }}}
";

#[tokio::test(start_paused = true)]
async fn clusters_are_asked_about_a_bounded_number_of_sets_of_a_plan() {
    let all = objects();
    let mut life = Life::with(&all[..all.len() - 1]);
    let charts = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "named", "namespace": "team-a"},
        "binaryData": {"one.tgz": packed("one", "1.0.0", &[("templates/one.yaml", NAMED)])}});
    life.put(&charts);
    let names: Vec<String> = (0..MOST_ASKED + 2).map(|n| format!("app-{n:02}")).collect();
    let chart = json!({"configMapRef": {"name": "named", "key": "one.tgz"}});
    let apps: Vec<Value> = names.iter().map(|name| json!({"name": name, "chart": chart})).collect();
    life.put(&emco("CompositeApp", Some("team-a"), "shop", &json!({"apps": apps})));
    let mut dig = planned();
    let values = names.iter().map(|name| json!({"app": name, "values": {"name": name}}));
    dig["spec"]["overrideValues"] = values.collect();
    let spec = dig["spec"].as_object_mut().unwrap();
    spec.remove("compositeProfileRef");
    spec["placement"].as_object_mut().unwrap().remove("apps");
    life.put(&dig);
    life.settle().await;
    let asked = count(&life, "a");
    life.settle().await;
    let found: Vec<DryRun> = (0..names.len()).filter_map(|app| run(&life, app)).collect();
    let answered = found.iter().filter(|run| run.cluster.is_some()).count();
    let left_out = found.iter().filter(|run| run.cluster.is_none() && run.left_out == 1).count();
    assert_eq!((answered, left_out), (MOST_ASKED, 2));
    assert_eq!(asked.load(Ordering::SeqCst), 0, "a second look asks nothing");
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    let version = |life: &Life| life.rig.hub.object(&path).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&life);
    tokio::time::sleep(Duration::from_mins(5)).await;
    life.settle().await;
    assert_eq!(version(&life), before, "nothing is written at rest");
}

/// Refuses changes of the page on edge `a` as an API server does that cannot change these fields, each with its cause.
fn refuse_change(life: &Life, causes: &'static [(&'static str, &'static str)]) {
    life.edges["a"].faults(Some(Arc::new(move |request, _| {
        let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
        let refuses = dry && request.path.as_str().ends_with("/configmaps/page");
        let said: Vec<String> = causes.iter().map(|(field, cause)| format!("{field}: {cause}")).collect();
        refuses.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 422,
                reason: "Invalid".to_owned(),
                message: format!("ConfigMap \"page\" is invalid: [{}]", said.join(", ")),
                retry_after: None,
                causes: causes.iter().map(|&(field, cause)| (field.to_owned(), cause.to_owned())).collect(),
            })
        })
    })));
}

const IMMUTABLE: (&str, &str) = ("data", "Forbidden: field is immutable when `immutable` is set");

#[tokio::test(start_paused = true)]
async fn what_would_be_made_again_is_named_in_a_plan_with_what_is_lost() {
    let mut life = Life::with(&objects());
    life.settle().await;
    refuse_change(&life, &[IMMUTABLE]);
    let before = edges(&life);
    let mut dig = planned();
    dig["spec"]["sync"] = json!({"immutableFields": "Recreate"});
    life.put(&dig);
    edit(&life);
    life.settle().await;
    let app = pending(&life)["apps"][0].clone();
    let said = json!(["acme/a: ConfigMap/team-a/page: what others wrote into it"]);
    assert_eq!((&app["recreated"], &app["refused"]), (&said, &Value::Null), "{app:#}");
    let answer = run(&life, 0).unwrap();
    assert_eq!((answer.asked, answer.recreated.len(), answer.more_recreated), (1, 1, 0));
    assert_eq!(edges(&life), before, "nothing is deleted by a plan");

    // By default it is refused, and another question.
    life.put(&planned());
    life.settle().await;
    let app = pending(&life)["apps"][0].clone();
    assert_eq!(app["recreated"], Value::Null);
    assert!(app["refused"].to_string().contains("page: ImmutableField: "), "{app:#}");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_made_again_is_refused_in_a_plan() {
    let mut life = Life::with(&objects());
    life.settle().await;
    refuse_change(&life, &[IMMUTABLE, ("data[text]", "Invalid value: x: no such page")]);
    let mut dig = planned();
    dig["spec"]["sync"] = json!({"immutableFields": "Recreate"});
    life.put(&dig);
    edit(&life);
    life.settle().await;
    let app = pending(&life)["apps"][0].clone();
    assert_eq!(app["recreated"], Value::Null);
    let refused = app["refused"].to_string();
    assert!(refused.contains("page: Invalid: ") && refused.contains("is not deleted"), "{refused}");
}
