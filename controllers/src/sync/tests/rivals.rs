//! Others who want the same object: another deployment, or a controller that writes back what was taken over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::marks;
use serde_json::{Value, json};

use super::adopt::{MAP, deletes, hold_looks, live, looked, mark, meeting};
use super::rig::*;
use crate::api::{ApiError, ApiServer as _, ApiServerExt as _, Content, Method, Request};
use crate::memory::{Fault, MemoryServer};

/// Writes fields as another manager that takes them.
async fn take(edge: &MemoryServer, manager: &str, object: &Value) {
    let request = Request::new(Method::Patch, MAP)
        .query("fieldManager", manager)
        .query("force", "true")
        .body(Content::Apply, object);
    edge.send(request).await.unwrap();
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
async fn tries_that_put_nothing_right_are_no_rounds_of_a_fight() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    rig.until("all is applied", |rig| rig.ours("a").len() == 2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let tries = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&tries);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let engine = |(key, value): &(&str, String)| *key == "fieldManager" && value.starts_with("emco-");
        if request.method != Method::Patch || request.path != MAP || !request.query.iter().any(engine) {
            return None;
        }
        count.fetch_add(1, Ordering::Relaxed);
        let (reason, message) = ("Forbidden".to_owned(), "it is not allowed".to_owned());
        let causes = Vec::new();
        Some(Fault::Refuse(ApiError::Status { code: 403, reason, message, retry_after: None, causes }))
    })));
    let off = json!({"metadata": {"labels": null}});
    let request =
        Request::new(Method::Patch, MAP).query("fieldManager", "other-operator").body(Content::Merge, &off);
    rig.edge("a").send(request).await.unwrap();
    rig.until("it is refused again and again", |_| tries.load(Ordering::Relaxed) == 6).await;
    rig.edge("a").faults(None);
    let asked = tokio::time::Instant::now();
    rig.request("now");
    rig.until("it is marked again", |rig| rig.ours("a").len() == 2).await;
    assert!(asked.elapsed() < Duration::from_secs(5), "no pause of a fight: {:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn of_two_deployments_that_force_one_object_at_once_one_has_it() {
    let rig = Rig::new(&["a"]);
    rig.conflicts(ConflictPolicy::Force);
    rig.edge("a").put("kubectl", &config("c", "theirs"));
    let [first, second] = hold_looks(&rig, 2);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.target_of("till", &on("a", &[app("web", vec![config("c", "2")])])).await;
    // Both look once before the lists came, and once again: then both know the same object of others.
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.add_permits(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    second.add_permits(1);
    let named = |rig: &Rig, owner: &str| {
        let error = rig.row_of(owner, "a").and_then(|row| row.error);
        error.is_some_and(|error| error.reason == "Conflict" && error.message.contains("belongs to"))
    };
    rig.until("one of them says so", |rig| named(rig, "shop") || named(rig, "till")).await;
    let owner = marks::owner_of(&live(&rig)).map(str::to_owned);
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_ne!(named(&rig, "shop"), named(&rig, "till"), "the other one has it");
    let (had, now) = (owner.as_deref(), live(&rig));
    assert_eq!(marks::owner_of(&now), had, "it is not taken from the first");
    assert_eq!(now["data"]["value"], if had == Some(rig.hash.as_str()) { "1" } else { "2" });
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_deployment_took_since_the_look_stays_there() {
    for policy in [ConflictPolicy::AdoptIfSame, ConflictPolicy::Adopt, ConflictPolicy::Force] {
        let (rig, gate) = looked(policy, 1).await;
        let theirs = json!({"metadata": {"labels": {"emco.io/owner": "other"}, "annotations": {"emco.io/placed-by": "b/x"}}});
        rig.edge("a").merge(MAP, &theirs).await.unwrap();
        gate.add_permits(1);
        rig.until("it says whose it is", |rig| {
            rig.row("a")
                .and_then(|row| row.error)
                .is_some_and(|error| error.message.contains("belongs to b/x"))
        })
        .await;
        assert_eq!(marks::owner_of(&live(&rig)), Some("other"), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stripped_object_that_another_took_since_the_look_stays_there() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    rig.edge("a").merge(MAP, &json!({"metadata": {"labels": null}})).await.unwrap();
    // One look before the lists came, and one afterwards.
    let [first, second] = hold_looks(&rig, 1);
    first.add_permits(1);
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.start().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let theirs = json!({"metadata": {"labels": {"emco.io/owner": "other"}, "annotations": {"emco.io/placed-by": "b/x"}}});
    rig.edge("a").merge(MAP, &theirs).await.unwrap();
    second.add_permits(1);
    rig.until("it says whose it is", |rig| {
        rig.row("a").and_then(|row| row.error).is_some_and(|error| error.message.contains("belongs to b/x"))
    })
    .await;
    let now = live(&rig);
    assert_eq!((marks::owner_of(&now), now["data"]["value"].as_str()), (Some("other"), Some("1")));
}
