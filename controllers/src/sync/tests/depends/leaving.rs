//! Apps that leave in reverse, and engines that die on the way.

use super::super::deaths::{Death, all, end};
use super::*;
use crate::api::Method;

/// Deletions in the order they were asked for, by name.
pub(super) fn deletions(rig: &Rig, cluster: &str) -> Vec<String> {
    let deletes = rig.edge(cluster).writes();
    let deletes = deletes.into_iter().filter(|seen| seen.method == Method::Delete);
    deletes.filter_map(|seen| seen.path.rsplit('/').next().map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn apps_leave_in_reverse_and_the_next_when_the_last_is_gone() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_workloads_ready(true);
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.edge("a").put(
        "somebody",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop", "finalizers": ["x/y"]}}),
    );
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&nowhere()).await;
    rig.until("it is being deleted", |rig| !deletions(rig, "a").is_empty()).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(deletions(&rig, "a"), ["web", "web"], "db waits for the end of all of web");
    rig.edge("a").put(
        "somebody",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop", "finalizers": []}}),
    );
    rig.until_complete("a").await;
    assert_eq!(deletions(&rig, "a"), ["web", "web", "db"]);
    assert!(rig.ours("a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn apps_of_other_kinds_leave_in_reverse_without_a_new_list() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_workloads_ready(true);
    let sets = [app("db", vec![config("db", "1")]), app("web", vec![deployment("web", "web:1")])];
    rig.target(&on("a", &sets)).await;
    rig.until_complete("a").await;
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(deletions(&rig, "a"), ["web", "db"]);
    let lists = rig.edge("a").take_seen().into_iter();
    let lists: Vec<_> = lists
        .filter(|seen| seen.method == Method::Get)
        .filter(|seen| seen.path.ends_with("/configmaps") || seen.path.ends_with("/deployments"))
        .map(|seen| seen.path)
        .collect();
    assert!(lists.is_empty(), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn apps_that_an_update_drops_leave_in_reverse() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_workloads_ready(true);
    let log = || app("log", vec![config("log", "1")]);
    rig.target(&on("a", &[both("db:1", "web:1"), vec![log()]].concat())).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.depends.lock().clear();
    rig.target(&on("a", &[log()])).await;
    rig.until_complete("a").await;
    let order = deletions(&rig, "a");
    assert_eq!(order.last().map(String::as_str), Some("db"), "{order:?}");
    assert_eq!(rig.ours("a"), ["configmaps./shop/log"]);
    rig.target(&on("a", &[app("log", vec![config("log", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.shard().spec.order, None, "the order of what is gone is forgotten");
}

/// An installation and an update with hooks on the way; every workload becomes ready at once.
fn stations() -> [BTreeMap<emco_engine::identity::ClusterId, Vec<Arc<ManifestSet>>>; 2] {
    let sets = |db: &str, web: &str| {
        let migrate = hook(job("migrate"), &["pre-install", "pre-upgrade"], 0, &["hook-succeeded"]);
        vec![
            app_of("db", vec![migrate, manifest(deployment("db", db), None)]),
            app("web", vec![deployment("web", web)]),
        ]
    };
    [on("a", &sets("db:1", "web:1")), on("a", &sets("db:2", "web:2"))]
}

async fn story(rig: &Rig) {
    for station in stations() {
        rig.target(&station).await;
        rig.until_complete("a").await;
    }
}

/// The end, without how often an object was changed on the way.
fn outcome(rig: &Rig) -> (BTreeMap<String, Value>, Value) {
    let (mut objects, row) = end(rig);
    for object in objects.values_mut() {
        object["status"].take();
    }
    (objects, row)
}

/// Whether `db` was always sent before `web`, at the installation and at the update.
fn assert_in_order(rig: &Rig, death: Death) {
    let sent = rig.edge("a").writes().into_iter().filter(|seen| seen.method == Method::Patch);
    let names = sent.filter_map(|seen| seen.path.rsplit('/').next().map(str::to_owned));
    let mut order: Vec<String> = names.filter(|name| name == "db" || name == "web").collect();
    // A write whose answer was lost is sent once more.
    order.dedup();
    // A death at the installation leaves the update alone.
    assert!(!order.is_empty() && order.chunks(2).all(|pair| pair == ["db", "web"]), "{death:?}: {order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_changes_neither_the_end_nor_the_order() {
    let plain = Rig::new(&["a"]);
    web_waits(&plain, on_db());
    plain.start().await;
    story(&plain).await;
    sleep(Duration::from_secs(30)).await;
    let wanted = outcome(&plain);
    for death in all(8, 4) {
        let rig = Rig::new(&["a"]);
        web_waits(&rig, on_db());
        rig.start().await;
        death.strikes(&rig, story(&rig)).await;
        rig.target(&stations()[1]).await;
        rig.until_complete("a").await;
        sleep(Duration::from_secs(30)).await;
        assert_eq!(outcome(&rig), wanted, "{death:?}");
        assert_in_order(&rig, death);
        rig.edge("a").take_seen();
        let crash = Death { n: death.n % 2, ..death };
        crash
            .strikes(&rig, async {
                rig.target(&nowhere()).await;
                rig.until_complete("a").await;
            })
            .await;
        rig.target(&nowhere()).await;
        rig.until_complete("a").await;
        assert!(rig.ours("a").is_empty(), "{death:?}");
        let order = deletions(&rig, "a");
        let last = |name: &str| order.iter().rposition(|deleted| deleted == name);
        let first = |name: &str| order.iter().position(|deleted| deleted == name);
        assert!(last("web") < first("db"), "{death:?}: {order:?}");
    }
}
