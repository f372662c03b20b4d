//! Apps that wait for others: at the installation, at updates, across clusters, and in reverse when they leave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::composite_app::{Dependency, DependencyState};
use emco_crds::deployment_intent_group::sync::PrunePolicy;
use emco_crds::{RowStatus, State};
use emco_engine::set::ManifestSet;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rig::*;
use super::world::PausedClock;

mod across;
mod generated;
mod leaving;
mod reopened;
mod taken_back;

const WAITS: &str = "WaitingForDependency";

fn on_db() -> Dependency {
    Dependency { app: "db".to_owned(), ..Dependency::default() }
}

/// From now on `web` waits for `db` so.
fn web_waits(rig: &Rig, dependency: Dependency) {
    *rig.depends.lock() = BTreeMap::from([("web".to_owned(), vec![dependency])]);
}

/// A rig with these clusters where `web` waits for `db` so, and no workload becomes ready by itself.
async fn waiting(clusters: &[&str], dependency: Dependency) -> Rig {
    let mut rig = Rig::new(clusters);
    rig.clock = Arc::new(PausedClock(tokio::time::Instant::now()));
    web_waits(&rig, dependency);
    for cluster in clusters {
        rig.edge(cluster).set_workloads_ready(false);
    }
    rig.start().await;
    rig
}

/// `web` and `db`, each with a workload of this image.
fn both(db: &str, web: &str) -> Vec<Arc<ManifestSet>> {
    vec![app("db", vec![deployment("db", db)]), app("web", vec![config("web", web), deployment("web", web)])]
}

fn path(name: &str) -> String {
    format!("/apis/apps/v1/namespaces/shop/deployments/{name}")
}

fn image(rig: &Rig, cluster: &str, name: &str) -> Option<String> {
    let live = rig.edge(cluster).object(&path(name))?;
    live.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str).map(str::to_owned)
}

/// The workload becomes ready as it is now.
fn ready(rig: &Rig, cluster: &str, name: &str) {
    let edge = rig.edge(cluster);
    edge.set_workloads_ready(true);
    touch(rig, cluster, name);
    edge.set_workloads_ready(false);
}

fn touch(rig: &Rig, cluster: &str, name: &str) {
    let now = json!(rig.edge(cluster).revision().to_string());
    rig.edge(cluster).put(
        "kubelet",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "shop", "annotations": {"touched": now}}}),
    );
}

async fn until_waits(rig: &Rig, cluster: &str) -> RowStatus {
    rig.until_reason(cluster, WAITS).await
}

async fn until_image(rig: &Rig, cluster: &str, name: &str, wanted: &str) {
    let what = format!("{name} on {cluster} has {wanted}");
    rig.until(&what, |rig| image(rig, cluster, name).as_deref() == Some(wanted)).await;
}

#[tokio::test(start_paused = true)]
async fn an_app_waits_until_the_other_one_is_ready_and_says_so() {
    let rig = waiting(&["a"], on_db()).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    let error = until_waits(&rig, "a").await.error.unwrap();
    assert_eq!(error.app.as_deref(), Some("web"));
    assert_eq!(error.message, "waits until this revision of app db is Ready on acme/a");
    sleep(Duration::from_mins(2)).await;
    assert_eq!(rig.ours("a"), ["deployments.apps/shop/db"], "nothing of web is sent");
    let unready: Vec<String> = rig.row("a").unwrap().unready.into_iter().map(|one| one.app).collect();
    assert_eq!(unready, ["db"], "what is waited for is named");
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    rig.until("it waits no more", |rig| rig.row("a").is_some_and(|row| row.error.is_none())).await;
    ready(&rig, "a", "web");
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deployed_is_enough_where_that_is_asked_for() {
    let deployed = Dependency { state: Some(DependencyState::Deployed), ..on_db() };
    let rig = waiting(&["a"], on_db()).await;
    // By its name it would come first.
    *rig.depends.lock() = BTreeMap::from([("api".to_owned(), vec![deployed])]);
    let api = app("api", vec![config("api", "1"), deployment("api", "api:1")]);
    rig.target(&on("a", &[api, app("db", vec![deployment("db", "db:1")])])).await;
    until_image(&rig, "a", "api", "api:1").await;
    let writes: Vec<String> = rig.edge("a").writes().into_iter().map(|seen| seen.path).collect();
    let place = |name: &str| writes.iter().position(|write| write.ends_with(&format!("/{name}")));
    assert!(place("db").is_some() && place("db") < place("api"), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn at_an_upgrade_only_the_new_revision_opens_the_gate() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_workloads_ready(true);
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &both("db:2", "web:2"))).await;
    until_waits(&rig, "a").await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(image(&rig, "a", "db").as_deref(), Some("db:2"));
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"), "what runs is left alone");
    assert_eq!(rig.row("a").unwrap().state, State::Updating);
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:2").await;
}

#[tokio::test(start_paused = true)]
async fn an_app_that_does_not_change_waits_for_nothing() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_workloads_ready(true);
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &both("db:2", "web:1"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    // Somebody deletes an object of the app: it is made again although the other app is not ready.
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/web");
    rig.until("it is there again", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/web").is_some()
    })
    .await;
    let more = [both("db:2", "web:1"), vec![app("log", vec![config("log", "1")])]].concat();
    *rig.depends.lock() = BTreeMap::from([
        ("web".to_owned(), vec![on_db()]),
        ("log".to_owned(), vec![Dependency { app: "web".to_owned(), ..Dependency::default() }]),
    ]);
    rig.edge("a").take_seen();
    ready(&rig, "a", "db");
    rig.target(&on("a", &more)).await;
    rig.until_complete("a").await;
    let writes: Vec<String> = rig.edge("a").writes().into_iter().map(|seen| seen.path).collect();
    assert_eq!(writes, ["/api/v1/namespaces/shop/configmaps/log"], "an app that comes touches no other");
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_was_open_stays_open_and_takes_nothing_down() {
    let rig = waiting(&["a"], on_db()).await;
    // Its last hook does not end.
    let web = vec![
        manifest(config("web", "1"), None),
        manifest(deployment("web", "web:1"), None),
        hook(job("seed"), &["post-install"], 0, &[]),
    ];
    rig.target(&on("a", &[app("db", vec![deployment("db", "db:1")]), app_of("web", web)])).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    rig.until("that is recorded", |rig| rig.row("a").is_some_and(|row| row.gates.is_some())).await;
    // The first app is not ready any more, and the operator begins anew.
    rig.edge("a").set_status(&path("db"), &json!({"observedGeneration": 1, "replicas": 1})).unwrap();
    rig.crash().await;
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/web");
    rig.start().await;
    rig.until("it is there again", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/web").is_some()
    })
    .await;
    assert!(image(&rig, "a", "web").is_some());
    assert!(!rig.complete("a"));
}

#[tokio::test(start_paused = true)]
async fn a_delay_runs_on_over_a_restart_and_nobody_is_late_meanwhile() {
    let rig = waiting(&["a"], Dependency { delay: Some("1h".into()), ..on_db() }).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    let met = tokio::time::Instant::now();
    let says_delay = |rig: &Rig| {
        let error = rig.row("a").and_then(|row| row.error);
        error.is_some_and(|error| error.message == "app db is Ready, and the delay of 1h after that runs")
    };
    rig.until("the delay is named", says_delay).await;
    sleep(Duration::from_mins(50)).await;
    assert_eq!(rig.row("a").unwrap().state, State::Instantiating, "a delay is not late");
    rig.crash().await;
    rig.start().await;
    until_image(&rig, "a", "web", "web:1").await;
    let took = met.elapsed().as_secs();
    assert!((3600..3605).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn who_waits_longer_than_the_deadline_has_failed_with_the_cause() {
    let rig = waiting(&["a"], on_db()).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    let error = rig.until_reason("a", "ProgressDeadlineExceeded").await.error.unwrap();
    assert_eq!(
        error.message,
        "no progress for 600 seconds: waits until this revision of app db is Ready on acme/a; apps/Deployment/shop/db is not ready; \
         work goes on"
    );
    assert_eq!(rig.row("a").unwrap().state, State::InstantiateFailed);
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    rig.until("it is no failure any more", |rig| rig.row("a").is_some_and(|row| row.error.is_none())).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_order_alone_begins_no_deadline_anew() {
    let rig = waiting(&["a"], on_db()).await;
    let begun = tokio::time::Instant::now();
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    sleep(Duration::from_mins(5)).await;
    web_waits(&rig, Dependency { delay: Some("1s".into()), ..on_db() });
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    rig.until_reason("a", "ProgressDeadlineExceeded").await;
    let took = begun.elapsed().as_secs();
    assert!((599..620).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_taken_back_holds_nobody_any_more() {
    let rig = waiting(&["a"], on_db()).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    rig.depends.lock().clear();
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_image(&rig, "a", "web", "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn old_objects_that_go_first_stay_while_their_app_waits() {
    let rig = waiting(&["a"], on_db()).await;
    rig.prune(PrunePolicy::Before);
    rig.edge("a").set_workloads_ready(true);
    let first = vec![
        app("db", vec![config("db-old", "1"), deployment("db", "db:1")]),
        app("web", vec![config("web-old", "1"), deployment("web", "web:1")]),
    ];
    rig.target(&on("a", &first)).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &both("db:2", "web:2"))).await;
    until_waits(&rig, "a").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(
        rig.ours("a"),
        ["configmaps./shop/web-old", "deployments.apps/shop/db", "deployments.apps/shop/web"]
    );
    rig.edge("a").take_seen();
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:2").await;
    let writes: Vec<String> = rig.edge("a").writes().into_iter().map(|seen| seen.path).collect();
    assert_eq!(writes.first().map(String::as_str), Some("/api/v1/namespaces/shop/configmaps/web-old"));
}

#[tokio::test(start_paused = true)]
async fn an_old_object_that_two_apps_had_stays_while_one_of_them_waits() {
    let rig = waiting(&["a"], on_db()).await;
    rig.prune(PrunePolicy::Before);
    rig.edge("a").set_workloads_ready(true);
    let old = || config("old", "1");
    let sets = |db: Vec<Value>, web: Vec<Value>| on("a", &[app("db", db), app("web", web)]);
    rig.target(&sets(vec![deployment("db", "db:1")], vec![old(), deployment("web", "web:1")])).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    // It moves to the other app, and that revision is never completed.
    rig.target(&sets(vec![old(), deployment("db", "db:2")], vec![deployment("web", "web:2")])).await;
    until_image(&rig, "a", "db", "db:2").await;
    rig.target(&sets(vec![deployment("db", "db:3")], vec![deployment("web", "web:3")])).await;
    until_image(&rig, "a", "db", "db:3").await;
    sleep(Duration::from_mins(1)).await;
    let there = |rig: &Rig| rig.edge("a").object("/api/v1/namespaces/shop/configmaps/old").is_some();
    assert!(there(&rig), "web waits, and it is what web has");
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:3").await;
    assert!(!there(&rig));
}
