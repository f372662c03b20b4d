//! A rollout beside a change that is refused: its waves go on, and so does the way back.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::lost::packs_of;
use super::super::rig::emco;
use super::failed::wants;
use super::*;

const TEN_MINUTES: Duration = Duration::from_mins(10);

/// The deployment with a placement that matches no cluster.
fn refuse(life: &Life) {
    let mut dig = waved(&life.dig()["spec"]["rollout"]);
    dig["spec"]["placement"] = deployment("nowhere")["spec"]["placement"].clone();
    life.put(&dig);
}

/// The canary has the revision, and is watched; then a change is refused.
async fn refused_in_the_middle() -> Life {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    refuse(&life);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    assert_eq!(life.says("Ready").1, "NoClusterMatches", "{:?}", life.says("Ready"));
    life
}

#[tokio::test(start_paused = true)]
async fn a_rollout_in_the_middle_goes_on_beside_a_refused_change() {
    let check = async |life: &mut Life, how: &str| {
        assert_eq!(with(life, "blue"), ALL, "{how}: {:?}", life.says("Deployed"));
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "NoClusterMatches"), "{how}: {message}");
        let everywhere = "revision 2 runs on 4 of 4 clusters; the last change is refused: ";
        assert!(message.starts_with(everywhere), "{how}: {message}");
        assert_eq!(rollout(life)["place"], 3, "{how}: {:#}", rollout(life));
    };
    let change = |life: &Life| life.rig.clock.forward(TEN_MINUTES);
    Box::pin(deaths::at_each_write(async || refused_in_the_middle().await, change, check, 6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_opened_beside_a_refused_change() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"approval": "After"}))));
    life.put(&values("blue"));
    life.settle().await;
    refuse(&life);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    approve(&life);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_happens_beside_a_refused_change() {
    let first = async || {
        let mut life = fleet().await;
        wants(&life, &canary(&json!({"soak": "30m"})), "Rollback");
        life.settle().await;
        refuse(&life);
        life.settle().await;
        life.rig.fails("c", "Timeout");
        life.settle().await;
        assert_eq!(with(&life, "blue"), ["c"]);
        life
    };
    let change = |life: &Life| life.rig.clock.forward(Duration::from_mins(11));
    let check = async |life: &mut Life, how: &str| {
        assert_eq!(rollout(life)["takenBack"], true, "{how}: {:#}", rollout(life));
        let (_, reason, message) = life.says("Deployed");
        assert_eq!(reason, "RolloutPaused", "{how}: {message}");
        assert!(message.contains("too many clusters failed, and revision 1 came back"), "{how}: {message}");
        assert_eq!(life.says("Ready").1, "NoClusterMatches", "{how}");
        life.rig.returns("c", "uid-c");
        life.settle().await;
        assert_eq!(with(life, "red"), ALL, "{how}: {:?}", life.says("Deployed"));
        let message = life.says("Ready").2;
        assert!(message.starts_with("revision 1 runs on 4 of 4 clusters; "), "{how}: {message}");
    };
    Box::pin(deaths::at_each_write(first, change, check, 4)).await;
}

#[tokio::test(start_paused = true)]
async fn a_wave_passes_over_clusters_that_are_granted_no_more() {
    let mut life = refused_in_the_middle().await;
    let granted = ["a", "b", "c"].map(|name| json!({"provider": "acme", "cluster": name}));
    let grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin", "clusters": granted});
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
    life.settle().await;
    life.rig.clock.forward(TEN_MINUTES);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["a", "b", "c"], vec!["d"]));
    let message = life.says("Ready").2;
    assert!(message.starts_with("revision 2 runs on 3 of 4 clusters; "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn no_wave_begins_where_the_refused_change_wants_none() {
    let stops: [(&str, Value); 3] =
        [("suspend", json!(true)), ("desiredState", json!("Planned")), ("revision", json!(9))];
    for (field, value) in stops {
        let mut life = refused_in_the_middle().await;
        let mut dig = life.dig();
        dig["spec"][field] = value;
        life.put(&dig);
        life.settle().await;
        life.rig.clock.forward(TEN_MINUTES);
        life.settle().await;
        assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_way_back_passes_over_clusters_that_are_granted_no_more() {
    let mut life = fleet().await;
    wants(&life, &canary(&json!({"soak": "30m"})), "Rollback");
    life.settle().await;
    refuse(&life);
    let granted = ["a", "b", "d"].map(|name| json!({"provider": "acme", "cluster": name}));
    let grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin", "clusters": granted});
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
    life.settle().await;
    life.rig.fails("c", "Timeout");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    assert_eq!(rollout(&life)["takenBack"], true, "{:#}", rollout(&life));
    life.rig.returns("c", "uid-c");
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_lost_brings_no_earlier_one_beside_a_refused_change() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({}))));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    refuse(&life);
    for pack in packs_of(&life, "dig-shop-2") {
        life.delete(&pack).await;
    }
    life.restart().await;
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL, "{:?}", life.says("Ready"));
}
