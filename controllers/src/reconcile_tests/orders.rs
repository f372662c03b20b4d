//! Everything applied in random order, with or without time between: the same end.

use std::collections::BTreeSet;

use serde_json::Value;

use super::life::*;
use super::shop::objects;
use crate::crash_points;

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}

/// What is true of the end whatever came first: who is where with what, and that every row has what is wanted, completely.
fn check(life: &Life, how: &str) -> Vec<(String, Value)> {
    let dig = life.dig();
    let status = &dig["status"];
    assert_eq!(life.says("Ready").0, "True", "{how}: {dig:#}");
    assert_eq!(life.says("Deployed").0, "True", "{how}: {dig:#}");
    let hub = life.rig.hub.objects();
    for owner in ["dig-shop-", "lc-default-"] {
        let of = |kind: &str| -> Vec<&Value> {
            hub.values()
                .filter(|o| o["kind"] == kind && o["metadata"]["name"].as_str().unwrap().starts_with(owner))
                .collect()
        };
        let shards = of("SyncShard");
        assert_eq!(shards.len(), 1, "{how}");
        let (spec, rows) = (&shards[0]["spec"], shards[0]["spec"]["clusters"].as_array().unwrap());
        assert_eq!(rows.len(), 2, "{how}: {spec:#}");
        let newest = of("AppContext").iter().map(|c| c["spec"]["revision"].as_i64().unwrap()).max().unwrap();
        if owner == "dig-shop-" {
            assert_eq!(status["revision"], newest, "{how}");
        }
        for row in rows {
            let target = spec["combinations"].as_array().unwrap().iter().find(|c| c["name"] == row["target"]);
            assert!(target.unwrap()["revision"].as_i64().unwrap() <= newest, "{how}: {row}");
        }
        // No revision was stored twice.
        let digests: BTreeSet<_> = of("AppContext").iter().map(|c| c["spec"]["digest"].to_string()).collect();
        let all = of("AppContext");
        assert!(digests.len() + 1 >= all.len(), "{how}: {all:#?}");
    }
    EDGES
        .iter()
        .flat_map(|edge| life.on(edge).into_iter().map(move |(key, o)| (format!("{edge}/{key}"), o)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn everything_in_any_order_ends_with_the_same_edges() {
    let mut usual = Life::with(&objects());
    usual.settle().await;
    let wanted = check(&usual, "in the usual order");
    // Another six with each commit, as of crash points.
    for seed in crash_points::chosen(1..=40_u64) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut waiting = objects();
        let mut life = Life::new();
        let mut how = format!("seed {seed}:");
        while !waiting.is_empty() {
            let next = waiting.remove(random.below(waiting.len()));
            let wanted_namespace = next["metadata"]["namespace"].as_str();
            // The API server itself wants the namespace first.
            if let Some(name) = wanted_namespace
                && life.rig.hub.object(&format!("/api/v1/namespaces/{name}")).is_none()
            {
                waiting.push(next);
                continue;
            }
            how.push_str(&format!(" {}/{}", next["kind"], next["metadata"]["name"]));
            life.put(&next);
            match random.below(3) {
                0 => {
                    life.settle().await;
                }
                1 => drop(life.rig.round().await),
                _ => {}
            }
        }
        life.settle().await;
        assert_eq!(check(&life, &how), wanted, "{how}");
    }
}
