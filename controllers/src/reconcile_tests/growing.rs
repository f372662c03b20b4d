//! Shards that outgrow their limit give rows away, and lose none: wherever a process dies, and without any work on the edges.

use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::shop::{TENANT, deployment, objects, values};

/// Two rows never fit, one always does.
const TINY: usize = 900;

fn shards(life: &Life, owner: &str) -> Vec<Value> {
    let all = life.rig.hub.objects().into_values();
    all.filter(|o| o["kind"] == "SyncShard" && o["metadata"]["labels"]["emco.io/owner-name"] == owner)
        .collect()
}

/// Every cluster has exactly one row, which has what it shall have and nothing else.
fn check(life: &Life, how: &str) {
    let mut clusters: Vec<String> = Vec::new();
    for shard in shards(life, "shop") {
        let spec = &shard["spec"];
        assert_eq!(
            spec["slot"].to_string(),
            shard["metadata"]["labels"]["emco.io/slot"].as_str().unwrap_or_default().to_owned(),
            "{how}: {shard:#}"
        );
        for row in spec["clusters"].as_array().into_iter().flatten() {
            clusters.push(row["cluster"].as_str().unwrap().to_owned());
            assert!(row["target"].is_string(), "{how}: {row}");
        }
        assert_eq!(shard["status"]["summary"]["clusters"], "1/1", "{how}: {shard:#}");
    }
    clusters.sort();
    assert_eq!(clusters, ["acme/a", "acme/b"], "{how}");
    assert_eq!(life.dig()["status"]["clusters"]["total"], 2, "{how}");
    assert_eq!(life.says("Ready").0, "True", "{how}: {:#}", life.dig());
}

async fn at_rest() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    assert_eq!(shards(&life, "shop").len(), 1);
    life
}

#[tokio::test(start_paused = true)]
async fn rows_move_to_a_second_shard_and_no_edge_is_written() {
    let mut life = at_rest().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let dig = life.dig()["status"].clone();
    life.rig.settings.largest_shard = TINY;
    life.restart().await;
    life.settle().await;
    let shards = shards(&life, "shop");
    assert_eq!(shards.len(), 2, "{shards:#?}");
    check(&life, "after the move");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    assert_eq!(dig, life.dig()["status"], "whoever reads the deployment sees nothing of it");
    // And so it stays.
    let before = versions(&life.rig.hub);
    life.restart().await;
    life.settle().await;
    assert_eq!(before, versions(&life.rig.hub));
    // Both are retargeted, and both end.
    life.put(&values("blue"));
    life.settle().await;
    check(&life, "after an update");
    for edge in EDGES {
        assert_eq!(life.on(edge)["configmaps./team-a/page"]["data"]["text"], "blue");
    }
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(self::shards(&life, "shop"), Vec::<Value>::new());
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_while_rows_move_and_are_retargeted_loses_none() {
    let begin = async || {
        let mut life = at_rest().await;
        life.rig.settings.largest_shard = TINY;
        life.restart().await;
        life
    };
    let mut wanted = None;
    let the_same = async |life: &mut Life, how: &str| {
        check(life, how);
        assert_eq!(shards(life, "shop").len(), 2, "{how}");
        let found: Vec<_> = EDGES.iter().map(|edge| life.on(edge)).collect();
        assert_eq!(*wanted.get_or_insert_with(|| found.clone()), found, "{how}");
    };
    Box::pin(deaths::at_each_write(begin, |life| life.put(&values("blue")), the_same, 12)).await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_is_too_large_for_one_shard_gets_several_at_once() {
    let mut life = Life::new();
    life.rig.settings.largest_shard = TINY;
    life.restart().await;
    for object in objects() {
        life.put(&object);
    }
    life.settle().await;
    assert_eq!(shards(&life, "shop").len(), 2);
    check(&life, "at first");
    for edge in EDGES {
        assert!(life.names_on(edge).len() > 3);
    }
    // Who leaves empties a shard and nothing else.
    let mut elsewhere = deployment("edge");
    elsewhere["spec"]["placement"] = json!({"allOf": [{"provider": "acme", "cluster": "b"}]});
    life.put(&elsewhere);
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
    life.put(&deployment("edge"));
    life.settle().await;
    check(&life, "after a cluster left and came back");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_terminates_gets_no_new_shard() {
    let mut life = at_rest().await;
    life.rig.settings.largest_shard = TINY;
    life.restart().await;
    let mut namespace = life.rig.hub.object("/api/v1/namespaces/team-a").unwrap();
    namespace["metadata"]["deletionTimestamp"] = json!("2026-11-21T06:00:00Z");
    life.rig.hidden_namespace = Some(namespace);
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(shards(&life, "shop").len(), 1);
    assert_eq!(life.on("a")["configmaps./team-a/page"]["data"]["text"], "blue");
}

#[tokio::test(start_paused = true)]
async fn a_shard_of_a_later_format_is_refused_and_not_rewritten() {
    let mut life = at_rest().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let path = format!("{TENANT}/syncshards/dig-shop-s0-1");
    let mut shard = life.rig.hub.object(&path).unwrap();
    shard["spec"]["format"] = json!(2);
    shard["spec"]["clusters"][0].as_object_mut().unwrap().remove("target");
    crate::api::ApiServerExt::replace(&life.rig.hub, &path, &shard).await.unwrap();
    let stored = life.rig.hub.object(&path).unwrap();
    life.put(&values("blue"));
    life.settle().await;
    let (status, reason, message) = life.says("Resolved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "FormatUnknown"), "{message}");
    assert!(
        message.contains("SyncShard dig-shop-s0-1 has format 2") && message.contains("upgrade"),
        "{message}"
    );
    assert_eq!(life.rig.hub.object(&path).unwrap(), stored);
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    // A process that starts does nothing with it either.
    life.restart().await;
    life.settle().await;
    assert_eq!(life.rig.hub.object(&path).unwrap(), stored);
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}
