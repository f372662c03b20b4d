//! A rollout at its bounds: how many clusters go at once, how many failures are borne, and how long a wave is watched.

use std::time::Duration;

use serde_json::json;

use super::failed::{wants, without_canary};
use super::*;

#[tokio::test(start_paused = true)]
async fn failures_that_pause_a_rollout_do_not_where_it_is_to_continue() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Pause");
    life.settle().await;
    assert_eq!((life.says("Ready").1.as_str(), with(&life, "blue")), ("RolloutPaused", vec![]));
    wants(&life, &canary(&json!({})), "Continue");
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["a", "b", "d"], "{:?}", life.says("Ready"));
    let (said, (ready, reason, message)) = (rollout(&life), life.says("Ready"));
    assert_eq!((&said["failed"], &said["takenBack"]), (&json!(1), &Value::Null), "{said:#}");
    assert_eq!(ready, "False", "{message}");
    assert_ne!(reason, "RolloutPaused", "{message}");
    life.rig.returns("c", "uid-c");
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
}

#[tokio::test(start_paused = true)]
async fn a_failed_canary_opens_no_gate_where_a_rollout_is_to_continue() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({"approval": "After"})), "Continue");
    life.settle().await;
    let waits = rollout(&life)["waitsFor"].as_str().unwrap().to_owned();
    assert!(waits.starts_with("an approval before the next one begins"), "{waits}");
    assert_eq!(with(&life, "blue"), Vec::<&str>::new());
    approve(&life);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["a", "b", "d"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_clusters_are_on_their_way_than_max_concurrent_says() {
    let mut life = fleet().await;
    // They are away for less than the deadline: they have not failed, and are on their way.
    life.rig.fails("a", "Timeout");
    life.rig.fails("b", "Timeout");
    life.settle().await;
    // The half of four.
    wants(&life, &json!({"waves": [], "maxConcurrent": "50%"}), "Pause");
    life.settle().await;
    assert_eq!(with(&life, "blue"), Vec::<&str>::new(), "{:?}", life.says("Ready"));
    let said = rollout(&life);
    assert_eq!((&said["clusters"], &said["done"], &said["failed"]), (&json!(4), &json!(0), &json!(0)));
    // One of the two places is free again, for one after the other.
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["b", "c", "d"], "{:?}", life.says("Ready"));
    life.rig.returns("a", "uid-a");
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
}

#[tokio::test(start_paused = true)]
async fn a_higher_max_concurrent_lets_a_rollout_go_on_at_once() {
    let mut life = fleet().await;
    life.rig.fails("a", "Timeout");
    life.settle().await;
    wants(&life, &json!({"waves": [], "maxConcurrent": 1}), "Pause");
    life.settle().await;
    assert_eq!(with(&life, "blue"), Vec::<&str>::new(), "{:?}", life.says("Ready"));
    wants(&life, &json!({"waves": [], "maxConcurrent": 2}), "Pause");
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["b", "c", "d"], "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_breaks_while_it_is_watched_is_watched_anew() {
    let mut life = fleet().await;
    wants(&life, &canary(&json!({"soak": "10m"})), "Pause");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(6));
    life.rig.fails("c", "Timeout");
    life.settle().await;
    assert_eq!(rollout(&life)["done"], 0, "{:#}", rollout(&life));
    life.rig.returns("c", "uid-c");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(6));
    life.settle().await;
    assert_eq!(
        (with(&life, "blue"), &rollout(&life)["waitsFor"]),
        (vec!["c"], &json!("the end of its soak"))
    );
    life.rig.clock.forward(Duration::from_mins(4));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
}

#[tokio::test(start_paused = true)]
async fn each_wave_is_watched_for_its_own_time() {
    let mut life = fleet().await;
    let mut twice = canary(&json!({"soak": "10m"}));
    twice["waves"].as_array_mut().unwrap().push(json!({"name": "half", "size": "50%", "soak": "20m"}));
    wants(&life, &twice, "Pause");
    life.settle().await;
    for (minutes, blue) in
        [(9, vec!["c"]), (1, vec!["a", "b", "c"]), (19, vec!["a", "b", "c"]), (1, ALL.to_vec())]
    {
        life.rig.clock.forward(Duration::from_mins(minutes));
        life.settle().await;
        assert_eq!(with(&life, "blue"), blue, "after {minutes} min more: {:#}", rollout(&life));
    }
}
