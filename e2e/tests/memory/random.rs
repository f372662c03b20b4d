//! Long random lives of a few objects under several managers, the same on both servers. A failure prints its seed;
//! `EMCO_TEST_SEED` lives it again, or another one.

use anyhow::{Context as _, Result};
use emco_controllers::api::{Content, Method, Request};
use emco_e2e::random::Random;
use emco_engine::path::ApiPath;
use serde_json::{Map, Value, json};

use super::pair::{BED, Pair};
use super::scripts::{map, widget};

const LIVES: u64 = 6;
const STEPS: usize = 120;

/// At least one of three fields, each with one of three values. Never none: who owns an empty map is not what is tested.
fn data(random: &mut Random) -> Value {
    let mut data = Map::new();
    while data.is_empty() {
        for key in ["x", "y", "z"] {
            if random.below(2) == 0 {
                data.insert(key.to_owned(), json!(random.below(3).to_string()));
            }
        }
    }
    Value::Object(data)
}
/// One request about one of a few objects.
async fn step(pair: &mut Pair, random: &mut Random) -> Result<()> {
    let custom = random.below(2) == 0;
    let name = *random.of(&["a", "b", "c"]);
    let (collection, part) = if custom { (pair.widgets(), "spec") } else { (pair.maps(), "data") };
    let path = format!("{collection}/{name}");
    let mut object = if custom { widget(name, &data(random)) } else { map(name, &data(random)) };
    // One label always, so that labels are never taken away as a whole: on a real server whoever made a map owns the map itself,
    // still conflicts over it when it is gone, and that the server in memory does not know.
    object["metadata"]["labels"] = if random.below(4) == 0 { data(random) } else { json!({}) };
    object["metadata"]["labels"]["of"] = json!("lives");
    match random.below(12) {
        0 | 1 => drop(pair.create(&collection, &object).await?),
        2..=4 => {
            let manager = *random.of(&["one", "two", "three"]);
            let force = random.below(3) == 0;
            drop(pair.apply(&path, manager, force, &object).await?);
        }
        5 => {
            object["metadata"]["resourceVersion"] = json!(random.of(&["{version}", "{version}", "1"]));
            drop(pair.put(&path, &object).await?);
        }
        6 => {
            let key = *random.of(&["x", "y", "z"]);
            let value = if random.below(3) == 0 { Value::Null } else { json!(random.below(3).to_string()) };
            // `keep` is never taken away, so that the map is never empty.
            drop(pair.patch(&path, Content::Merge, &json!({part: {key: value, "keep": "1"}})).await?);
        }
        7 => {
            let key = format!("/{part}/{}", random.of(&["x", "y"]));
            let (was, will) = (random.below(3).to_string(), random.below(3).to_string());
            let patch = json!([
                {"op": "test", "path": key, "value": was}, {"op": "replace", "path": key, "value": will},
            ]);
            drop(pair.patch(&path, Content::JsonPatch, &patch).await?);
        }
        8 => {
            let choices = [json!(["example.com/a"]), json!(["example.com/a", "example.com/b"]), Value::Null];
            drop(
                pair.patch(&path, Content::Merge, &json!({"metadata": {"finalizers": random.of(&choices)}}))
                    .await?,
            );
        }
        9 => {
            let choices = [
                json!({}),
                json!({"propagationPolicy": "Background"}),
                json!({"preconditions": {"uid": "{uid}"}}),
                json!({"preconditions": {"resourceVersion": "1"}}),
            ];
            drop(pair.delete(&path, random.of(&choices)).await?);
        }
        10 if custom => {
            let status = json!({"status": data(random), "spec": data(random)});
            let request = Request::new(Method::Patch, ApiPath::split(&format!("{path}/status")))
                .query("fieldManager", "reporter");
            drop(pair.ask(&request.body(Content::Merge, &status), None).await?);
        }
        _ => drop(pair.get(&collection).await?),
    }
    pair.get(&path).await.map(drop)
}

#[tokio::test]
async fn random_lives_are_the_same_on_both() {
    let again: Option<u64> = std::env::var("EMCO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    // The same lives in every run: a difference that nobody made is not found in somebody else's change.
    let first = again.unwrap_or(1);
    let bed = BED.get().await.unwrap();
    for seed in (0..if again.is_some() { 1 } else { LIVES }).map(|life| first + life) {
        let mut random = Random((seed << 16) | 0x9e37);
        let mut pair = Pair::new(bed, &format!("random-{seed}")).await.unwrap();
        for number in 0..STEPS {
            let done = step(&mut pair, &mut random).await;
            done.with_context(|| format!("EMCO_TEST_SEED={seed}, step {number}")).unwrap();
        }
    }
}
