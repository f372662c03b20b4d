//! Custom resources are judged by the rules of users, which may change at any time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::health::Health;
use emco_engine::health::rules::Rules;
use emco_engine::identity::Identity;
use serde_json::{Value, json};

use super::rig::*;
use crate::memory::{MemoryServer, Watching};
use crate::sync::health_rules::HealthRules;

const WIDGET: &str = "/apis/example.com/v1/namespaces/shop/widgets/w";
const RULE: &str = "- {apiVersion: example.com/v1, kind: Widget, current: \"status.phase == 'Done'\"}";
const BROKEN: &str = "- {apiVersion: example.com/v1, kind: Widget, current: status.phase ==}";
const TEXT: &str = "- {apiVersion: example.com/v1, kind: Widget, current: status.phase}";

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]}})
}

fn widget() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"},
        "spec": {"size": 1}})
}

fn phase(edge: &MemoryServer, phase: &str) {
    edge.set_status(WIDGET, &json!({"phase": phase})).unwrap();
}

fn set(rig: &Rig, text: &str) {
    let rules = Rules::read([("my.yaml", Some(text))]);
    rig.sync.lock().as_ref().unwrap().health_rules().set(rules);
}

fn lists(rig: &Rig) -> u64 {
    rig.sync.lock().as_ref().map_or(0, |sync| sync.metrics().lists.load(Ordering::Relaxed))
}

/// Objects of the row that are ready, of all.
fn ready(rig: &Rig) -> Option<(i64, i64)> {
    let row = rig.row("a")?;
    Some((row.ready, row.total))
}

async fn until_ready(rig: &Rig, wanted: (i64, i64)) {
    rig.until(&format!("{wanted:?} are ready"), |rig| ready(rig) == Some(wanted)).await;
}

async fn named(rig: &Rig, words: &str) {
    rig.until(words, |rig| {
        rig.row("a").is_some_and(|row| row.unready.iter().any(|one| one.message.contains(words)))
    })
    .await;
}

async fn installed(rules: &'static str) -> Rig {
    with(rules, vec![config("c", "1"), widget()]).await
}

async fn with(rules: &'static str, manifests: Vec<Value>) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.rules.lock().insert("my.yaml", rules);
    rig.edge("a").put("test", &definition());
    let apis = Arc::new(rig.edge("a").apis());
    rig.edges.link(&cluster("a"), |link| link.apis = Some(apis.clone()));
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn a_changed_rule_judges_what_is_there_and_lists_its_kind_alone() {
    let rig = installed("").await;
    rig.until_complete("a").await;
    until_ready(&rig, (2, 2)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (before, version) = (lists(&rig), rig.shard().metadata.resource_version);
    // A rule for another kind concerns nobody here.
    set(&rig, "- {apiVersion: example.com/v1, kind: Gadget, current: status.ok}");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((lists(&rig), rig.shard().metadata.resource_version), (before, version));

    set(&rig, RULE);
    named(&rig, "current of its health rule needs the field status").await;
    assert_eq!((ready(&rig), lists(&rig)), (Some((1, 2)), before + 1));
    phase(&rig.edge("a"), "Going");
    named(&rig, "its health rule does not say current").await;
    phase(&rig.edge("a"), "Done");
    until_ready(&rig, (2, 2)).await;
    // The same rules again are no news.
    set(&rig, RULE);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(lists(&rig), before + 1);
    phase(&rig.edge("a"), "Going");
    until_ready(&rig, (1, 2)).await;
    set(&rig, "");
    until_ready(&rig, (2, 2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_cannot_be_used_makes_nothing_ready() {
    let rig = installed(BROKEN).await;
    named(&rig, "cannot be used").await;
    phase(&rig.edge("a"), "Done");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(ready(&rig), Some((1, 2)));
    set(&rig, TEXT);
    named(&rig, "answers text, not true or false").await;
    assert_eq!(ready(&rig), Some((1, 2)));
    let rules = rig.sync.lock().as_ref().unwrap().health_rules();
    let failures = rules.failures().await;
    assert_eq!(
        failures,
        [
            "key my.yaml, rule of Widget (example.com/v1), field current: the expression answers text, not true or false; first on example.com/Widget/shop/w. What it judges is Unknown, not ready, until it is corrected"
        ]
    );
    // Each fault of a rule is told once, however many objects meet it.
    phase(&rig.edge("a"), "Other");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(futures::FutureExt::now_or_never(rules.failures()).is_none());
    let counted = rig.sync.lock().as_ref().unwrap().metrics().unanswered_rules();
    assert!(counted["NotBoolean"] >= 2, "{counted:?}");
    set(&rig, RULE);
    phase(&rig.edge("a"), "Done");
    until_ready(&rig, (2, 2)).await;
}

/// However many rules fail on however many objects: what is told of them ends, what is counted does not.
#[tokio::test(start_paused = true)]
async fn what_is_told_of_failing_rules_is_bounded() {
    let rig = installed("").await;
    rig.until_complete("a").await;
    let rules = rig.sync.lock().as_ref().unwrap().health_rules();
    let kinds: Vec<String> = (0..50).map(|n| format!("Kind{n}")).collect();
    let entry =
        |kind: &String| format!("- {{apiVersion: example.com/v1, kind: {kind}, current: spec.size}}\n");
    set(&rig, &kinds.iter().map(entry).collect::<String>());
    for kind in &kinds {
        let object = json!({"apiVersion": "example.com/v1", "kind": kind,
            "metadata": {"name": "o", "namespace": "shop", "uid": "1", "resourceVersion": "1"}, "spec": {"size": 1}});
        let seen = rules.judged(&Identity::of(&object), &object).unwrap();
        assert!(matches!(seen.health, Health::Unknown(_)));
    }
    assert_eq!(rules.failures().await.len(), 20);
    assert_eq!(rig.sync.lock().as_ref().unwrap().metrics().unanswered_rules()["NotBoolean"], 50);
}

/// In between, objects were judged by what holds no more.
#[tokio::test(start_paused = true)]
async fn a_rule_that_was_away_for_a_moment_judges_afresh() {
    let rig = installed(RULE).await;
    rig.until("it is there", |rig| rig.edge("a").object(WIDGET).is_some()).await;
    named(&rig, "needs the field status").await;
    let rules = rig.sync.lock().as_ref().unwrap().health_rules();
    // The turn of this cluster is seconds away.
    let clusters: Vec<_> = (0..20_000).map(|_| rules.changes()).collect();
    set(&rig, "");
    phase(&rig.edge("a"), "Going");
    until_ready(&rig, (2, 2)).await;
    set(&rig, RULE);
    named(&rig, "its health rule does not say current").await;
    assert_eq!(ready(&rig), Some((1, 2)));
    drop(clusters);
}

/// A kind that can only be listed is not called watched because its rule is another one.
#[tokio::test(start_paused = true)]
async fn another_rule_takes_back_nothing_that_is_known_of_the_watch() {
    let rig = with(RULE, vec![widget()]).await;
    rig.until("it is there", |rig| rig.edge("a").object(WIDGET).is_some()).await;
    rig.edge("a").set_watching(Watching::Refused);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let said = |rig: &Rig| rig.row("a").and_then(|row| row.error).map(|error| (error.reason, error.message));
    let before = said(&rig);
    assert!(
        before.as_ref().is_some_and(|(reason, message)| reason == "Forbidden" && message.contains("Widget")),
        "{before:?}"
    );
    set(&rig, &RULE.replace("Done", "Over"));
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(said(&rig), before);
    }
}

/// All clusters have their turn within a minute, and those of a small hub at once.
#[tokio::test(start_paused = true)]
async fn clusters_list_one_after_the_other_what_changed_rules_judge() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let rules = rig.sync.lock().as_ref().unwrap().health_rules();
    let last = |rules: &HealthRules| (0..500).map(|n| rules.turn(&cluster(&format!("c{n}")))).max().unwrap();
    assert!(last(&rules) < Duration::from_millis(10));
    let clusters: Vec<_> = (0..20_000).map(|_| rules.changes()).collect();
    assert!(last(&rules) > Duration::from_secs(30));
    let more: Vec<_> = (0..80_000).map(|_| rules.changes()).collect();
    assert!(last(&rules) <= Duration::from_mins(1));
    drop((clusters, more));
}

/// A process that begins, on a hub that does not answer what the rules are.
#[tokio::test(start_paused = true)]
async fn without_the_rules_no_custom_resource_is_ready() {
    let rig = installed("").await;
    rig.until_complete("a").await;
    until_ready(&rig, (2, 2)).await;
    rig.crash().await;
    rig.knows_rules.store(false, Ordering::Relaxed);
    rig.start().await;
    named(&rig, "the health rules of the operator's namespace could not be read yet").await;
    assert_eq!(ready(&rig), Some((1, 2)));
    set(&rig, "");
    until_ready(&rig, (2, 2)).await;
}

/// They come within the first seconds, as a rule: nothing is said that would be taken back.
#[tokio::test(start_paused = true)]
async fn a_restart_waits_for_the_rules_and_writes_nothing() {
    let rig = installed(RULE).await;
    rig.until("it is there", |rig| rig.edge("a").object(WIDGET).is_some()).await;
    phase(&rig.edge("a"), "Done");
    until_ready(&rig, (2, 2)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.crash().await;
    rig.knows_rules.store(false, Ordering::Relaxed);
    let version = rig.shard().metadata.resource_version;
    rig.start().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    set(&rig, RULE);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(rig.shard().metadata.resource_version, version);
    // A rule that changed while no process ran judges what is there.
    rig.crash().await;
    rig.start().await;
    set(&rig, &RULE.replace("Done", "Over"));
    named(&rig, "its health rule does not say current").await;
}
