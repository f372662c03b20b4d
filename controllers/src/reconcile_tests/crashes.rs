//! The life of a deployment, with a death at every write.

use serde_json::json;

use super::approvals::{approval, pending, waiting};
use super::deaths;
use super::life::*;
use super::shop::{TENANT, composite_app, deployment, objects, values};

mod turns;

/// Makes the change, once; what follows is the process's.
type Change = fn(&Life);

fn install(life: &Life) {
    life.put(&deployment("edge"));
}

fn update(life: &Life) {
    life.put(&composite_app("1.1.0"));
    life.put(&values("blue"));
}

fn terminate(life: &Life) {
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
}

fn delete(life: &Life) {
    life.rig.hub.remove(&format!("{TENANT}/deploymentintentgroups/shop"));
}

/// A process at rest on everything but the deployment, or with it.
async fn at_rest(with: bool) -> Life {
    let mut all = objects();
    if !with {
        all.pop();
    }
    let mut life = Life::with(&all);
    life.settle().await;
    life
}

/// A change to a process at rest on everything but the deployment, or with it.
async fn at_every_write(with: bool, change: Change, least: u64) {
    deaths::at_every_write(async || at_rest(with).await, change, async |_: &mut Life| {}, least).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_an_installation_changes_nothing_in_the_end() {
    at_every_write(false, install, 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_an_update_changes_nothing_in_the_end() {
    at_every_write(true, update, 15).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_termination_changes_nothing_in_the_end() {
    at_every_write(true, terminate, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_deletion_changes_nothing_in_the_end() {
    at_every_write(true, delete, 12).await;
}

fn approve(life: &Life) {
    life.put(&approval("yes", "shop", &pending(life), "Approved"));
}

/// Beside what was approved, an edit waits.
async fn edit_waits() -> Life {
    let mut life = waiting("Plan").await;
    approve(&life);
    life.settle().await;
    update(&life);
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_after_an_approval_changes_nothing_in_the_end() {
    let first = async || waiting("Plan").await;
    deaths::at_every_write(first, approve, async |_: &mut Life| {}, 15).await;
}

/// What was approved runs, and nothing waits.
async fn approved() -> Life {
    let mut life = waiting("Plan").await;
    approve(&life);
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_death_while_a_plan_is_written_down_changes_nothing_in_the_end() {
    let first = async || approved().await;
    Box::pin(deaths::at_every_write(first, update, async |_: &mut Life| {}, 3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_while_an_edit_that_waits_is_taken_back_leaves_nothing() {
    let back = |life: &Life| {
        life.put(&composite_app("1.0.0"));
        life.put(&values("red"));
    };
    let check = async |life: &mut Life, how: &str| {
        let left: Vec<String> =
            life.rig.hub.objects().into_keys().filter(|key| is_written_down(key)).collect();
        assert!(left.is_empty(), "{how}: {left:?}");
    };
    Box::pin(deaths::at_each_write(edit_waits, back, check, 3)).await;
}

/// Whether an object says what a plan changes.
fn is_written_down(key: &str) -> bool {
    key.ends_with("/dig-shop-plan") || key.contains("/emco-plan-")
}

#[tokio::test(start_paused = true)]
async fn a_plan_rejected_at_any_write_of_its_refusal_is_never_carried_out() {
    let change = |life: &Life| {
        life.put(&approval("no", "shop", &pending(life), "Rejected"));
        life.put(&approval("second", "shop", &pending(life), "Approved"));
    };
    let check = async |life: &mut Life, how: &str| {
        assert_eq!(life.says("Approved").1, "Rejected", "{how}");
        let revision = life.dig()["status"]["revision"].clone();
        assert_eq!(revision, 1, "{how}");
        let stored = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
        assert!(!stored.contains(&"dig-shop-2".to_owned()), "{how}: {stored:?}");
    };
    Box::pin(deaths::at_each_write(edit_waits, change, check, 3)).await;
}
