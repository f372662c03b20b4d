//! A hub restored without statuses: which hooks ran is what the clusters prove.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::State;
use emco_engine::set::{ManifestSet, SetManifest};
use serde_json::json;

use super::deaths;
use super::hooks::patched;
use super::rig::*;

/// A hub made of copies without statuses: what it says of the rows is gone, the specs are as they were.
async fn statuses_are_lost(rig: &Rig) {
    rig.crash().await;
    let path = "/apis/emco.io/v1alpha1/namespaces/team-a/syncshards/dig-shop-s00";
    let mut shard = rig.hub.object(path).unwrap();
    rig.hub.remove(path);
    shard.as_object_mut().unwrap().remove("status");
    shard["metadata"].as_object_mut().unwrap().retain(|key, _| ["name", "namespace"].contains(&key.as_str()));
    rig.hub.put("restore", &shard);
    patched(rig);
    rig.start().await;
}

/// Its only hook is of the installation.
fn drawn_once(value: &str) -> Arc<ManifestSet> {
    let draw = hook(job(&format!("draw-{value}")), &["pre-install"], 0, &[]);
    app_of("web", vec![draw, manifest(config("c", value), None)])
}

#[tokio::test(start_paused = true)]
async fn hooks_before_an_installation_do_not_run_again_when_statuses_are_lost() {
    for values in [&["1"][..], &["1", "2"]] {
        let rig = Rig::new(&["a"]);
        rig.start().await;
        for value in values {
            rig.target(&on("a", &[drawn_once(value)])).await;
            rig.until_complete("a").await;
        }
        rig.edge("a").remove("/apis/batch/v1/namespaces/shop/jobs/draw-1");
        statuses_are_lost(&rig).await;
        rig.until_complete("a").await;
        let writes: Vec<_> = rig.edge("a").writes().into_iter().map(|write| write.path).collect();
        let of_app: Vec<_> = writes.iter().filter(|path| path.contains("/namespaces/shop/")).collect();
        assert!(of_app.is_empty(), "{values:?}: {of_app:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_nothing_proves_to_have_run_runs_when_statuses_are_lost() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[drawn_once("1")])).await;
    rig.until_complete("a").await;
    // As if the hub had been lost before the first object of the app was sent.
    for gone in ["/api/v1/namespaces/shop/configmaps/c", "/apis/batch/v1/namespaces/shop/jobs/draw-1"] {
        rig.edge("a").remove(gone);
    }
    statuses_are_lost(&rig).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["draw-1", "c"]);
    // A hook after the rest may have been missed: it runs once more.
    let rig = Rig::new(&["a"]);
    rig.start().await;
    let announce = hook(job("announce"), &["post-install"], 0, &["hook-succeeded"]);
    rig.target(&on("a", &[app_of("web", vec![manifest(config("c", "1"), None), announce])])).await;
    rig.until_complete("a").await;
    statuses_are_lost(&rig).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["announce"]);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_revision_that_is_there_is_upgraded_when_statuses_are_lost() {
    let set = |value: &str| {
        let install = hook(job("install"), &["pre-install"], 0, &["hook-succeeded"]);
        let upgrade = hook(job("upgrade"), &["pre-upgrade"], 0, &["hook-succeeded"]);
        app_of("web", vec![install, upgrade, manifest(config("c", value), None)])
    };
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[set("1")])).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["install", "c"]);
    rig.crash().await;
    rig.target(&on("a", &[set("2")])).await;
    statuses_are_lost(&rig).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["upgrade", "c"]);
}

/// Hooks around an installation and an upgrade that are done when they are there, and go then.
fn around(before: bool) -> Vec<SetManifest> {
    let brief = |name: &str, event: &str| hook(config(name, "1"), &[event], 0, &["hook-succeeded"]);
    let mut hooks = vec![brief("installed", "post-install"), brief("upgraded", "post-upgrade")];
    if before {
        hooks.extend([brief("install", "pre-install"), brief("upgrade", "pre-upgrade")]);
    }
    hooks
}

/// An app with a workload and an object of this revision alone, besides its hooks.
fn revision(value: &str) -> Arc<ManifestSet> {
    let mut all = around(true);
    let image = format!("nginx:{value}");
    let objects = [config("c", value), config(&format!("only-{value}"), "1"), deployment("web", &image)];
    all.extend(objects.map(|json| manifest(json, None)));
    app_of("web", all)
}

/// A first revision is on the cluster and a second one is the target; the operator is stopped.
async fn before_an_upgrade() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[revision("1")])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    rig.target(&on("a", &[revision("2")])).await;
    rig
}

/// The hooks among these names.
fn hooks_of(names: Vec<String>) -> Vec<String> {
    let all = ["install", "installed", "upgrade", "upgraded"];
    names.into_iter().filter(|name| all.contains(&name.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_waits_for_readiness_stays_one_when_statuses_are_lost() {
    let rig = before_an_upgrade().await;
    rig.edge("a").set_workloads_ready(false);
    statuses_are_lost(&rig).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(!rig.complete("a"), "the old object waits for the workload");
    rig.edge("a").set_workloads_ready(true);
    let touched = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"touched": "yes"}}});
    rig.edge("a").put("kubelet", &touched);
    rig.until_complete("a").await;
    assert_eq!(hooks_of(patched(&rig)), ["upgrade", "upgraded"]);
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_status_write_of_an_upgrade_runs_no_install_hook() {
    for death in deaths::all(0, 8) {
        let rig = before_an_upgrade().await;
        let story = async {
            statuses_are_lost(&rig).await;
            rig.until_complete("a").await;
        };
        death.strikes(&rig, story).await;
        rig.until_complete("a").await;
        let hooks = hooks_of(patched(&rig));
        assert!(hooks.iter().all(|name| name.starts_with("upgrade")), "{death:?}: {hooks:?}");
        assert!(hooks.contains(&"upgraded".to_owned()), "{death:?}: {hooks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_follows_an_interrupted_upgrade_is_an_upgrade() {
    let rig = before_an_upgrade().await;
    rig.edge("a").set_workloads_ready(false);
    statuses_are_lost(&rig).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    rig.crash().await;
    assert_eq!(hooks_of(patched(&rig)), ["upgrade", "upgraded"]);
    rig.target(&on("a", &[revision("3")])).await;
    rig.edge("a").set_workloads_ready(true);
    rig.start().await;
    rig.until_complete("a").await;
    assert_eq!(hooks_of(patched(&rig)), ["upgrade", "upgraded"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_that_ran_stay_done_for_a_suspended_row_without_status() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[drawn_once("1")])).await;
    rig.until_complete("a").await;
    rig.edge("a").remove("/apis/batch/v1/namespaces/shop/jobs/draw-1");
    rig.suspend(true);
    statuses_are_lost(&rig).await;
    let stopped = |rig: &Rig| rig.row("a").is_some_and(|row| row.state == State::InstantiateStopped);
    rig.until("it stands still", stopped).await;
    rig.crash().await;
    rig.start().await;
    rig.suspend(false);
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_with_hooks_after_it_alone_is_known_when_statuses_are_lost() {
    let set = |value: &str| {
        let mut all = around(false);
        all.push(manifest(config("c", value), None));
        on("a", &[app_of("web", all)])
    };
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&set("1")).await;
    rig.until_complete("a").await;
    rig.crash().await;
    rig.target(&set("2")).await;
    statuses_are_lost(&rig).await;
    rig.until_complete("a").await;
    assert_eq!(patched(&rig), ["c", "upgraded"]);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_comes_before_the_cluster_answers_is_an_upgrade_too() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[revision("1")])).await;
    rig.until_complete("a").await;
    rig.edges.set_down(&cluster("a"), true);
    statuses_are_lost(&rig).await;
    rig.until_reason("a", "Unreachable").await;
    rig.target(&on("a", &[revision("2")])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edges.set_down(&cluster("a"), false);
    rig.until_complete("a").await;
    assert_eq!(hooks_of(patched(&rig)), ["upgrade", "upgraded"]);
}
