//! When an update removes what a revision does not have any more: after, between or before.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::PrunePolicy;
use emco_crds::{RowStatus, State};
use serde_json::{Value, json};

use super::deaths;
use super::rig::*;
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::{Fault, MemoryServer, Watching};

const OLD: &str = "/api/v1/namespaces/shop/configmaps/old";

fn first() -> Value {
    config("old", "1")
}

/// A rig whose cluster has `old` and `stays`, with the next revision to be pruned so.
async fn installed(prune: PrunePolicy, old: Value) -> Rig {
    installed_on(Watching::Works, prune, old).await
}

async fn installed_on(watching: Watching, prune: PrunePolicy, old: Value) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_watching(watching);
    rig.prune(prune);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![old, config("stays", "1"), deployment("web", "nginx:1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig
}

fn second() -> Vec<Value> {
    vec![config("new", "1"), config("stays", "1"), deployment("web", "nginx:2")]
}

/// Writes as `Method name`, in their order.
fn writes(edge: &MemoryServer) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    edge.writes().iter().map(|write| format!("{:?} {}", write.method, name(&write.path))).collect()
}

fn held(mut object: Value, by: &str) -> Value {
    object["metadata"]["finalizers"] = json!([by]);
    object
}

/// Takes the finalizers of an object off, as their controller would.
async fn let_go(edge: &MemoryServer, path: &str) {
    edge.merge(path, &json!({"metadata": {"finalizers": null}})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pruning_before_applies_nothing_until_all_old_is_gone() {
    let rig = installed(PrunePolicy::Before, first()).await;
    rig.target(&on("a", &[app("web", second())])).await;
    rig.until_complete("a").await;
    let writes = writes(&rig.edge("a"));
    assert_eq!(writes.first().map(String::as_str), Some("Delete old"), "{writes:?}");
    assert_eq!(writes.len(), 3, "what both revisions have is not written: {writes:?}");
    assert_eq!(
        rig.ours("a"),
        ["configmaps./shop/new", "configmaps./shop/stays", "deployments.apps/shop/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn pruning_after_apply_does_not_wait_for_readiness() {
    let rig = installed(PrunePolicy::AfterApply, first()).await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &[app("web", second())])).await;
    rig.until_complete("a").await;
    let writes = writes(&rig.edge("a"));
    assert_eq!(writes.last().map(String::as_str), Some("Delete old"), "{writes:?}");
    let row = rig.row("a").unwrap();
    assert!(row.ready < row.total, "the workload is not ready: {row:?}");
}

/// The event says nothing that the answer did not.
#[tokio::test(start_paused = true)]
async fn a_held_object_is_named_where_answers_come_before_events() {
    let rig = installed_on(Watching::Late, PrunePolicy::Before, held(first(), "example.com/hold")).await;
    rig.target(&on("a", &[app("web", second())])).await;
    let error = rig.until_reason("a", "BlockedByPrune").await.error.unwrap();
    assert!(error.message.contains("example.com/hold"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_held_object_that_must_go_first_is_named_with_its_finalizer() {
    let rig = installed(PrunePolicy::Before, held(first(), "example.com/hold")).await;
    rig.target(&on("a", &[app("web", second())])).await;
    let row = rig.until_reason("a", "BlockedByPrune").await;
    assert_eq!(row.state, State::Updating, "it waits, and is no failure yet");
    let error = row.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/shop/old"));
    for part in ["example.com/hold", "spec.sync.prune: Before"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert_eq!(writes(&rig.edge("a")), ["Delete old"]);
    rig.until("it failed after the deadline", |rig| {
        rig.row("a").is_some_and(|row| row.state == State::UpdateFailed)
    })
    .await;
    assert_eq!(rig.row("a").unwrap().error.unwrap().reason, "BlockedByPrune");
    let_go(&rig.edge("a"), OLD).await;
    rig.until_complete("a").await;
    rig.until("nothing is said any more", |rig| rig.row("a").is_some_and(|row| row.error.is_none())).await;
}

#[tokio::test(start_paused = true)]
async fn a_held_object_that_goes_last_is_named_and_fails_with_the_deadline() {
    for gone in [on("a", &[app("web", second())]), nowhere()] {
        let rig = installed(PrunePolicy::AfterReady, held(first(), "example.com/hold")).await;
        rig.target(&gone).await;
        let said = |row: RowStatus, reason: &str| {
            let error = row.error.unwrap();
            assert_eq!((error.resource.as_deref(), &*error.reason), (Some("ConfigMap/shop/old"), reason));
            for part in ["it is being deleted since 20", "waits for its finalizers: example.com/hold"] {
                assert!(error.message.contains(part), "{part}: {}", error.message);
            }
        };
        let row = rig.until_reason("a", "Terminating").await;
        assert!(matches!(row.state, State::Updating | State::Terminating), "it is no failure yet: {row:?}");
        said(row, "Terminating");
        rig.edge("a").take_seen();
        let row = rig.until_reason("a", "ProgressDeadlineExceeded").await;
        assert!(matches!(row.state, State::UpdateFailed | State::TerminateFailed), "{row:?}");
        said(row, "ProgressDeadlineExceeded");
        assert_eq!(writes(&rig.edge("a")), Vec::<String>::new(), "it was asked to go once");
        let_go(&rig.edge("a"), OLD).await;
        rig.until_complete("a").await;
        rig.until("nothing is said any more", |rig| rig.row("a").is_none_or(|row| row.error.is_none())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_lost_its_label_stays_and_is_counted_and_named() {
    let rig = installed(PrunePolicy::AfterReady, first()).await;
    rig.crash().await;
    let stripped = json!({"metadata": {"labels": {"emco.io/owner": null}}});
    rig.edge("a").merge(OLD, &stripped).await.unwrap();
    rig.target(&nowhere()).await;
    rig.start().await;
    rig.until_complete("a").await;
    let named = |rig: &Rig| rig.row("a").unwrap().stripped.map(|it| (it.objects, it.first));
    assert_eq!(named(&rig), Some((1, vec!["ConfigMap/shop/old".to_owned()])));
    assert!(rig.edge("a").object(OLD).is_some(), "it counts as somebody else's");
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(named(&rig).is_some(), "another process says the same");
}

#[tokio::test(start_paused = true)]
async fn a_removal_of_moments_is_not_called_blocked() {
    for prune in [PrunePolicy::Before, PrunePolicy::AfterReady] {
        let rig = installed(prune, held(first(), "example.com/hold")).await;
        rig.hub.take_seen();
        rig.target(&on("a", &[app("web", second())])).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(rig.row("a").and_then(|row| row.error), None);
        let_go(&rig.edge("a"), OLD).await;
        rig.until_complete("a").await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(rig.row("a").unwrap().error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_removal_that_must_come_first_keeps_the_servers_words() {
    let rig = installed(PrunePolicy::Before, first()).await;
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        (request.method == Method::Delete).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "configmaps \"old\" is forbidden: User \"emco\" cannot delete".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.target(&on("a", &[app("web", second())])).await;
    let row = rig.until_reason("a", "BlockedByPrune").await;
    assert_eq!(row.state, State::UpdateFailed);
    let (target, shard) = (row.target.clone(), rig.shard());
    assert!(target.is_some() && target == shard.spec.clusters[0].target, "{target:?} failed");
    let message = row.error.unwrap().message;
    assert!(message.contains("Forbidden: ") && message.contains("cannot delete"), "{message}");
    assert!(rig.edge("a").object("/api/v1/namespaces/shop/configmaps/new").is_none());
    rig.edge("a").faults(None);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_blocked_update_goes_on_once_pruning_comes_last() {
    let rig = installed(PrunePolicy::Before, held(first(), "example.com/hold")).await;
    rig.target(&on("a", &[app("web", second())])).await;
    rig.until_reason("a", "BlockedByPrune").await;
    rig.prune(PrunePolicy::AfterReady);
    rig.until("the new revision is applied", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/new").is_some()
    })
    .await;
    assert!(!rig.complete("a"));
    let_go(&rig.edge("a"), OLD).await;
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_earlier_revision_blocks_what_comes_after_its_removal() {
    let rig = installed(PrunePolicy::Before, first()).await;
    rig.crash().await;
    let packs = rig.hub.objects();
    for path in packs.keys().filter_map(|key| key.strip_prefix("configmaps./emco-system/")) {
        rig.hub.remove(&format!("/api/v1/namespaces/emco-system/configmaps/{path}"));
    }
    rig.target(&on("a", &[app("web", second())])).await;
    rig.start().await;
    rig.until_reason("a", "ContentLost").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(rig.edge("a").writes().is_empty(), "{:?}", rig.edge("a").writes());
}

#[tokio::test(start_paused = true)]
async fn hooks_of_an_app_that_leaves_run_before_anything_new_comes() {
    let rig = Rig::new(&["a"]);
    rig.prune(PrunePolicy::Before);
    rig.start().await;
    let leaves = app_of(
        "db",
        vec![manifest(config("db", "1"), None), hook(job("bye"), &["pre-delete"], 0, &["hook-succeeded"])],
    );
    rig.target(&on("a", &[app("web", vec![config("c", "1")]), leaves])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!(writes(&rig.edge("a")), ["Patch bye", "Delete bye", "Delete db", "Patch c"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_an_update_that_prunes_early_ends_exactly() {
    for policy in [PrunePolicy::Before, PrunePolicy::AfterApply] {
        let undisturbed = installed(policy, first()).await;
        undisturbed.target(&on("a", &[app("web", second())])).await;
        undisturbed.until_complete("a").await;
        for death in deaths::all(4, 5) {
            let rig = installed(policy, first()).await;
            let story = async {
                rig.target(&on("a", &[app("web", second())])).await;
                rig.until_complete("a").await;
            };
            death.strikes(&rig, story).await;
            rig.until_complete("a").await;
            rig.until("nothing is said any more", |rig| rig.row("a").is_some_and(|row| row.error.is_none()))
                .await;
            assert_eq!(deaths::end(&rig), deaths::end(&undisturbed), "{policy:?} {death:?}");
            rig.target(&nowhere()).await;
            rig.until_complete("a").await;
            assert!(rig.ours("a").is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pruning_before_waits_for_what_the_label_alone_shows() {
    let rig = installed(PrunePolicy::Before, first()).await;
    rig.crash().await;
    // A hub made anew has no inventory of what is there.
    rig.hub.remove(&format!("{SHARDS}/dig-shop-s00"));
    rig.target(&on("a", &[app("web", second())])).await;
    rig.start().await;
    rig.until_complete("a").await;
    let writes = writes(&rig.edge("a"));
    assert_eq!(writes.first().map(String::as_str), Some("Delete old"), "{writes:?}");
}
