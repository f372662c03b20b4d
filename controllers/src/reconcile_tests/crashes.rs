//! The life of a deployment, with a death at every write.

use serde_json::json;

use super::deaths;
use super::life::*;
use super::shop::{TENANT, composite_app, deployment, objects, values};

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
