//! What a tenant says of an app that waits for another one, from the CompositeApp to the clusters.

use serde_json::{Value, json};

use super::life::*;
use super::shop::{TENANT, composite_app, objects};

/// The shop, whose `web` on the clusters `a` and `b` depends on `db`, which is on `b` alone.
fn app(depends_on: &Value) -> Value {
    let mut app = composite_app("1.0.0");
    app["spec"]["apps"][0]["dependsOn"] = depends_on.clone();
    app
}

async fn waiting() -> Life {
    let life = Life::with(&objects());
    life.put(&app(&json!([{"app": "db"}])));
    life.edges["b"].set_workloads_ready(false);
    let mut life = life;
    life.settle().await;
    life
}

fn order(life: &Life) -> Value {
    let all = life.rig.hub.objects().into_values();
    let mut shards =
        all.filter(|object| object["kind"] == "SyncShard" && object["spec"]["owner"]["name"] == "shop");
    shards.next().map(|shard| shard["spec"]["order"].clone()).unwrap_or_default()
}

fn has_page(life: &Life, edge: &str) -> bool {
    life.on(edge).contains_key("configmaps./team-a/page")
}

#[tokio::test(start_paused = true)]
async fn what_an_app_waits_for_is_stored_with_its_revision_and_named() {
    let mut life = waiting().await;
    assert_eq!((has_page(&life, "a"), has_page(&life, "b")), (false, false));
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-1")).unwrap();
    assert_eq!(context["spec"]["apps"][0]["dependsOn"], json!([{"app": "db"}]));
    let counted = json!({"revision": 1, "apps": [{"app": "db", "clusters": 1}, {"app": "web", "dependsOn": [{"app": "db"}]}]});
    assert_eq!(order(&life), counted, "the cluster a has no db: it waits for b");
    let failing = life.dig()["status"]["failing"].to_string();
    for words in [
        "waits until this revision of app db is Ready on all its clusters: not yet on acme/b",
        "waits until this revision of app db is Ready on acme/b",
    ] {
        assert!(failing.contains(words), "{failing}");
    }
    life.edges["b"].set_workloads_ready(true);
    life.edges["b"].put(
        "kubelet",
        &json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "team-a", "annotations": {"touched": "yes"}}}),
    );
    life.settle().await;
    assert_eq!((has_page(&life, "a"), has_page(&life, "b")), (true, true));
    assert_eq!(life.says("Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_taken_out_is_a_revision_that_changes_nothing_else() {
    let mut life = waiting().await;
    life.put(&app(&json!([])));
    life.settle().await;
    assert!(has_page(&life, "a"));
    // No workload ends there, hooks neither.
    assert!(life.on("b").contains_key("jobs.batch/team-a/prepare"), "{:?}", life.on("b").keys());
    assert_eq!(order(&life), Value::Null);
    assert_eq!(life.dig()["status"]["revision"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_has_the_order_that_it_was_stored_with() {
    let mut life = waiting().await;
    let stored = order(&life);
    life.put(&app(&json!([])));
    life.settle().await;
    let mut dig = super::shop::deployment("edge");
    dig["spec"]["revision"] = json!(1);
    life.put(&dig);
    life.settle().await;
    assert_eq!(order(&life), stored);
    assert!(has_page(&life, "a"), "what runs is not taken down");
}

#[tokio::test(start_paused = true)]
async fn apps_that_wait_for_each_other_are_refused_and_what_runs_stays() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let mut circle = app(&json!([{"app": "db"}]));
    circle["spec"]["apps"][1]["dependsOn"] = json!([{"app": "web"}]);
    life.put(&circle);
    life.settle().await;
    let (status, reason, message) = life.says("Resolved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DependencyCycle"));
    assert!(message.contains("db waits for web, web waits for db"), "{message}");
    assert!(has_page(&life, "a"));
    assert_eq!(life.dig()["status"]["revision"], 1);
}
