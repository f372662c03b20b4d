//! Objects that others made: what is taken over, what is not, and that nothing of it is ever deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use serde_json::{Value, json};

use super::rig::*;
use crate::memory::{Fault, MemoryServer};
use crate::runtime::api::{ApiError, ApiServer as _, ApiServerExt as _, Content, Method, Request};

const MAP: &str = "/api/v1/namespaces/shop/configmaps/c";

/// A cluster where somebody made a map with this value, and an engine with this policy that is to make one with `1`.
async fn meeting(policy: ConflictPolicy, value: &str) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.conflicts(policy);
    rig.edge("a").put("kubectl", &config("c", value));
    rig.edge("a").take_seen();
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig
}

fn live(rig: &Rig) -> Value {
    rig.edge("a").object(MAP).unwrap_or_default()
}

fn mark(rig: &Rig) -> Value {
    live(rig)["metadata"]["annotations"]["emco.io/adopted"].clone()
}

fn deletes(edge: &MemoryServer) -> usize {
    edge.writes().iter().filter(|write| write.method == Method::Delete).count()
}

/// Writes fields as another manager that takes them.
async fn take(edge: &MemoryServer, manager: &str, object: &Value) {
    let request = Request::new(Method::Patch, MAP)
        .query("fieldManager", manager)
        .query("force", "true")
        .body(Content::Apply, object);
    edge.send(request).await.unwrap();
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
async fn fail_sends_nothing_and_names_the_other_ways() {
    let rig = meeting(ConflictPolicy::Fail, "1").await;
    let message = rig.until_reason("a", "NotOurs").await.error.unwrap().message;
    assert!(message.contains("kubectl") && message.contains("spec.sync.conflicts"), "{message}");
    assert!(rig.edge("a").writes().is_empty());
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

#[tokio::test(start_paused = true)]
async fn of_two_deployments_one_adopts_and_the_other_names_it() {
    let rig = meeting(ConflictPolicy::Adopt, "1").await;
    rig.until_complete("a").await;
    for policy in [ConflictPolicy::Adopt, ConflictPolicy::Force] {
        rig.conflicts(policy);
        rig.target_of("till", &on("a", &[app("web", vec![config("c", "2")])])).await;
        rig.until("the other one says so", |rig| {
            rig.row_of("till", "a").and_then(|row| row.error).is_some_and(|error| error.reason == "Conflict")
        })
        .await;
        let message = rig.row_of("till", "a").unwrap().error.unwrap().message;
        assert!(message.contains("team-a/shop"), "{message}");
        tokio::time::sleep(Duration::from_mins(20)).await;
        assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
        assert_eq!(live(&rig)["data"]["value"], "1");
    }
    // Released by the first, it is the second's: still nobody's to delete.
    rig.conflicts(ConflictPolicy::Force);
    rig.target(&nowhere()).await;
    rig.until("the other one has it", |rig| live(rig)["data"]["value"] == "2").await;
    rig.target_of("till", &nowhere()).await;
    rig.until("it is released again", |rig| mark(rig).is_null()).await;
    assert_eq!(live(&rig)["data"]["value"], "2");
    assert_eq!(deletes(&rig.edge("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_deployment_made_is_not_taken_from_it() {
    let rig = Rig::new(&["a"]);
    rig.conflicts(ConflictPolicy::Force);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.target_of("till", &on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until("the other one says so", |rig| {
        rig.row_of("till", "a").and_then(|row| row.error).is_some_and(|error| error.reason == "Conflict")
    })
    .await;
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_writes_back_what_was_forced_is_named() {
    let rig = meeting(ConflictPolicy::Force, "theirs").await;
    rig.until_complete("a").await;
    for _ in 0..1800 {
        if live(&rig)["data"]["value"] == "1" {
            take(&rig.edge("a"), "other-operator", &config("c", "theirs")).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let error = rig.until_reason("a", "DriftFight").await.error.unwrap();
    assert!(error.message.contains("other-operator"), "{}", error.message);
    let writes = rig.edge("a").writes().iter().filter(|w| w.manager.starts_with("emco-")).count();
    assert!((5..=17).contains(&writes), "{writes} writes in half an hour");
}

/// One that replaces whole objects takes our marks off, too.
#[tokio::test(start_paused = true)]
async fn a_controller_that_takes_our_marks_off_is_named_too() {
    let rig = meeting(ConflictPolicy::Force, "theirs").await;
    rig.until_complete("a").await;
    let theirs = json!({"metadata": {"labels": null, "annotations": null}, "data": {"value": "theirs"}});
    for _ in 0..1800 {
        if !mark(&rig).is_null() {
            let request = Request::new(Method::Patch, MAP)
                .query("fieldManager", "other-operator")
                .body(Content::Merge, &theirs);
            rig.edge("a").send(request).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let error = rig.until_reason("a", "DriftFight").await.error.unwrap();
    assert!(error.message.contains("other-operator"), "{}", error.message);
    let writes = rig.edge("a").writes().iter().filter(|w| w.manager.starts_with("emco-")).count();
    assert!((5..=17).contains(&writes), "{writes} writes in half an hour");
}

#[tokio::test(start_paused = true)]
async fn the_object_of_a_hook_is_never_taken_over() {
    let rig = Rig::new(&["a"]);
    rig.conflicts(ConflictPolicy::Force);
    rig.edge("a").put("kubectl", &job("migrate"));
    rig.start().await;
    let hooked = vec![hook(job("migrate"), &["pre-install"], 0, &[]), manifest(config("d", "1"), None)];
    rig.target(&on("a", &[app_of("web", hooked)])).await;
    rig.until_reason("a", "NotOurs").await;
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

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_takeover_leaves_one_adopted_object() {
    for policy in [ConflictPolicy::AdoptIfSame, ConflictPolicy::Adopt, ConflictPolicy::Force] {
        // The takeover, an object beside it, an update, the release.
        for n in 0..6 {
            for lost in [false, true] {
                let rig = Rig::new(&["a"]);
                rig.conflicts(policy);
                rig.edge("a").put("kubectl", &config("c", "1"));
                let died = Arc::new(tokio::sync::Notify::new());
                let (bell, count) = (died.clone(), AtomicU64::new(0));
                rig.edge("a").faults(Some(Arc::new(move |request, _| {
                    let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
                    if request.method == Method::Get || dry || count.fetch_add(1, Ordering::Relaxed) != n {
                        return None;
                    }
                    bell.notify_one();
                    let gone = ApiError::Unreachable {
                        reason: "ConnectionLost",
                        message: "the process died".to_owned(),
                    };
                    Some(if lost { Fault::LoseAnswer } else { Fault::Refuse(gone) })
                })));
                let set = |value: &str| on("a", &[app("web", vec![config("c", value), config("d", "1")])]);
                rig.start().await;
                rig.target(&set("1")).await;
                let on_its_way = async {
                    rig.until_complete("a").await;
                    rig.target(&set("2")).await;
                    rig.until_complete("a").await;
                    rig.target(&nowhere()).await;
                    rig.until_complete("a").await;
                };
                tokio::select! {
                    () = on_its_way => {}
                    () = died.notified() => {}
                }
                rig.crash().await;
                rig.edge("a").faults(None);
                rig.start().await;
                // Released with 2, it differs from 1; not taken over yet, from 2.
                if n < 3 {
                    rig.target(&set("1")).await;
                    rig.until_complete("a").await;
                }
                rig.target(&set("2")).await;
                rig.until_complete("a").await;
                assert_eq!((live(&rig)["data"]["value"].clone(), mark(&rig)), (json!("2"), json!("true")));
                rig.target(&nowhere()).await;
                rig.until_complete("a").await;
                assert!(
                    rig.edge("a").object(MAP).is_some(),
                    "{policy:?} {n} {lost}: what was there before is there"
                );
                assert!(rig.ours("a").is_empty(), "{policy:?} {n} {lost}");
            }
        }
    }
}
