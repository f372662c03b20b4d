//! Hooks run where they belong, once, and their failure is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emco_engine::set::ManifestSet;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiError, ApiServer, ApiServerExt, Method};
use crate::memory::Fault;

fn web(image: &str) -> Arc<ManifestSet> {
    app_of(
        "web",
        vec![
            hook(job("migrate"), &["pre-install", "pre-upgrade"], 0, &["before-hook-creation"]),
            hook(job("announce"), &["post-install"], 5, &["hook-succeeded"]),
            hook(job("backup"), &["pre-delete"], 0, &[]),
            hook(job("farewell"), &["post-delete"], 0, &[]),
            manifest(deployment("web", image), None),
        ],
    )
}

/// Names of what was applied since the last question.
pub fn patched(rig: &Rig) -> Vec<String> {
    let last = |path: String| path.rsplit('/').next().unwrap().to_owned();
    let seen = rig.edge("a").take_seen();
    seen.into_iter().filter(|s| s.method == Method::Patch).map(|s| last(s.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn hooks_run_before_and_after_the_rest_and_each_life_has_its_own() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[web("nginx:1")])).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["migrate", "web", "announce"]);
    rig.until("hook-succeeded is honoured", |rig| {
        rig.edge("a").object("/apis/batch/v1/namespaces/shop/jobs/announce").is_none()
    })
    .await;
    rig.target(&on("a", &[web("nginx:2")])).await;
    rig.until_complete("a").await;
    assert_eq!(
        patched(&rig),
        ["migrate", "web"],
        "an upgrade runs the upgrade's hooks, the same Job made anew"
    );
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["backup", "farewell"]);
    assert!(rig.ours("a").is_empty(), "{:?}", rig.ours("a"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_not_end_holds_the_rest_and_fails_by_its_timeout() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[web("nginx:1")])).await;
    let row = rig.until_reason("a", "HookFailed").await;
    assert_eq!(row.state, emco_crds::State::InstantiateFailed);
    assert!(row.error.unwrap().message.contains("did not end within 5m (spec.hookTimeout)"));
    assert!(rig.edge("a").object("/apis/apps/v1/namespaces/shop/deployments/web").is_none());
    rig.edge("a").set_workloads_ready(true);
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn going_back_to_an_earlier_set_runs_its_hooks_again() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    for image in ["nginx:1", "nginx:2", "nginx:1"] {
        rig.target(&on("a", &[web(image)])).await;
        rig.until_complete("a").await;
        assert!(patched(&rig).contains(&"migrate".to_owned()), "{image}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_needs_goes_after_the_last_hook_of_its_event_and_is_made_again_for_a_later_one() {
    let both = &["pre-install", "post-install"];
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account", "namespace": "shop"}});
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let set = app_of(
        "web",
        vec![
            hook(account, both, 0, &["before-hook-creation", "hook-succeeded"]),
            hook(job("before"), &["pre-install"], 1, &["hook-succeeded"]),
            manifest(config("c", "1"), None),
            hook(job("after"), &["post-install"], 1, &["hook-succeeded"]),
        ],
    );
    rig.target(&on("a", &[set])).await;
    rig.until_complete("a").await;
    let last = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let writes = rig.edge("a").writes();
    let patches = |s: &&crate::memory::Seen| s.method == Method::Patch;
    let applied: Vec<_> = writes.iter().filter(patches).map(|s| last(&s.path)).collect();
    assert_eq!(applied, ["account", "before", "c", "account", "after"]);
    let order: Vec<_> = writes.iter().map(|s| (s.method, last(&s.path))).collect();
    let at = |method, name: &str| order.iter().position(|step| *step == (method, name.to_owned())).unwrap();
    assert!(at(Method::Delete, "account") > at(Method::Patch, "before"), "{order:?}");
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}

/// What the cluster does to a Job with `ttlSecondsAfterFinished: 0`, faster than anybody can look.
async fn end_and_delete(rig: &Rig, name: &str, status: Value, finalizer: bool) {
    let path = format!("/apis/batch/v1/namespaces/shop/jobs/{name}");
    rig.until(&format!("{name} is there"), |rig| rig.edge("a").object(&path).is_some()).await;
    let edge = rig.edge("a");
    let mut job = edge.object(&path).unwrap();
    if finalizer {
        job["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        job = edge.replace(&path, &job).await.unwrap();
    }
    job["status"] = status;
    edge.replace(&format!("{path}/status"), &job).await.unwrap();
    edge.send(crate::api::Request::new(Method::Delete, &path)).await.unwrap();
}

fn ended() -> Value {
    json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_deleted_the_moment_it_ends_has_run() {
    for finalizer in [false, true] {
        let rig = Rig::new(&["a"]);
        rig.edge("a").set_workloads_ready(false);
        rig.start().await;
        let set = app_of(
            "web",
            vec![
                hook(job("migrate"), &["pre-install"], 0, &["before-hook-creation", "hook-succeeded"]),
                manifest(config("c", "1"), None),
            ],
        );
        rig.target(&on("a", &[set])).await;
        end_and_delete(&rig, "migrate", ended(), finalizer).await;
        if finalizer {
            // It stays a while after its end; only its going is waited for, not another run.
            rig.until("the hook is done", |rig| {
                rig.row("a").is_some_and(|row| row.hooks.iter().any(|h| !h.done.is_empty()))
            })
            .await;
            let path = "/apis/batch/v1/namespaces/shop/jobs/migrate";
            let mut job = rig.edge("a").object(path).unwrap();
            job["metadata"]["finalizers"] = json!([]);
            rig.edge("a").replace(path, &job).await.unwrap();
        }
        rig.until_complete("a").await;
        assert_eq!(patched(&rig), ["migrate", "c"], "with a finalizer: {finalizer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_and_is_deleted_at_once_has_failed() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    rig.target(&on("a", &[web("nginx:1")])).await;
    let failed = json!({"conditions": [{"type": "Failed", "status": "True", "message": "no table"}]});
    end_and_delete(&rig, "migrate", failed, false).await;
    let row = rig.until_reason("a", "HookFailed").await;
    assert!(row.error.unwrap().message.contains("no table"));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_removes_itself_is_carried_out_once() {
    let mut once = job("seed");
    once["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let rig = Rig::new(&["a"]);
    rig.edge("a").set_workloads_ready(false);
    rig.start().await;
    let sets = |value: &str| {
        let plain = app_of("plain", vec![manifest(config("c", value), None)]);
        on("a", &[app_of("web", vec![manifest(once.clone(), None)]), plain])
    };
    rig.target(&sets("1")).await;
    end_and_delete(&rig, "seed", ended(), false).await;
    rig.until_complete("a").await;
    let row = rig.row("a").unwrap();
    assert_eq!(row.state, emco_crds::State::Instantiated);
    // Neither a restart nor a change of another app runs it again.
    rig.crash().await;
    rig.start().await;
    rig.target(&sets("2")).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig).iter().filter(|name| *name == "seed").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_somebody_deletes_before_it_ends_is_made_again() {
    let mut once = job("seed");
    once["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let path = "/apis/batch/v1/namespaces/shop/jobs/seed";
    let failed = json!({"conditions": [{"type": "Failed", "status": "True", "message": "no table"}]});
    for status in [None, Some(failed)] {
        let rig = Rig::new(&["a"]);
        rig.start().await;
        rig.target(&on("a", &[app_of("web", vec![manifest(once.clone(), None)])])).await;
        rig.until_complete("a").await;
        // It runs again, say after its node was lost, when the row is complete already.
        rig.edge("a").set_workloads_ready(false);
        let mut live = rig.edge("a").object(path).unwrap();
        live["status"] = json!({"active": 1});
        rig.edge("a").replace(&format!("{path}/status"), &live).await.unwrap();
        match status {
            Some(status) => end_and_delete(&rig, "seed", status, false).await,
            None => rig.edge("a").remove(path),
        }
        let again =
            |rig: &Rig| rig.row("a").and_then(|row| row.drift).is_some_and(|drift| drift.corrected == 1);
        rig.until("it is made again", again).await;
        end_and_delete(&rig, "seed", ended(), false).await;
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert!(again(&rig) && rig.edge("a").object(path).is_none(), "once it ended, it is done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_before_and_after_the_rest_runs_both_times_though_it_has_no_delete_policy() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let set = |value: &str| {
        let events = ["pre-install", "post-install", "pre-upgrade", "post-upgrade"];
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": "shop"}});
        let both = vec![
            hook(account, &events, -1, &[]),
            hook(job("both"), &events, 0, &[]),
            manifest(config("c", value), None),
        ];
        on("a", &[app_of("web", both)])
    };
    for value in ["1", "2"] {
        rig.target(&set(value)).await;
        rig.until_complete("a").await;
        assert_eq!(patched(&rig), ["runner", "both", "c", "runner", "both"], "at {value}");
    }
    // Neither is it taken for done when the operator ends between the two.
    rig.edge("a").set_workloads_ready(false);
    rig.target(&set("3")).await;
    let path = "/apis/batch/v1/namespaces/shop/jobs/both";
    let running =
        |rig: &Rig| rig.edge("a").object(path).is_some_and(|job| job["status"]["succeeded"].is_null());
    rig.until("the first one runs", running).await;
    rig.crash().await;
    rig.edge("a").set_workloads_ready(true);
    let mut done = rig.edge("a").object(path).unwrap();
    done["status"] = ended();
    rig.edge("a").replace(&format!("{path}/status"), &done).await.unwrap();
    rig.start().await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["runner", "both", "c", "runner", "both"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_object_of_others_is_kept_where_its_kind_may_not_be_listed() {
    let path = "/apis/batch/v1/namespaces/shop/jobs/migrate";
    let set = |value: &str| {
        let migrate = hook(job("migrate"), &["pre-install", "pre-upgrade"], 0, &["before-hook-creation"]);
        on("a", &[app_of("web", vec![migrate, manifest(config("c", value), None)])])
    };
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&set("1")).await;
    rig.until_complete("a").await;
    rig.crash().await;
    let edge = rig.edge("a");
    let adopted = json!({"metadata": {"annotations": {"emco.io/adopted": "true"}}});
    edge.merge(path, &adopted).await.unwrap();
    edge.faults(Some(Arc::new(|request, _| {
        (request.method == Method::Get && request.path.ends_with("/jobs")).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "User \"hub\" cannot list jobs at the cluster scope".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    edge.take_seen();
    rig.target(&set("2")).await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(edge.writes().is_empty(), "{:?}", edge.writes());
    assert!(edge.take_seen().iter().any(|seen| seen.path == path), "it is looked at");
    assert!(edge.object(path).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_changed_while_it_was_cleared_is_looked_at_again() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[web("nginx:1")])).await;
    rig.until_complete("a").await;
    patched(&rig);
    let refused = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&refused);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        let (_, body) = request.body.as_ref().filter(|_| request.method == Method::Delete)?;
        let options: Value = serde_json::from_slice(body).ok()?;
        options.pointer("/preconditions/resourceVersion")?;
        let changed = ApiError::Status {
            code: 409,
            reason: "Conflict".to_owned(),
            message: "the object has been modified".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        (!once.swap(true, Ordering::Relaxed)).then_some(Fault::Refuse(changed))
    })));
    rig.target(&on("a", &[web("nginx:2")])).await;
    rig.until_complete("a").await;
    assert!(refused.load(Ordering::Relaxed), "the deletion names the version that was looked at");
    assert_eq!(patched(&rig), ["migrate", "web"]);
}
