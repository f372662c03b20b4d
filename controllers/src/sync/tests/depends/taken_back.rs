//! What was wanted before, then something else, and now again, comes in order; and what runs stays, whatever was wanted meanwhile.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::SyncShard;
use emco_engine::identity::Identity;
use emco_engine::set::SetManifest;
use emco_engine::{pack, shard};

use super::*;
use crate::api::ApiServerExt as _;

const SHARD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/syncshards/dig-shop-s00";

/// Also an app that waits for `web`: a revision is not complete before `web` is ready.
fn three(db: &str, web: &str) -> Vec<Arc<ManifestSet>> {
    [both(db, web), vec![app("log", vec![config("log", web)])]].concat()
}

async fn waiting_for_web() -> Rig {
    let rig = waiting(&["a"], on_db()).await;
    let on_web = Dependency { app: "web".to_owned(), ..Dependency::default() };
    rig.depends.lock().insert("log".to_owned(), vec![on_web]);
    rig
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_taken_back_halfway_comes_in_order_too() {
    let rig = waiting_for_web().await;
    rig.edge("a").set_workloads_ready(true);
    rig.target(&on("a", &three("db:1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.edge("a").set_workloads_ready(false);
    rig.target(&on("a", &three("db:2", "web:2"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:2").await;
    rig.target(&on("a", &three("db:1", "web:1"))).await;
    until_image(&rig, "a", "db", "db:1").await;
    until_waits(&rig, "a").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:2"));
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wanted_again_while_it_leaves_comes_in_order() {
    let rig = waiting(&["a"], on_db()).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    ready(&rig, "a", "web");
    rig.until_complete("a").await;
    let holds = |finalizers: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "db", "namespace": "shop", "finalizers": finalizers}})
    };
    rig.edge("a").put("somebody", &holds(json!(["x/y"])));
    rig.target(&nowhere()).await;
    let leaves = |rig: &Rig| {
        let live = rig.edge("a").object(&path("db"));
        live.is_some_and(|live| !live["metadata"]["deletionTimestamp"].is_null())
    };
    rig.until("db is being deleted", leaves).await;
    assert_eq!(image(&rig, "a", "web"), None);
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(image(&rig, "a", "web"), None, "db is still leaving");
    rig.edge("a").put("somebody", &holds(json!([])));
    rig.until("db is made anew", |rig| image(rig, "a", "db").is_some() && !leaves(rig)).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(image(&rig, "a", "web"), None, "db is not ready");
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
}

/// Has all that the row may have besides as one set of identities, as the hub does with long rows.
async fn collapse(rig: &Rig, held: &BTreeSet<Identity>) {
    let pack = pack::write_identities("uid-1", held).unwrap();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"pack": STANDARD.encode(&pack.bytes)},
        "metadata": {"name": pack.name, "namespace": "emco-system"}});
    rig.hub.create("/api/v1/namespaces/emco-system/configmaps", &object).await.unwrap();
    let live: SyncShard = rig.hub.get_as(SHARD).await.unwrap().unwrap();
    assert!(!shard::overlong(&live.spec).is_empty(), "{:?}", live.spec.clusters);
    let short = shard::collapse_held(live.spec.clone(), |_| Ok(held.clone())).unwrap();
    assert_eq!(short.packs.iter().map(|short| &short.name).collect::<Vec<_>>(), [&pack.name]);
    let fresh = serde_json::to_value(SyncShard { spec: short.spec, ..live }).unwrap();
    rig.hub.replace(SHARD, &fresh).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_the_app_of_stays_while_an_app_waits() {
    let rig = waiting_for_web().await;
    rig.prune(PrunePolicy::Before);
    let first = vec![
        app("db", vec![deployment("db", "db:1")]),
        app("web", vec![config("web-old", "1"), deployment("web", "web:1")]),
        app("log", vec![config("log", "1")]),
    ];
    rig.target(&on("a", &first)).await;
    until_image(&rig, "a", "db", "db:1").await;
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    // None of these is ever complete.
    for n in 2..=6 {
        rig.target(&on("a", &three(&format!("db:{n}"), &format!("web:{n}")))).await;
        until_image(&rig, "a", "db", &format!("db:{n}")).await;
    }
    let named = |set: &Arc<ManifestSet>| set.manifests.iter().map(SetManifest::identity).collect::<Vec<_>>();
    let held = first.iter().chain(&three("db:2", "web:2")).flat_map(named).collect();
    collapse(&rig, &held).await;
    sleep(Duration::from_mins(1)).await;
    let old = |rig: &Rig| rig.edge("a").object("/api/v1/namespaces/shop/configmaps/web-old").is_some();
    assert!(old(&rig), "web waits, and may have it");
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:6").await;
    assert!(old(&rig), "log waits, and may have it");
    ready(&rig, "a", "web");
    rig.until("it goes once nobody waits", |rig| !old(rig)).await;
}
