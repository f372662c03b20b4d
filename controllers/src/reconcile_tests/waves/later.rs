//! An app that waits for one of another wave: a later one is waited for in vain, the same one is not.

use std::time::Duration;

use serde_json::json;

use super::super::shop::composite_app;
use super::failed::wants;
use super::*;

/// `web` waits for `db`, which is on `b` alone and has its turn after the canary, which has `web` alone.
async fn waits_for_a_later_wave() -> Life {
    let mut life = fleet().await;
    let mut app = composite_app("1.0.0");
    app["spec"]["apps"][0]["dependsOn"] = json!([{"app": "db"}]);
    life.put(&app);
    wants(&life, &canary(&json!({})), "Pause");
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn an_app_that_waits_for_a_later_wave_fails_and_the_rollout_pauses() {
    let mut life = waits_for_a_later_wave().await;
    let (_, reason, message) = life.says("Ready");
    assert_ne!(reason, "RolloutPaused", "it is not late yet: {message}");
    // The deadline.
    tokio::time::sleep(Duration::from_mins(11)).await;
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!((reason.as_str(), with(&life, "red")), ("RolloutPaused", ALL.to_vec()), "{message}");
    assert!(message.contains("1 cluster failed, and spec.rollout.maxFailures bears 0"), "{message}");
    let failing = life.dig()["status"]["failing"].clone();
    assert_eq!(failing[0]["cluster"], "acme/c", "{failing:#}");
    assert_eq!(failing[0]["reason"], "ProgressDeadlineExceeded", "{failing:#}");
    assert!(failing[0]["message"].as_str().unwrap().contains("app db"), "{failing:#}");
    // The wave of what it waits for begins, and it waits no more.
    let mut borne = canary(&json!({}));
    borne["maxFailures"] = json!(1);
    wants(&life, &borne, "Pause");
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
}

#[tokio::test(start_paused = true)]
async fn an_app_and_what_it_waits_for_go_together_in_one_wave() {
    let mut life = fleet().await;
    let mut app = composite_app("1.0.0");
    app["spec"]["apps"][0]["dependsOn"] = json!([{"app": "db"}]);
    life.put(&app);
    let mut both = canary(&json!({"approval": "After"}));
    both["waves"][0]["clusters"] = json!([
        {"selector": {"matchLabels": {"canary": "true"}}}, {"selector": {"matchLabels": {"disk": "fast"}}},
    ]);
    wants(&life, &both, "Pause");
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["b", "c"], vec!["a", "d"]));
    approve(&life);
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
}
