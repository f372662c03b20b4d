//! A pin, a cluster that leaves, and changes that others follow before they are complete, with a death at every write.

use std::collections::BTreeMap;

use emco_crds::SyncShard;
use emco_engine::shard;
use serde_json::{Value, json};

use super::super::pinned::{pinned, two_revisions};
use super::super::shop::{charts, labelled, packed};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_pin_changes_nothing_in_the_end() {
    let pin = |life: &Life| life.put(&pinned(1));
    let first = async || two_revisions().await;
    Box::pin(deaths::at_every_write(first, pin, async |_: &mut Life| {}, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_an_unpinning_changes_nothing_in_the_end() {
    let first = async || {
        let mut life = two_revisions().await;
        life.put(&pinned(1));
        life.settle().await;
        assert_eq!(life.says("Ready").1, "Pinned");
        life
    };
    let unpin = |life: &Life| life.put(&deployment("edge"));
    Box::pin(deaths::at_every_write(first, unpin, async |_: &mut Life| {}, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_while_a_cluster_leaves_changes_nothing() {
    let leave = |life: &Life| life.put(&labelled("a", &json!({"tier": "core"})));
    let first = async || at_rest(true).await;
    let check = async |life: &mut Life| {
        assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
        assert_eq!(life.dig()["status"]["clusters"]["total"], 1, "{:#}", life.dig());
    };
    Box::pin(deaths::at_every_write(first, leave, check, 8)).await;
}

/// What the shop has on the edges, and what its rows say of that; without hooks, of which any event may have been the last.
fn inventory(life: &Life) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for edge in EDGES {
        let objects = life.on(edge).into_iter().filter(|(key, _)| !key.starts_with("jobs."));
        all.extend(objects.map(|(key, object)| (format!("{edge}/{key}"), object)));
    }
    for object in life.rig.hub.of_kind("SyncShard") {
        let SyncShard { spec, status, .. } = serde_json::from_value(object).unwrap();
        for row in shard::rows(&spec, status.as_ref()).into_iter().filter(|_| spec.owner.name == "shop") {
            let wanted = row.target.map(|target| format!("{:?}", target.apps));
            let row_ = json!({"wants": wanted, "complete": row.complete, "besides": row.may_have.len()});
            assert_eq!((row.complete, row.may_have.len()), (true, 0), "{}: {row_:#}", row.cluster);
            all.insert(format!("row {}", row.cluster), row_);
        }
    }
    all
}

/// That every life ends with the inventory of the first.
fn same_inventory() -> impl AsyncFnMut(&mut Life, &str) {
    let mut wanted = None;
    async move |life: &mut Life, how: &str| {
        let found = inventory(life);
        let wanted = wanted.get_or_insert_with(|| found.clone());
        assert!(found == *wanted, "{how}:\n{}", difference(&found, wanted));
    }
}

fn back(life: &Life) {
    life.put(&composite_app("1.0.0"));
    life.put(&values("red"));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_the_way_back_changes_nothing_in_the_end() {
    let first = async || {
        let mut life = at_rest(true).await;
        update(&life);
        life.settle().await;
        assert!(!life.names_on("a").iter().any(|name| name.ends_with("/old")), "{:?}", life.names_on("a"));
        life
    };
    let check = async |life: &mut Life| {
        assert!(life.names_on("a").iter().any(|name| name.ends_with("/old")), "{:?}", life.names_on("a"));
    };
    Box::pin(deaths::at_every_write(first, back, check, 15)).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_cut_off_at_any_write_and_taken_back_leaves_nothing_of_it() {
    let first = async || at_rest(true).await;
    Box::pin(deaths::then_another(first, (update, back), same_inventory(), 15)).await;
}

/// It has a ConfigMap more, and a Deployment whose selector is another one: no API server ever takes that.
const STUBBORN: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {text: {{ .Values.page | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: new}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec:
      containers:
      - {name: web, image: example.com/web}
";

/// The shop with a chart 2.0.0 at hand, of which one object is refused for ever.
async fn before_the_stubborn() -> Life {
    let mut life = Life::with(&objects());
    let files = [("values.yaml", "page: none\nreplicas: 1\n"), ("templates/all.yaml", STUBBORN)];
    let mut charts = charts();
    charts["binaryData"]["web-2.0.0.tgz"] = json!(packed("web", "2.0.0", &files));
    life.put(&charts);
    life.settle().await;
    life
}

fn stubborn(life: &Life) {
    life.put(&composite_app("2.0.0"));
    life.put(&values("blue"));
}

fn third(life: &Life) {
    life.put(&composite_app("1.1.0"));
    life.put(&values("green"));
}

/// Whether the shop has a ConfigMap on `a`.
fn has(life: &Life, name: &str) -> bool {
    life.on("a").contains_key(&format!("configmaps./team-a/{name}"))
}

/// What is refused is tried again and again, and what it replaces stays beside it.
async fn stuck() -> Life {
    let mut life = before_the_stubborn().await;
    stubborn(&life);
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!(status["state"], "UpdateFailed", "{status:#}");
    assert_eq!(status["failing"][0]["reason"], "ImmutableField", "{status:#}");
    assert_eq!((has(&life, "new"), has(&life, "old")), (true, true), "{:?}", life.names_on("a"));
    life
}

#[tokio::test(start_paused = true)]
async fn a_death_after_a_change_that_is_refused_for_ever_changes_nothing() {
    let check = async |life: &mut Life| {
        assert_eq!((has(life, "new"), has(life, "old")), (false, false), "{:?}", life.names_on("a"));
        assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
    };
    Box::pin(deaths::at_every_write(async || stuck().await, third, check, 12)).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_cut_off_at_any_write_leaves_nothing_after_the_next() {
    let first = async || before_the_stubborn().await;
    Box::pin(deaths::then_another(first, (stubborn, third), same_inventory(), 8)).await;
}
