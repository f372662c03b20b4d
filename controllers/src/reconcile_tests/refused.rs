//! A change that is refused, and what goes on beside it: clusters that are heard of for the first time, or that take the place of others,
//! get what runs. Counts speak of no cluster that has nothing.

use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::pinned::pinned;
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects};
use crate::memory::MemoryServer;
use crate::remote::Claim;

const REFUSED: &str = "the last change is refused: ";

async fn installed() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life
}

/// The text of the page on an edge; null where it is not there.
fn page(life: &Life, edge: &str) -> Value {
    let map = life.on(edge).remove("configmaps./team-a/page").unwrap_or_default();
    map["data"]["text"].clone()
}

/// Rows of the shop, by cluster.
fn row(life: &Life, cluster: &str) -> Value {
    let shards = life.rig.hub.of_kind("SyncShard");
    let of_shop = shards.iter().filter(|shard| shard["spec"]["owner"]["name"] == "shop");
    let mut rows = of_shop.filter_map(|shard| shard["spec"]["clusters"].as_array()).flatten();
    rows.find(|row| row["cluster"] == cluster).cloned().unwrap_or_default()
}

/// No cluster matches its placement.
fn refused() -> Value {
    deployment("nowhere")
}

fn suspended(mut dig: Value) -> Value {
    dig["spec"]["suspend"] = json!(true);
    dig
}

/// Another cluster answers behind the name of `a`.
async fn replaced(life: &mut Life) {
    let fresh = MemoryServer::new();
    life.rig.attach("a", &fresh);
    life.edges.insert("a", fresh);
    life.rig.returns("a", "uid-new");
    life.settle().await;
}

/// Somebody says that it takes the place of the old one.
fn confirm(life: &Life) {
    let mut cluster = labelled("a", &json!({"tier": "edge"}));
    cluster["metadata"]["annotations"] = json!({"emco.io/confirm": "uid-new"});
    life.put(&cluster);
}

/// The shop where `b` belongs to another hub: it has a row, and nobody wrote down which cluster that is.
async fn unidentified(dig: &Value) -> Life {
    let mut life = Life::with(&objects());
    let (installation, since) = ("theirs".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    life.rig.claims("b", Claim::Held { installation, since, seen: 0 });
    life.settle().await;
    life.put(dig);
    life.settle().await;
    let row = row(&life, "acme/b");
    assert!(row["target"].is_string() && row["uid"].is_null(), "{row:#}");
    assert_eq!((page(&life, "a"), page(&life, "b")), (json!("red"), Value::Null));
    life
}

/// It is this hub's now.
fn released(life: &Life) {
    life.rig.claims("b", Claim::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_new_row_gets_its_identity_beside_a_refused_change() {
    let check = async |life: &mut Life, how: &str| {
        assert_eq!(page(life, "b"), "red", "{how}: {:?}", life.says("Deployed"));
        assert_eq!(row(life, "acme/b")["uid"], "uid-b", "{how}");
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "NoClusterMatches"), "{how}: {message}");
        assert!(message.starts_with("revision 1 runs on 2 of 2 clusters; "), "{how}: {message}");
    };
    let first = async || unidentified(&refused()).await;
    Box::pin(deaths::at_each_write(first, released, check, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_deployment_gets_no_identity_beside_a_refused_change() {
    let mut life = unidentified(&suspended(refused())).await;
    released(&life);
    life.settle().await;
    assert_eq!((page(&life, "b"), row(&life, "acme/b")["uid"].clone()), (Value::Null, Value::Null));
    life.put(&refused());
    life.settle().await;
    assert_eq!(page(&life, "b"), "red");
}

#[tokio::test(start_paused = true)]
async fn a_drained_cluster_gets_no_identity_beside_a_refused_change() {
    let mut life = unidentified(&refused()).await;
    let mut drained = labelled("b", &json!({"tier": "edge", "disk": "fast"}));
    drained["spec"]["scheduling"] = json!("Drained");
    life.put(&drained);
    released(&life);
    life.settle().await;
    assert_eq!((page(&life, "b"), row(&life, "acme/b")["uid"].clone()), (Value::Null, Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_replaced_cluster_counts_as_having_nothing() {
    let mut life = installed().await;
    replaced(&mut life).await;
    let (deployed, reason, message) = life.says("Deployed");
    assert_eq!((deployed.as_str(), reason.as_str()), ("False", "Progressing"), "{message}");
    assert!(
        message.starts_with("1 of 2 clusters have revision 1; acme/a: ClusterReplaced: another cluster"),
        "{message}"
    );
    life.put(&refused());
    life.settle().await;
    let message = life.says("Ready").2;
    assert!(message.starts_with(&format!("revision 1 runs on 1 of 2 clusters; {REFUSED}")), "{message}");
    let status = life.dig()["status"].clone();
    assert_eq!((&status["clusters"]["total"], &status["clusters"]["ready"]), (&json!(2), &json!(1)));
    let web = status["apps"].as_array().unwrap().iter().find(|app| app["name"] == "web").unwrap();
    assert_eq!((&web["clusters"], &web["ready"]), (&json!(2), &json!(1)), "{status:#}");
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_replacement_gets_what_runs_beside_a_refused_change() {
    let first = async || {
        let mut life = installed().await;
        life.put(&refused());
        life.settle().await;
        replaced(&mut life).await;
        assert_eq!(page(&life, "a"), Value::Null);
        life
    };
    let check = async |life: &mut Life, how: &str| {
        assert_eq!(page(life, "a"), "red", "{how}: {:?}", life.says("Deployed"));
        let message = life.says("Ready").2;
        let both = format!("revision 1 runs on 2 of 2 clusters; {REFUSED}");
        assert!(message.starts_with(&both), "{how}: {message}");
        assert_eq!(life.says("Deployed").0, "True", "{how}");
    };
    Box::pin(deaths::at_each_write(first, confirm, check, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_replacement_gets_what_runs_beside_a_pin_that_is_refused() {
    let mut life = installed().await;
    life.put(&pinned(7));
    life.settle().await;
    replaced(&mut life).await;
    confirm(&life);
    life.settle().await;
    assert_eq!((page(&life, "a"), life.says("Ready").1), (json!("red"), "RevisionUnavailable".into()));
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_is_granted_no_more_gets_nothing() {
    let mut life = installed().await;
    life.put(&refused());
    life.settle().await;
    replaced(&mut life).await;
    let only = json!([{"provider": "acme", "cluster": "b"}]);
    let grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin", "clusters": only});
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
    life.settle().await;
    confirm(&life);
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (Value::Null, json!("red")));
    let message = life.says("Ready").2;
    assert!(message.starts_with("revision 1 runs on 1 of 2 clusters; "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_on_in_a_logical_cloud_that_ends() {
    let mut life = installed().await;
    life.put(&refused());
    life.settle().await;
    replaced(&mut life).await;
    life.delete(&format!("{TENANT}/logicalclouds/default")).await;
    confirm(&life);
    life.settle().await;
    assert_eq!((page(&life, "a"), page(&life, "b")), (Value::Null, json!("red")));
}

/// Another logical cloud has its new namespace on the other cluster. Of the deployment, which runs in the old one, nothing goes on.
#[tokio::test(start_paused = true)]
async fn a_replacement_gets_its_namespace_in_a_refused_logical_cloud() {
    let mut life = installed().await;
    let cloud = |name: &str, spec: &Value| emco("LogicalCloud", Some("team-a"), name, spec);
    let only = json!([{"provider": "acme", "cluster": "b"}]);
    life.put(&cloud("another", &json!({"level": "Admin", "namespace": "there", "clusters": only})));
    life.settle().await;
    life.put(&cloud("default", &json!({"level": "Admin", "namespace": "there"})));
    life.settle().await;
    assert_eq!(life.rig.ready(&format!("{TENANT}/logicalclouds/default")).1, "NamespaceConflict");
    assert_eq!(life.says("Ready").1, "LogicalCloudNotReady");
    replaced(&mut life).await;
    assert_eq!(life.names_on("a"), Vec::<String>::new());
    confirm(&life);
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_terminated_does_not_come_back_by_a_refused_change() {
    let mut life = installed().await;
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    life.put(&refused());
    life.settle().await;
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"], "{edge}");
    }
    assert_eq!(life.says("Ready").1, "NoClusterMatches");
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_stays_counted_beside_a_refused_change() {
    let mut life = Life::with(&objects());
    life.rig.never_answers("b");
    life.settle().await;
    assert_eq!(life.dig()["status"]["awaited"], json!(["acme/b"]), "{:#}", life.dig());
    life.put(&refused());
    for answers in [false, true] {
        if answers {
            let edge = life.edges["b"].clone();
            life.rig.attach("b", &edge);
            life.rig.returns("b", "uid-b");
        }
        life.settle().await;
        let message = life.says("Ready").2;
        assert!(message.starts_with(&format!("revision 1 runs on 1 of 2 clusters; {REFUSED}")), "{message}");
        assert_eq!(life.dig()["status"]["clusters"]["total"], 2, "{:#}", life.dig());
        let (deployed, _, message) = life.says("Deployed");
        let why = "acme/b: Progressing: it is new: what it gets is worked out once the last change";
        assert_eq!((deployed.as_str(), message.contains(why)), ("False", answers), "{message}");
    }
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life, "b"), life.says("Ready").0), (json!("red"), "True".into()));
    assert_eq!(life.dig()["status"]["awaited"], Value::Null);
}
