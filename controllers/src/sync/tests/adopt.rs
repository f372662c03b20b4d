//! Objects that others made: what is taken over, what is not, and that nothing of it is ever deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::identity::ClusterId;
use emco_engine::set::ManifestSet;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::deaths;
use super::rig::*;
use crate::api::{ApiServerExt as _, Method};
use crate::memory::{Fault, MemoryServer};

pub const MAP: &str = "/api/v1/namespaces/shop/configmaps/c";

/// A cluster where kubectl made a map with this value, and an engine with this policy that is to make one with `1`.
pub async fn meeting(policy: ConflictPolicy, value: &str) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.conflicts(policy);
    rig.edge("a").put("kubectl", &config("c", value));
    rig.edge("a").take_seen();
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig
}

pub fn live(rig: &Rig) -> Value {
    rig.edge("a").object(MAP).unwrap_or_default()
}

pub fn mark(rig: &Rig) -> Value {
    live(rig)["metadata"]["annotations"]["emco.io/adopted"].clone()
}

pub fn deletes(edge: &MemoryServer) -> usize {
    edge.writes().iter().filter(|write| write.method == Method::Delete).count()
}

/// Keeps answers to looks at the map back until a gate opens: the first ones at one gate, all others at another. The map can
/// change meanwhile.
pub fn hold_looks(rig: &Rig, first: u64) -> [Arc<Semaphore>; 2] {
    let gates = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let (held, count) = (gates.clone(), AtomicU64::new(0));
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let looks = request.method == Method::Get && request.path == MAP;
        let later = || count.fetch_add(1, Ordering::Relaxed) >= first;
        looks.then(|| Fault::Hold(Arc::clone(&held[usize::from(later())])))
    })));
    gates
}

async fn removed(rig: &Rig, value: &str) {
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.ours("a").is_empty());
    let live = live(rig);
    assert_eq!(live["data"]["value"], value, "it stays with its content");
    for mark in ["emco.io/adopted", "emco.io/manifest", "emco.io/placed-by"] {
        assert_eq!(live["metadata"]["annotations"].get(mark), None, "{mark}");
    }
    assert_eq!(deletes(&rig.edge("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn an_equal_object_is_taken_over_and_released_with_its_deployment() {
    for policy in [ConflictPolicy::AdoptIfSame, ConflictPolicy::Adopt, ConflictPolicy::Force] {
        let rig = meeting(policy, "1").await;
        let before = live(&rig)["metadata"]["uid"].clone();
        rig.until_complete("a").await;
        assert_eq!((mark(&rig), &live(&rig)["metadata"]["uid"]), (json!("true"), &before), "{policy:?}");
        assert_eq!(rig.edge("a").writes().len(), 1, "{policy:?}");
        removed(&rig, "1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn fail_changes_nothing_and_names_the_other_ways() {
    let rig = meeting(ConflictPolicy::Fail, "1").await;
    let before = live(&rig);
    let message = rig.until_reason("a", "NotOurs").await.error.unwrap().message;
    assert!(message.contains("kubectl") && message.contains("spec.sync.conflicts"), "{message}");
    assert_eq!(live(&rig), before);
    let asked = tokio::time::Instant::now();
    rig.conflicts(ConflictPolicy::Adopt);
    rig.until_complete("a").await;
    assert!(asked.elapsed() < Duration::from_secs(5), "an edit takes effect at once");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_differs_is_left_and_its_fields_are_listed() {
    let rig = meeting(ConflictPolicy::AdoptIfSame, "theirs").await;
    let error = rig.until_reason("a", "NotOurs").await.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/shop/c"));
    for part in ["kubectl", "differs in data.value", "Adopt or Force"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert!(rig.edge("a").writes().is_empty());
    rig.edge("a").put("kubectl", &config("c", "1"));
    rig.request("now");
    rig.until_complete("a").await;
    removed(&rig, "1").await;
}

#[tokio::test(start_paused = true)]
async fn a_field_that_nobody_set_is_a_difference_and_no_conflict() {
    let mut theirs = config("c", "1");
    theirs["data"] = json!({"other": "x"});
    for (policy, taken) in [(ConflictPolicy::AdoptIfSame, false), (ConflictPolicy::Adopt, true)] {
        let rig = Rig::new(&["a"]);
        rig.conflicts(policy);
        rig.edge("a").put("kubectl", &theirs);
        rig.start().await;
        rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
        if taken {
            rig.until_complete("a").await;
            assert_eq!(live(&rig)["data"], json!({"other": "x", "value": "1"}), "what is theirs stays");
        } else {
            let message = rig.until_reason("a", "NotOurs").await.error.unwrap().message;
            assert!(message.contains("data.value"), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn adopt_overrides_no_manager_and_names_it_with_its_fields() {
    let rig = meeting(ConflictPolicy::Adopt, "theirs").await;
    let message = rig.until_reason("a", "NotOurs").await.error.unwrap().message;
    for part in [".data.value", "kubectl", "spec.sync.conflicts: Force"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("theirs"), Value::Null));
}

#[tokio::test(start_paused = true)]
async fn force_takes_fields_from_other_managers_and_deletes_nothing() {
    let rig = meeting(ConflictPolicy::Force, "theirs").await;
    rig.until_complete("a").await;
    assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("1"), json!("true")));
    removed(&rig, "1").await;
}

#[tokio::test(start_paused = true)]
async fn an_adopted_object_stays_adopted_through_updates_restarts_and_edits() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.crash().await;
    rig.conflicts(ConflictPolicy::Fail);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("2"), json!("true")));
    rig.crash().await;
    rig.start().await;
    removed(&rig, "2").await;
}

#[tokio::test(start_paused = true)]
async fn an_adopted_object_that_leaves_the_revision_is_released() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[app("web", vec![config("d", "1")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/d"]);
    assert_eq!(live(&rig)["data"]["value"], "1");
    assert_eq!(deletes(&rig.edge("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_others_take_off_is_put_back_and_nothing_is_deleted() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    let off = json!({"metadata": {"annotations": {"emco.io/adopted": null}}});
    rig.edge("a").merge(MAP, &off).await.unwrap();
    rig.until("it is marked again", |rig| mark(rig) == json!("true")).await;
    // All marks at once, as a client does that replaces the metadata.
    let off = json!({"metadata": {"labels": null, "annotations": null}});
    rig.edge("a").merge(MAP, &off).await.unwrap();
    rig.until("it is marked again", |rig| mark(rig) == json!("true")).await;
    removed(&rig, "1").await;
}

/// Takes all of our marks off, as a client does that replaces the metadata.
async fn replace(rig: &Rig) {
    let off = json!({"metadata": {"labels": null, "annotations": null}});
    rig.edge("a").merge(MAP, &off).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_known_without_marks_whatever_the_policy_is_now() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.conflicts(ConflictPolicy::Fail);
    rig.until("it is stored", |rig| rig.row("a").is_some_and(|row| row.took_over)).await;
    rig.crash().await;
    replace(&rig).await;
    rig.start().await;
    rig.until("it is marked again", |rig| mark(rig) == json!("true")).await;
    rig.crash().await;
    rig.start().await;
    removed(&rig, "1").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_made_is_deleted_though_its_marks_were_taken_off() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    replace(&rig).await;
    rig.start().await;
    rig.until("it is ours again", |rig| rig.ours("a") == ["configmaps./shop/c"]).await;
    assert_eq!(mark(&rig), Value::Null);
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!((live(&rig), deletes(&rig.edge("a"))), (Value::Null, 1));
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_put_back_also_where_changes_are_only_reported() {
    use emco_crds::deployment_intent_group::sync::DriftPolicy;
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.drift(DriftPolicy::Report);
    // Its first look at what it took over is over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let off = json!({"metadata": {"annotations": {"emco.io/adopted": null}}, "data": {"value": "theirs"}});
    rig.edge("a").merge(MAP, &off).await.unwrap();
    rig.until("it is marked again", |rig| mark(rig) == json!("true")).await;
    assert_eq!(live(&rig)["data"]["value"], "theirs", "nothing else is written");
    rig.crash().await;
    rig.start().await;
    removed(&rig, "theirs").await;
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_was_put_back_is_no_difference_any_more() {
    use emco_crds::deployment_intent_group::sync::DriftPolicy;
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.drift(DriftPolicy::Report);
    // Its first look at what it took over is over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let off = json!({"metadata": {"annotations": {"emco.io/adopted": null}}});
    rig.edge("a").merge(MAP, &off).await.unwrap();
    rig.until("it is marked again", |rig| mark(rig) == json!("true")).await;
    let reported = |rig: &Rig| rig.row("a").unwrap().drift.map_or(0, |drift| drift.reported);
    rig.until("the report is taken back", |rig| reported(rig) == 0).await;
    rig.edge("a").take_seen();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_others_make_between_look_and_apply_is_theirs() {
    for policy in [ConflictPolicy::Fail, ConflictPolicy::Adopt] {
        let rig = Rig::new(&["a"]);
        rig.conflicts(policy);
        // One look before the lists came.
        let [gate, later] = hold_looks(&rig, 1);
        rig.start().await;
        rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.edge("a").put("kubectl", &config("c", "1"));
        later.add_permits(Semaphore::MAX_PERMITS);
        gate.add_permits(1);
        if policy == ConflictPolicy::Fail {
            rig.until_reason("a", "NotOurs").await;
            assert_eq!(live(&rig)["metadata"]["labels"], Value::Null, "it is not even marked");
            continue;
        }
        rig.until_complete("a").await;
        assert_eq!(mark(&rig), json!("true"), "{policy:?}");
        rig.crash().await;
        rig.start().await;
        removed(&rig, "1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_object_costs_one_request_and_one_of_others_is_not_changed() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").put("kubectl", &config("theirs", "1"));
    let theirs = "/api/v1/namespaces/shop/configmaps/theirs";
    let before = rig.edge("a").object(theirs);
    rig.edge("a").take_seen();
    let maps = vec![config("c", "1"), config("new", "1"), config("theirs", "1")];
    rig.target(&on("a", &[app("web", maps)])).await;
    rig.until_reason("a", "NotOurs").await;
    let seen = rig.edge("a").take_seen();
    let asked = |name: &str| {
        let path = format!("/api/v1/namespaces/shop/configmaps/{name}");
        seen.iter().filter(|seen| seen.path == path).map(|seen| seen.method).collect::<Vec<_>>()
    };
    assert_eq!(asked("new"), [Method::Patch]);
    // It says the same as ours, so that nothing but its being there is in the way.
    assert_eq!(asked("theirs"), [Method::Patch, Method::Get]);
    assert_eq!(rig.edge("a").object(theirs), before);
}

#[tokio::test(start_paused = true)]
async fn the_object_of_a_hook_is_never_taken_over() {
    let rig = Rig::new(&["a"]);
    rig.conflicts(ConflictPolicy::Force);
    rig.edge("a").put("kubectl", &job("migrate"));
    rig.start().await;
    let hooked = vec![hook(job("migrate"), &["pre-install"], 0, &[]), manifest(config("d", "1"), None)];
    rig.target(&on("a", &[app_of("web", hooked)])).await;
    let message = rig.until_reason("a", "NotOurs").await.error.unwrap().message;
    assert!(!message.contains("spec.sync.conflicts"), "it does not help: {message}");
    assert_eq!(deletes(&rig.edge("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_object_is_never_deleted_to_be_made_again() {
    use emco_crds::deployment_intent_group::sync::ImmutablePolicy;
    let web = |tier: &str| {
        let mut web = deployment("web", "nginx:1");
        web["spec"]["selector"]["matchLabels"]["tier"] = json!(tier);
        web
    };
    let rig = Rig::new(&["a"]);
    rig.conflicts(ConflictPolicy::Adopt);
    rig.immutable(ImmutablePolicy::Recreate);
    rig.edge("a").put("kubectl", &web("one"));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![web("one")])])).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[app("web", vec![web("two")])])).await;
    let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
    assert!(message.contains("never deleted"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), 0);
}

/// An engine that looked so often at the map, and waits for the next answer: once before the lists came, once afterwards, and
/// once to compare it.
pub async fn looked(policy: ConflictPolicy, times: u64) -> (Rig, Arc<Semaphore>) {
    let rig = Rig::new(&["a"]);
    rig.conflicts(policy);
    rig.edge("a").put("kubectl", &config("c", "1"));
    let [before, after] = hold_looks(&rig, times);
    before.add_permits(1);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    (rig, after)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_before_it_is_compared_is_made() {
    let (rig, gate) = looked(ConflictPolicy::AdoptIfSame, 1).await;
    rig.edge("a").remove(MAP);
    let gone = tokio::time::Instant::now();
    gate.add_permits(1);
    rig.until_complete("a").await;
    assert!(gone.elapsed() < Duration::from_secs(10), "{:?}", gone.elapsed());
    assert_eq!(mark(&rig), Value::Null, "it is EMCO's own");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_while_it_is_compared_is_compared_again() {
    let (rig, gate) = looked(ConflictPolicy::AdoptIfSame, 2).await;
    rig.edge("a").put("kubectl", &config("c", "theirs"));
    gate.add_permits(1);
    rig.until_reason("a", "NotOurs").await;
    assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("theirs"), Value::Null));
}

#[tokio::test(start_paused = true)]
async fn an_update_before_the_lists_are_there_keeps_the_mark() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    rig.crash().await;
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let lists = request.method == Method::Get && request.path == "/api/v1/configmaps";
        lists.then(|| Fault::Hold(Arc::clone(&held)))
    })));
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.start().await;
    rig.until("it is updated", |rig| live(rig)["data"]["value"] == "2").await;
    assert_eq!((mark(&rig), rig.complete("a")), (json!("true"), false));
    gate.add_permits(1);
    rig.until_complete("a").await;
    removed(&rig, "2").await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_takeover_ends_exactly() {
    for policy in [ConflictPolicy::AdoptIfSame, ConflictPolicy::Adopt, ConflictPolicy::Force] {
        let undisturbed = Rig::new(&["a"]);
        taken_updated_released(&undisturbed, policy, &AtomicU64::new(0)).await;
        // The takeover, an object beside it, an update, the release, a deletion; a status for each state between.
        for death in deaths::all(6, 7) {
            let (rig, stage) = (Rig::new(&["a"]), AtomicU64::new(0));
            death.strikes(&rig, taken_updated_released(&rig, policy, &stage)).await;
            if stage.load(Ordering::Relaxed) == 0 {
                rig.target(&both("1")).await;
                rig.until_complete("a").await;
            }
            rig.target(&both("2")).await;
            rig.until_complete("a").await;
            assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("2"), json!("true")));
            rig.target(&nowhere()).await;
            rig.until_complete("a").await;
            assert_eq!(deaths::end(&rig), deaths::end(&undisturbed), "{policy:?} {death:?}");
        }
    }
}

fn both(value: &str) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    on("a", &[app("web", vec![config("c", value), config("d", "1")])])
}

async fn taken_updated_released(rig: &Rig, policy: ConflictPolicy, stage: &AtomicU64) {
    rig.conflicts(policy);
    rig.edge("a").put("kubectl", &config("c", "1"));
    rig.start().await;
    for next in [both("1"), both("2"), nowhere()] {
        rig.target(&next).await;
        rig.until_complete("a").await;
        stage.fetch_add(1, Ordering::Relaxed);
    }
}
