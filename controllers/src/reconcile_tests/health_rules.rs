//! The `ConfigMap` with health rules: what is read, what is told, on a hub that gives the operator's rights alone.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::health::rules::Judge;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::life::lost;
use super::rig::Rig;
use crate::api::ApiServerExt as _;
use crate::memory::{Fault, MemoryServer, Watching};
use crate::reconcile::health_rules::follow;
use crate::sync::SyncMetrics;
use crate::sync::health_rules::HealthRules;

const PATH: &str = "/api/v1/namespaces/emco-system/configmaps/emco-health-rules";
const GOOD: &str = "- {apiVersion: example.com/v1, kind: Widget, current: status.ok}";

fn put(hub: &MemoryServer, text: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "emco-health-rules", "namespace": "emco-system"}, "data": {"my.yaml": text}});
    hub.put("test", &map);
}

fn start(rig: &Rig) -> (Arc<HealthRules>, JoinHandle<()>) {
    let rules = HealthRules::new(Arc::new(SyncMetrics::default()));
    let next = rig.beside(Arc::new(rig.hub.clone()));
    (rules.clone(), tokio::spawn(follow(Arc::new(next.ctx), rules)))
}

async fn becomes(rules: &HealthRules, wanted: impl Fn(&Judge) -> bool) {
    let widget = ("example.com".to_owned(), "Widget".to_owned());
    let seen = async {
        let mut changes = rules.changes();
        while !wanted(&rules.judge(&widget)) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_mins(2), seen).await.expect("the rules stay as they are");
}

/// Messages of the Warnings about the rules.
async fn warnings(rig: &Rig) -> Vec<String> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let objects = rig.hub.objects();
    let about = |event: &&Value| {
        event["kind"] == "Event"
            && event["type"] == "Warning"
            && event["reason"] == "HealthRuleInvalid"
            && event["involvedObject"]["kind"] == "ConfigMap"
            && event["involvedObject"]["name"] == "emco-health-rules"
            && event["metadata"]["namespace"] == "emco-system"
    };
    let said = objects.values().filter(about).map(|event| event["message"].as_str().unwrap().to_owned());
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn rules_follow_their_config_map_and_a_fault_is_told_once() {
    let rig = Rig::new();
    let (rules, running) = start(&rig);
    becomes(&rules, |judge| *judge == Judge::BuiltIn).await;
    put(&rig.hub, GOOD);
    becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
    assert_eq!(warnings(&rig).await, Vec::<String>::new());
    put(&rig.hub, "- {apiVersion: example.com/v1, kind: Widget, current: status.ok &&}");
    becomes(&rules, |judge| matches!(judge, Judge::Nothing(_))).await;
    let told = warnings(&rig).await;
    let [message] = told.as_slice() else { panic!("{told:?}") };
    let begin = "key my.yaml, rule of Widget (example.com/v1), field current: the expression does not compile: line 1, column ";
    assert!(message.starts_with(begin), "{message}");
    // Another process that reads the same version says nothing new.
    running.abort();
    let (rules, running) = start(&rig);
    becomes(&rules, |judge| matches!(judge, Judge::Nothing(why) if why.contains("does not compile"))).await;
    assert_eq!(warnings(&rig).await, told);
    rig.hub.remove(PATH);
    becomes(&rules, |judge| *judge == Judge::BuiltIn).await;
    running.abort();
}

/// A label or an annotation says nothing about rules: nothing is compiled, judged or told again.
#[tokio::test(start_paused = true)]
async fn the_same_rules_under_other_labels_are_no_news() {
    let rig = Rig::new();
    put(&rig.hub, "- {apiVersion: example.com/v1, kind: Widget, current: status.ok &&}");
    let (rules, running) = start(&rig);
    becomes(&rules, |judge| matches!(judge, Judge::Nothing(why) if why.contains("does not compile"))).await;
    let told = warnings(&rig).await;
    assert_eq!(told.len(), 1);
    let changes = rules.changes();
    rig.hub.merge(PATH, &json!({"metadata": {"labels": {"team": "a"}}})).await.unwrap();
    assert_eq!((changes.has_changed().unwrap(), warnings(&rig).await), (false, told.clone()));
    put(&rig.hub, GOOD);
    becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
    assert_eq!(warnings(&rig).await, told);
    running.abort();
}

/// Without the right to watch, with a server that forgot, and with one that ends watches: by the next list they are there.
#[tokio::test(start_paused = true)]
async fn where_no_watch_works_the_rules_are_listed_again_and_again() {
    for watching in [Watching::Refused, Watching::Gone, Watching::GoneLater, Watching::Empty] {
        let rig = Rig::new();
        rig.hub.set_watching(watching);
        put(&rig.hub, GOOD);
        let (rules, running) = start(&rig);
        becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
        let asked = rig.hub.watches_asked();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let asked = rig.hub.watches_asked() - asked;
        assert!((15..=60).contains(&asked), "{watching:?}: {asked} in ten minutes");
        rig.hub.remove(PATH);
        becomes(&rules, |judge| *judge == Judge::BuiltIn).await;
        put(&rig.hub, GOOD);
        rig.hub.set_watching(Watching::Works);
        becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
        running.abort();
    }
}

/// A correction does not wait until all that was wrong is told.
#[tokio::test(start_paused = true)]
async fn a_hub_that_takes_no_events_keeps_no_correction_waiting() {
    let rig = Rig::new();
    let never = Arc::new(Semaphore::new(0));
    rig.hub.faults(Some(Arc::new(move |request, _| {
        request.path.as_str().contains("/events").then(|| Fault::Hold(never.clone()))
    })));
    put(&rig.hub, "- {apiVersion: example.com/v1, kind: Widget, current: status.ok &&}");
    let (rules, running) = start(&rig);
    becomes(&rules, |judge| matches!(judge, Judge::Nothing(why) if why.contains("does not compile"))).await;
    put(&rig.hub, GOOD);
    becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
    running.abort();
}

/// What was read stays in force; what was never read is not taken for "no rules".
#[tokio::test(start_paused = true)]
async fn a_hub_that_does_not_answer_says_nothing_about_the_rules() {
    let rig = Rig::new();
    put(&rig.hub, GOOD);
    rig.hub.faults(Some(Arc::new(|request, _| {
        request.path.as_str().contains("configmaps").then(|| Fault::Refuse(lost()))
    })));
    let (rules, running) = start(&rig);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(!rules.is_known());
    rig.hub.faults(None);
    becomes(&rules, |judge| matches!(judge, Judge::Rule(_))).await;
    running.abort();
}
