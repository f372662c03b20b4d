//! A third kind of owner beside deployments and logical clouds: stored, applied, killed at each write, repaired, suspended, orphaned and
//! removed, without a word of it anywhere but in its own file.

use emco_crds::OwnerKind;
use serde_json::{Value, json};

use super::approvals::project;
use super::beacon::{BEACONS, HISTORY, beacon, definition};
use super::deaths;
use super::life::*;
use super::lost::packs_of;
use super::shop::{TENANT, objects};
use crate::api::ApiServerExt as _;
use crate::producer::Producers;
use crate::reconcile::orphans;

/// As the deployment that is there.
const NAME: &str = "shop";

/// A process at rest on everything but the Beacon: the deployment of its name, too.
async fn without() -> Life {
    let mut life = Life::with(&objects());
    life.put(&definition());
    life.settle().await;
    life
}

async fn lit() -> Life {
    let mut life = without().await;
    life.put(&beacon(NAME, "one", &EDGES));
    life.settle().await;
    life
}

fn path() -> String {
    format!("{BEACONS}/{NAME}")
}

/// What a Beacon says on each edge.
fn texts(life: &Life) -> [Value; 2] {
    EDGES.map(|edge| {
        let on = life.on(edge);
        on.get("configmaps./team-a/shop").map_or(Value::Null, |map| map["data"]["text"].clone())
    })
}

fn owned(life: &Life, kind: &str, owner: &str) -> Vec<Value> {
    let of = |o: &Value| {
        o["kind"] == kind && o["spec"]["owner"]["kind"] == owner && o["spec"]["owner"]["name"] == NAME
    };
    life.rig.hub.objects().into_values().filter(of).collect()
}

fn shards(life: &Life) -> Vec<Value> {
    owned(life, "SyncShard", "Beacon")
}

fn is_orphaned(life: &Life) -> bool {
    let conditions = shards(life).into_iter().filter_map(|s| s["status"]["conditions"].as_array().cloned());
    conditions.flatten().any(|condition| condition["type"] == "Orphaned")
}

/// Nothing of it is stored or applied, and the deployment of its name has all that it had.
fn nothing_is_left(life: &Life) {
    assert_eq!(texts(life), [Value::Null, Value::Null]);
    assert!(life.rig.hub.object(&path()).is_none());
    assert!(shards(life).is_empty() && owned(life, "AppContext", "Beacon").is_empty());
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert!(life.names_on("a").contains(&"configmaps./team-a/page".to_owned()));
}

async fn let_go(life: &Life) {
    life.rig.hub.merge(&path(), &json!({"metadata": {"finalizers": []}})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_third_owner_is_stored_and_applied_beside_a_deployment_of_its_name() {
    let life = lit().await;
    assert_eq!(texts(&life), ["one", "one"]);
    let stored = life.rig.hub.object(&format!("{TENANT}/appcontexts/obj-shop-1")).unwrap();
    assert_eq!(stored["spec"]["owner"]["kind"], "Beacon");
    assert_eq!(stored["metadata"]["labels"]["emco.io/owner-kind"], "Beacon");
    assert_eq!(stored["status"]["outcome"], "Instantiated", "{stored:#}");
    let of_deployment = owned(&life, "SyncShard", "DeploymentIntentGroup");
    let hash = |shard: &Value| shard["metadata"]["labels"]["emco.io/owner"].clone();
    assert_ne!(hash(&shards(&life)[0]), hash(&of_deployment[0]));
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_third_owner_is_a_revision_and_leaves_what_it_drops() {
    let mut life = lit().await;
    for (text, clusters) in [("two", &EDGES[..]), ("three", &EDGES[1..])] {
        life.put(&beacon(NAME, text, clusters));
        life.settle().await;
    }
    assert_eq!(texts(&life), [Value::Null, json!("three")]);
    let mut revisions: Vec<Value> =
        owned(&life, "AppContext", "Beacon").iter().map(|c| c["spec"]["revision"].clone()).collect();
    revisions.sort_by_key(Value::as_i64);
    assert_eq!(revisions, [2, 3], "the last {HISTORY} are kept");
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_third_owners_installation_changes_nothing() {
    let change = |life: &Life| life.put(&beacon(NAME, "one", &EDGES));
    deaths::at_every_write(async || without().await, change, async |_: &mut Life| {}, 8).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_third_owners_update_changes_nothing() {
    let change = |life: &Life| life.put(&beacon(NAME, "two", &EDGES[..1]));
    Box::pin(deaths::at_every_write(async || lit().await, change, async |_: &mut Life| {}, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_third_owners_removal_changes_nothing() {
    let change = |life: &Life| life.rig.hub.remove(&path());
    let check = async |life: &mut Life, _: &str| nothing_is_left(life);
    Box::pin(deaths::at_each_write(async || lit().await, change, check, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn lost_packs_of_a_third_owner_are_stored_again() {
    let mut life = lit().await;
    let packs = packs_of(&life, "obj-shop-1");
    let assignment = life.rig.hub.object(&format!("{TENANT}/appcontexts/obj-shop-1")).unwrap();
    let assignment = assignment["spec"]["assignment"]["pack"].as_str().unwrap().to_owned();
    for pack in packs.iter().filter(|pack| !pack.ends_with(&assignment)) {
        life.delete(pack).await;
        life.restart().await;
        life.settle().await;
        assert!(life.rig.hub.object(pack).is_some(), "{pack}");
    }
    assert_eq!(owned(&life, "AppContext", "Beacon").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_third_owner_that_is_missing_is_told_of_and_kept_until_it_is_back() {
    let mut life = lit().await;
    let before = EDGES.map(|edge| versions(&life.edges[edge]));
    let_go(&life).await;
    life.delete(&path()).await;
    life.settle().await;
    assert!(is_orphaned(&life), "{:#?}", shards(&life));
    life.restart().await;
    life.settle().await;
    assert_eq!(EDGES.map(|edge| versions(&life.edges[edge])), before);
    life.put(&beacon(NAME, "one", &EDGES));
    life.settle().await;
    assert!(!is_orphaned(&life));
    assert_eq!(EDGES.map(|edge| versions(&life.edges[edge])), before, "found as it was");
    life.delete(&path()).await;
    life.settle().await;
    nothing_is_left(&life);
}

#[tokio::test(start_paused = true)]
async fn a_third_owner_that_was_let_go_while_it_ended_ends_on_clusters_too() {
    let mut life = lit().await;
    life.delete(&path()).await;
    // The wish is written down, and nothing is removed yet.
    assert!(life.rig.round().await.is_empty());
    let_go(&life).await;
    assert!(life.rig.hub.object(&path()).is_none());
    life.settle().await;
    nothing_is_left(&life);
}

#[tokio::test(start_paused = true)]
async fn a_third_owner_is_suspended_by_itself_and_by_its_project() {
    for by_project in [false, true] {
        let mut life = lit().await;
        let suspend = |life: &Life, on: bool| {
            let mut own = beacon(NAME, "two", &EDGES);
            own["spec"]["suspend"] = json!(on && !by_project);
            life.put(&project(&json!({"suspend": on && by_project})));
            life.put(&own);
        };
        suspend(&life, true);
        // A change by others waits, too.
        let theirs = json!({"data": {"text": "theirs"}});
        life.edges["a"].merge("/api/v1/namespaces/team-a/configmaps/shop", &theirs).await.unwrap();
        life.settle().await;
        life.restart().await;
        life.settle().await;
        assert_eq!(texts(&life), ["theirs", "one"], "by project: {by_project}");
        assert_eq!(owned(&life, "AppContext", "Beacon").len(), 1, "nothing of it is stored");
        suspend(&life, false);
        life.settle().await;
        assert_eq!(texts(&life), ["two", "two"], "by project: {by_project}");
        suspend(&life, true);
        life.delete(&path()).await;
        life.settle().await;
        assert_eq!(texts(&life), ["two", "two"], "nor is anything removed");
    }
}

/// This process has no producer of the kind, as after an operator of an earlier version took over.
#[tokio::test(start_paused = true)]
async fn an_owner_of_an_unknown_kind_is_never_taken_for_a_deployment() {
    let mut life = lit().await;
    life.rig.ctx.producers = Producers::default();
    let before = life.everything();
    let_go(&life).await;
    life.delete(&path()).await;
    life.rig.see();
    for kind in ["Beacon", "deploymentintentgroup", ""] {
        let kind = OwnerKind::from(kind);
        assert_eq!(orphans::reconcile(&life.rig.ctx, "team-a", &kind, NAME).await.unwrap(), 0);
    }
    let mut after = life.everything();
    let (beacon, _) = before.iter().find(|(key, _)| key.starts_with("hub/beacons.")).unwrap();
    assert!(after.insert(beacon.clone(), before[beacon].clone()).is_none());
    assert!(after == before, "{}", difference(&after, &before));
}
