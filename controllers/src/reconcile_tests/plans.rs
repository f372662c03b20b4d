//! Plans that wait: what is said of them, what is written down, and that it goes with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::changes::{DETAILS, DIFFERENCES, Details, Differences, digest};
use serde_json::{Value, json};

use super::approvals::{decide, page, project, waiting};
use super::life::*;
use super::removals::confirmation;
use super::shop::{TENANT, composite_app, deployment, objects, values};
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::Fault;

pub(super) const CONFIG_MAP: &str = "/api/v1/namespaces/team-a/configmaps/dig-shop-plan";

pub(super) fn with(field: &str, value: &Value) -> Value {
    let mut dig = deployment("edge");
    dig["spec"][field] = value.clone();
    dig
}

pub(super) fn edit(life: &Life) {
    life.put(&composite_app("1.1.0"));
    life.put(&values("blue"));
}

pub(super) fn pending(life: &Life) -> Value {
    life.dig()["status"]["pending"].clone()
}

/// The names of what changes, as they are written down and as the status names them.
pub(super) fn details(life: &Life) -> Details {
    let map = life.rig.hub.object(CONFIG_MAP).unwrap_or_else(|| panic!("{:#}", life.dig()));
    let details = Details::read(map["data"][DETAILS].as_str().unwrap()).unwrap();
    let named = &pending(life)["details"];
    assert_eq!(named, &json!({"configMap": "dig-shop-plan", "digest": digest(&details)}));
    details
}

pub(super) fn secret(life: &Life) -> Option<Value> {
    let all = life.rig.hub.objects().into_values();
    let mut found = all.filter(|object| {
        object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("emco-plan-"))
    });
    let first = found.next();
    assert!(found.next().is_none());
    first
}

fn differences(life: &Life) -> Differences {
    let secret = secret(life).unwrap();
    assert_eq!((&secret["kind"], &secret["type"]), (&json!("Secret"), &json!("emco.io/plan")));
    let text = STANDARD.decode(secret["data"][DIFFERENCES].as_str().unwrap()).unwrap();
    Differences::read(&text).unwrap()
}

/// Nothing is written down of any plan.
pub(super) fn is_clean(life: &Life) -> bool {
    life.rig.hub.object(CONFIG_MAP).is_none() && secret(life).is_none()
}

/// An edit beside what was approved.
async fn edit_waits() -> Life {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    assert!(is_clean(&life));
    edit(&life);
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_names_what_it_changes_by_app() {
    let life = edit_waits().await;
    let pending = pending(&life);
    assert_eq!(pending["clusters"], json!({"added": 0, "changed": 2, "removed": 0}));
    assert_eq!(pending["resources"], json!({"added": 0, "changed": 2, "removed": 2}));
    let web = json!({
        "name": "web",
        "clusters": {"added": 0, "changed": 2, "removed": 0},
        "resources": {"added": 0, "changed": 2, "removed": 2},
        "first": ["ConfigMap/team-a/page", "ConfigMap/team-a/old"],
        "hooks": ["pre-upgrade batch/Job/team-a/prepare"],
    });
    assert_eq!(pending["apps"], json!([web]), "{pending:#}");
    let details = details(&life);
    assert_eq!((details.apps.len(), details.apps[0].variants.len()), (1, 1), "{details:?}");
    assert_eq!(details.apps[0].variants[0].clusters, ["acme/a", "acme/b"]);
    let differences = differences(&life);
    let texts: Vec<&str> = differences.objects.iter().map(|one| one.text.as_str()).collect();
    assert!(matches!(texts[..], [text] if text.contains("\n-  text: red\n+  text: blue\n")), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_of_a_plan_goes_when_it_is_carried_out() {
    let mut life = edit_waits().await;
    decide(&mut life, "second", "Approved").await;
    assert_eq!((page(&life, "a"), pending(&life)), (json!("blue"), Value::Null));
    assert!(is_clean(&life));
}

#[tokio::test(start_paused = true)]
async fn what_is_written_of_a_plan_goes_with_the_deployment() {
    let mut life = edit_waits().await;
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert!(life.dig().is_null() && is_clean(&life));
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_is_written_once_whoever_looks() {
    let mut life = edit_waits().await;
    let before = versions(&life.rig.hub);
    life.restart().await;
    life.settle().await;
    let after = versions(&life.rig.hub);
    for (key, version) in before.iter().filter(|(key, _)| key.contains("plan")) {
        assert_eq!(after.get(key), Some(version), "{key}");
    }
    life.put(&values("green"));
    life.settle().await;
    details(&life);
    assert!(differences(&life).objects[0].text.contains("+  text: green"));
}

#[tokio::test(start_paused = true)]
async fn a_value_from_a_secret_is_in_nothing_that_is_written() {
    let life = waiting("Plan").await;
    let texts: Vec<String> = differences(&life).objects.into_iter().map(|one| one.text).collect();
    let text = texts.join("\n");
    assert!(text.contains("key: (withheld, digest "), "{text}");
    let map = life.rig.hub.object(CONFIG_MAP).unwrap().to_string();
    for said in [text, map, pending(&life).to_string()] {
        for secret in ["hidden".to_owned(), STANDARD.encode("hidden")] {
            assert!(!said.contains(&secret), "{said}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_by_that_name_stays_as_it_is() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    let mine = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": "dig-shop-plan", "namespace": "team-a"}});
    life.put(&mine);
    edit(&life);
    life.settle().await;
    assert_eq!(pending(&life)["revision"], 2);
    decide(&mut life, "second", "Approved").await;
    assert_eq!(life.rig.hub.object(CONFIG_MAP).unwrap()["data"], json!({"a": "b"}));
    assert_eq!(page(&life, "a"), "blue");
}

fn quota() -> ApiError {
    ApiError::Status {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "exceeded quota".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_a_plan_are_written_down_where_its_lines_are_refused() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    life.hub_faults(Arc::new(|request, _| {
        let refused = request.method == Method::Post && request.path.as_str().contains("/secrets");
        refused.then(|| Fault::Refuse(quota()))
    }));
    edit(&life);
    life.settle().await;
    assert_eq!(details(&life).apps.len(), 1);
    assert!(secret(&life).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_written_down_waits_and_is_carried_out() {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    let quota = quota();
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    life.hub_faults(Arc::new(move |request, _| {
        let refused = request.method == Method::Post && request.path.as_str().contains("/configmaps");
        counted.fetch_add(u64::from(refused), Ordering::SeqCst);
        refused.then(|| Fault::Refuse(quota.clone()))
    }));
    edit(&life);
    life.settle().await;
    assert_eq!((pending(&life)["revision"].clone(), tries.load(Ordering::SeqCst)), (json!(2), 1));
    life.rig.hub.faults(None);
    decide(&mut life, "second", "Approved").await;
    assert_eq!(page(&life, "a"), "blue");
    assert!(is_clean(&life));
}

#[tokio::test(start_paused = true)]
async fn beside_a_pin_waits_what_unpinning_would_do() {
    let mut life = Life::with(&objects());
    life.settle().await;
    edit(&life);
    life.settle().await;
    life.put(&with("revision", &json!(1)));
    life.settle().await;
    let pending = pending(&life);
    assert_eq!((&pending["revision"], &pending["requires"]), (&json!(2), &json!("Nothing")));
    assert_eq!(pending["resources"], json!({"added": 0, "changed": 2, "removed": 2}));
    assert_eq!(pending["apps"][0]["hooks"], json!(["pre-upgrade batch/Job/team-a/prepare"]));
    assert!(differences(&life).objects[0].text.contains("-  text: red\n+  text: blue\n"));
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(is_clean(&life) && page(&life, "a") == "blue");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_waits_names_all_that_it_would_remove() {
    let mut life = Life::with(&objects());
    life.put(&project(&json!({"confirmDeletion": "Always"})));
    life.settle().await;
    let digest = life.dig()["status"]["digest"].clone();
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    let waits = pending(&life);
    assert_eq!((&waits["requires"], &waits["digest"]), (&json!("DeletionConfirmation"), &digest));
    assert_eq!((&waits["revision"], &waits["clusters"]["removed"]), (&json!(0), &json!(3)), "{waits:#}");
    assert_eq!(waits["apps"][0]["lost"], json!(["acme/a", "acme/b"]));
    assert_eq!(details(&life).apps.len(), 2);
    let text = confirmation(&life.dig(), digest.as_str().unwrap());
    let confirm = json!({"metadata": {"annotations": {"emco.io/confirm": text}}});
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    life.rig.hub.merge(&path, &confirm).await.unwrap();
    life.settle().await;
    assert!(life.dig().is_null() && is_clean(&life));
}
