//! A rollout beside approvals of whole plans, beside plans that are only planned, and after a pin.

use serde_json::{Value, json};

use super::super::approvals::{decide, manual};
use super::failed::{wants, without_canary};
use super::*;

fn others(page: &str) -> Value {
    let others = json!([{"selector": {"matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}}]);
    json!([{"app": "web", "clusters": others, "values": {"page": page}}])
}

#[tokio::test(start_paused = true)]
async fn a_plan_whose_approval_is_gone_opens_no_wave() {
    for rejected in [false, true] {
        let mut life = fleet().await;
        life.put(&manual("Plan"));
        life.put(&waved(&canary(&json!({"approval": "Before"}))));
        life.put(&values("blue"));
        life.settle().await;
        decide(&mut life, "plan", "Approved").await;
        assert_eq!((with(&life, "red"), &rollout(&life)["place"]), (ALL.to_vec(), &json!(1)));
        if rejected {
            let digest = life.dig()["status"]["digest"].as_str().unwrap().to_owned();
            life.put(&approval("no", "shop", &digest, "Rejected"));
        } else {
            life.delete(&format!("{TENANT}/deploymentapprovals/plan")).await;
        }
        life.settle().await;
        approve(&life);
        life.settle().await;
        assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Approved"));
        assert_eq!(life.says("Approved").0, "False", "{:?}", life.says("Approved"));
        assert!(life.dig()["status"]["pending"]["digest"].is_string(), "{:#}", life.dig()["status"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_is_never_complete_while_it_is_only_planned() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Rollback");
    life.settle().await;
    let mut planned = life.dig();
    planned["spec"]["desiredState"] = json!("Planned");
    life.put(&planned);
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!(status["revision"], 1, "{status:#}");
    let second = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-2")).unwrap();
    assert_ne!(second["status"]["outcome"], "Updated", "{second:#}");
    let mut back = life.dig();
    back["spec"]["desiredState"] = json!("Instantiated");
    life.put(&back);
    life.settle().await;
    assert_eq!((with(&life, "red"), &rollout(&life)["takenBack"]), (ALL.to_vec(), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_a_wave_while_it_is_only_planned_is_not_complete() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"approval": "After"}))));
    life.put(&values("blue"));
    life.settle().await;
    let mut planned = life.dig();
    planned["spec"]["desiredState"] = json!("Planned");
    life.put(&planned);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    let second = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-2")).unwrap();
    assert_ne!(second["status"]["outcome"], "Updated", "{second:#}");
}

/// The newest revision left the canary as it was, and a pin then gave it something else.
async fn pinned() -> Life {
    let mut life = fleet().await;
    life.put(&values("blue"));
    life.settle().await;
    let mut dig = waved(&canary(&json!({"approval": "After"})));
    dig["spec"]["overrideValues"] = others("green");
    life.put(&dig);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "green")), (vec!["c"], vec!["a", "b", "d"]));
    let mut pinned = life.dig();
    pinned["spec"]["revision"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL);
    life
}

fn unpin(life: &Life) {
    let mut dig = life.dig();
    dig["spec"].as_object_mut().unwrap().remove("revision");
    life.put(&dig);
}

#[tokio::test(start_paused = true)]
async fn whom_a_revision_left_alone_takes_part_after_a_pin() {
    let mut life = pinned().await;
    unpin(&life);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    approve(&life);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "green")), (vec!["c"], vec!["a", "b", "d"]));
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_after_a_pin_opens_no_gate() {
    let check = async |life: &mut Life, how: &str| {
        assert_eq!((with(life, "blue"), with(life, "red")), (vec!["c"], vec!["a", "b", "d"]), "{how}");
    };
    Box::pin(deaths::at_each_write(async || pinned().await, unpin, check, 8)).await;
}

#[tokio::test(start_paused = true)]
async fn a_wave_that_waits_for_its_approval_has_not_begun() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"approval": "Before"}))));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!((with(&life, "red"), events(&life, "WaveBegan").len()), (ALL.to_vec(), 0));
    approve(&life);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    let began = events(&life, "WaveBegan").concat();
    assert!(began.contains("wave 1 of 2 (canary) of revision 2: 1 cluster"), "{began}");
}
