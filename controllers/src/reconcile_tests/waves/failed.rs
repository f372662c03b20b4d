//! A rollout that meets clusters that fail, and processes that die.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::approvals::manual;
use super::super::shop::composite_app;
use super::*;

/// The canary is away, and has been for longer than a rollout waits.
pub(super) async fn without_canary() -> Life {
    let mut life = fleet().await;
    life.rig.fails("c", "Timeout");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    life
}

pub(super) fn wants(life: &Life, rollout: &Value, on_failure: &str) {
    let mut rollout = rollout.clone();
    rollout["onFailure"] = json!(on_failure);
    life.put(&waved(&rollout));
    life.put(&values("blue"));
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_dies_pauses_when_its_time_is_over() {
    let mut life = fleet().await;
    wants(&life, &canary(&json!({"soak": "30m"})), "Pause");
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    life.rig.fails("c", "Timeout");
    life.settle().await;
    assert_eq!(life.says("Ready").1, "WaitingForWave", "{:?}", life.says("Ready"));
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!(reason, "RolloutPaused", "{message}");
    let because = "1 cluster failed, and spec.rollout.maxFailures bears 0: cure what status.failing names";
    assert!(message.contains(because), "{message}");
    // Limits are those of the spec as it is now.
    let mut borne = canary(&json!({"soak": "30m"}));
    borne["maxFailures"] = json!(1);
    life.put(&waved(&borne));
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(30));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
}

#[tokio::test(start_paused = true)]
async fn an_outage_where_nothing_changes_pauses_no_rollout() {
    let mut life = fleet().await;
    // Only the canary is changed, and d has been away for long.
    life.rig.fails("d", "Timeout");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    let mut dig = waved(&canary(&json!({})));
    dig["spec"]["overrideValues"] = json!([{
        "app": "web", "clusters": [{"selector": {"matchLabels": {"canary": "true"}}}], "values": {"page": "blue"},
    }]);
    life.put(&dig);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"], "{:?}", life.says("Ready"));
    let rollout = rollout(&life);
    assert_eq!((&rollout["failed"], &rollout["waitsFor"]), (&json!(0), &Value::Null), "{rollout:#}");
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_not_tried_again() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Rollback");
    life.settle().await;
    for _ in 0..2 {
        let (_, reason, message) = life.says("Ready");
        assert_eq!(reason, "RolloutPaused", "{message}");
        assert!(message.contains("too many clusters failed, and revision 1 came back"), "{message}");
        assert_eq!(with(&life, "red"), ALL);
        life.restart().await;
        life.rig.clock.forward(Duration::from_hours(1));
        life.settle().await;
    }
    life.put(&waved(&json!({"waves": [], "maxFailures": 1})));
    life.put(&values("green"));
    life.settle().await;
    assert!(with(&life, "green").contains(&"a"), "the next change is tried: {:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_while_it_is_taken_back_changes_nothing() {
    let change = |life: &Life| wants(life, &canary(&json!({})), "Rollback");
    let first = async || without_canary().await;
    Box::pin(deaths::at_every_write(first, change, async |_: &mut Life| {}, 8)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_before_a_gate_changes_nothing_in_the_end() {
    let change = |life: &Life| wants(life, &canary(&json!({"approval": "After"})), "Pause");
    let check = async |life: &mut Life, how: &str| {
        assert_eq!((with(life, "blue"), with(life, "red")), (vec!["c"], vec!["a", "b", "d"]), "{how}");
    };
    Box::pin(deaths::at_each_write(async || fleet().await, change, check, 8)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_after_a_gate_changes_nothing_in_the_end() {
    let first = async || {
        let mut life = fleet().await;
        wants(&life, &canary(&json!({"approval": "After"})), "Pause");
        life.settle().await;
        life
    };
    Box::pin(deaths::at_every_write(first, approve, async |_: &mut Life| {}, 8)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_stays_so_beside_an_edit_that_waits() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Rollback");
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL);
    life.put(&manual("Plan"));
    life.put(&values("green"));
    life.settle().await;
    assert_eq!((with(&life, "red"), &rollout(&life)["takenBack"]), (ALL.to_vec(), &json!(true)));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!((with(&life, "red"), &rollout(&life)["takenBack"]), (ALL.to_vec(), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_rollback_never_goes_to_a_revision_that_was_taken_back() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Rollback");
    life.settle().await;
    let mut pinned = life.dig();
    pinned["spec"]["revision"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    let outcome = |life: &Life, revision: i64| {
        let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-{revision}")).unwrap();
        context["status"]["outcome"].clone()
    };
    assert_ne!(outcome(&life, 2), "Updated");
    let mut rollout_ = canary(&json!({}));
    rollout_["onFailure"] = json!("Rollback");
    life.put(&waved(&rollout_));
    life.put(&values("green"));
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Ready"));
    assert!(life.says("Ready").2.contains("revision 1 came back"), "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_canary_is_not_let_on_by_what_waits_for_its_turn() {
    let mut life = fleet().await;
    // The canary has web alone; db is on b, whose turn comes later, with what it had.
    let mut app = composite_app("1.0.0");
    app["spec"]["apps"][0]["dependsOn"] = json!([{"app": "db"}]);
    life.put(&app);
    wants(&life, &canary(&json!({})), "Pause");
    life.settle().await;
    assert_eq!(with(&life, "blue"), Vec::<&str>::new(), "{:?}", life.says("Ready"));
    let failing = life.dig()["status"]["failing"].to_string();
    assert!(failing.contains("app db"), "{failing}");
}

#[tokio::test(start_paused = true)]
async fn one_dead_cluster_pauses_where_none_is_borne_until_it_is_back() {
    let mut life = without_canary().await;
    wants(&life, &json!({"waves": [{"name": "first", "size": 2}]}), "Pause");
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!((reason.as_str(), with(&life, "blue")), ("RolloutPaused", vec!["a", "b", "d"]), "{message}");
    assert!(message.contains("1 cluster failed, and spec.rollout.maxFailures bears 0"), "{message}");
    life.rig.returns("c", "uid-c");
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_nobody_opens_is_waited_for_and_costs_nothing() {
    let mut life = fleet().await;
    wants(&life, &canary(&json!({"approval": "After"})), "Rollback");
    life.settle().await;
    let (before, said) = (versions(&life.rig.hub), life.says("Ready"));
    life.rig.clock.forward(Duration::from_hours(24 * 90));
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready")), (vec!["c"], said));
    assert_eq!(difference(&versions(&life.rig.hub), &before), "");
    approve(&life);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
}
