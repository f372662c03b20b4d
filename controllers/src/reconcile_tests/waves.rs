//! A revision that goes to its clusters wave by wave.

use std::time::Duration;

use serde_json::{Value, json};

use super::approvals::{approval, manual};
use super::deaths;
use super::life::*;
use super::plans::CONFIG_MAP;
use super::rig::secret;
use super::shop::{TENANT, deployment, labelled, objects, values};
use crate::memory::MemoryServer;

mod back;
mod bounds;
mod failed;
mod held;
mod later;
mod refused;

const ALL: [&str; 4] = ["a", "b", "c", "d"];

/// The shop on four clusters, of which `c` is the canary.
pub(super) async fn fleet() -> Life {
    fleet_with(&[]).await
}

/// The same, where these objects are others.
async fn fleet_with(others: &[Value]) -> Life {
    let mut life = Life::joined(ALL.map(|name| (name, MemoryServer::new())).into());
    for object in objects().iter().chain(others) {
        life.put(object);
    }
    for (name, labels) in [("c", json!({"tier": "edge", "canary": "true"})), ("d", json!({"tier": "edge"}))] {
        life.put(&secret(name));
        life.put(&labelled(name, &labels));
    }
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life
}

pub(super) fn waved(rollout: &Value) -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["rollout"] = rollout.clone();
    dig
}

pub(super) fn canary(more: &Value) -> Value {
    let mut wave = json!({"name": "canary", "clusters": [{"selector": {"matchLabels": {"canary": "true"}}}]});
    for (key, value) in more.as_object().unwrap() {
        wave[key] = value.clone();
    }
    json!({"waves": [wave]})
}

/// Clusters that have this page.
fn with(life: &Life, page: &str) -> Vec<&'static str> {
    let has = |edge: &&str| {
        life.on(edge).get("configmaps./team-a/page").is_some_and(|map| map["data"]["text"] == page)
    };
    ALL.into_iter().filter(has).collect()
}

fn rollout(life: &Life) -> Value {
    life.dig()["status"]["rollout"].clone()
}

fn inputs(life: &Life) -> String {
    rollout(life)["inputsDigest"].as_str().unwrap().to_owned()
}

/// Events of the shop with this reason.
fn events(life: &Life, reason: &str) -> Vec<String> {
    let all = life.rig.hub.objects().into_values();
    let of = all.filter(|object| object["kind"] == "Event" && object["reason"] == reason);
    of.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Opens the gate of the canary.
fn approve(life: &Life) {
    let mut gate = approval("gate", "shop", &inputs(life), "Approved");
    gate["spec"]["wave"] = json!("canary");
    life.put(&gate);
}

#[tokio::test(start_paused = true)]
async fn an_update_reaches_the_canary_and_the_rest_after_its_soak() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    for _ in 0..2 {
        life.settle().await;
        assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
        let (said, status) = (rollout(&life), life.dig()["status"].clone());
        assert_eq!((&said["wave"], &said["place"], &said["waves"]), (&json!("canary"), &json!(1), &json!(2)));
        assert_eq!((&said["clusters"], &said["done"]), (&json!(1), &json!(1)), "{said:#}");
        assert_eq!(said["waitsFor"], "the end of its soak");
        assert_eq!((&status["revision"], &status["state"]), (&json!(2), &json!("Updating")), "{status:#}");
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "WaitingForWave"), "{message}");
        assert!(
            message.contains("wave 1 of 2 (canary): 1 of 1 done; it waits for the end of its soak"),
            "{message}"
        );
        // What was remembered alone is gone.
        life.restart().await;
    }
    life.rig.clock.forward(Duration::from_mins(10));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    assert_eq!((life.says("Ready").0, &rollout(&life)["place"]), ("True".into(), &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn a_gate_after_a_wave_holds_the_rest_until_it_is_approved() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"approval": "After"}))));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    let said = rollout(&life)["waitsFor"].as_str().unwrap().to_owned();
    assert!(said.ends_with("kubectl emco approve dig/shop -n team-a --wave canary"), "{said}");
    assert_eq!(
        events(&life, "AwaitingApproval"),
        [format!("wave 1 of 2 (canary) of revision 2 waits for {said}")]
    );
    let digest = life.dig()["status"]["digest"].as_str().unwrap().to_owned();
    // Of the whole plan, and of another digest: neither is this gate's.
    life.put(&approval("plan", "shop", &digest, "Approved"));
    let mut other = approval("other", "shop", &format!("sha256:{}", "0".repeat(64)), "Approved");
    other["spec"]["wave"] = json!("canary");
    life.put(&other);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    let mut gate = approval("gate", "shop", &digest, "Approved");
    gate["spec"]["wave"] = json!("canary");
    life.put(&gate);
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    let began = events(&life, "WaveBegan").concat();
    assert!(began.contains("wave 1 of 2 (canary) of revision 2: 1 cluster"), "{began}");
    assert!(began.contains("wave 2 of 2 (the rest) of revision 2: 3 clusters"), "{began}");
    assert_eq!(events(&life, "RolloutDone"), ["revision 2 has passed all of its waves (2)"]);
    let gate = life.rig.hub.object(&format!("{TENANT}/deploymentapprovals/gate")).unwrap();
    assert_eq!(gate["status"]["state"], "InEffect", "{gate:#}");
}

#[tokio::test(start_paused = true)]
async fn a_newer_revision_begins_again_at_the_first_wave() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    life.put(&values("green"));
    life.settle().await;
    assert_eq!((with(&life, "green"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    life.rig.clock.forward(Duration::from_mins(10));
    life.settle().await;
    assert_eq!(with(&life, "green"), ALL);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_meanwhile_joins_the_last_wave() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(6));
    // It would be a canary, had it been there; and another one goes.
    life.put(&labelled("d", &json!({"tier": "core"})));
    life.put(&labelled("b", &json!({"tier": "edge", "disk": "fast", "canary": "true"})));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"], "{:#}", rollout(&life));
    life.rig.clock.forward(Duration::from_mins(4));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["a", "b", "c"], "the soak went on: {:#}", rollout(&life));
    assert_eq!(with(&life, "red"), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_after_the_end_gets_the_revision_too() {
    let mut life = fleet().await;
    life.put(&labelled("d", &json!({"tier": "core"})));
    life.put(&waved(&canary(&json!({"approval": "After"}))));
    life.put(&values("blue"));
    life.settle().await;
    approve(&life);
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (vec!["a", "b", "c"], "True".into()));
    life.put(&labelled("d", &json!({"tier": "edge"})));
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
    life.put(&labelled("a", &json!({"tier": "core"})));
    life.settle().await;
    assert_eq!((with(&life, "blue"), life.says("Ready").0), (vec!["b", "c", "d"], "True".into()));
}

#[tokio::test(start_paused = true)]
async fn a_soak_goes_on_beside_a_plan_that_waits_for_an_approval() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    life.put(&manual("Plan"));
    life.put(&values("green"));
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(6));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    life.rig.clock.forward(Duration::from_mins(4));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    assert_eq!((life.says("Approved").0, &rollout(&life)["place"]), ("False".into(), &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_a_wave_that_there_is_not_says_so() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"approval": "After"}))));
    life.put(&values("blue"));
    life.settle().await;
    let mut gate = approval("gate", "shop", &inputs(&life), "Approved");
    gate["spec"]["wave"] = json!("canaries");
    life.put(&gate);
    life.settle().await;
    let gate = life.rig.hub.object(&format!("{TENANT}/deploymentapprovals/gate")).unwrap();
    let said = gate["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(said.contains("has no wave canaries, it has canary, the rest"), "{said}");
    assert_eq!(with(&life, "blue"), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_pauses_and_its_deletion_goes_on() {
    let mut life = fleet().await;
    life.put(&waved(&canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    let mut gate = approval("gate", "shop", &inputs(&life), "Rejected");
    gate["spec"]["wave"] = json!("canary");
    life.put(&gate);
    life.rig.clock.forward(Duration::from_mins(11));
    // A cluster that comes changes the plan and none of its inputs.
    life.put(&labelled("d", &json!({"tier": "core"})));
    life.settle().await;
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "RolloutPaused"), "{message}");
    let because = "DeploymentApproval gate by ann rejects wave canary: delete it, or change the deployment";
    assert!(message.contains(because), "{message}");
    assert_eq!(with(&life, "blue"), ["c"]);
    let path = format!("{TENANT}/deploymentapprovals/gate");
    assert_eq!(life.rig.hub.object(&path).unwrap()["status"]["state"], "InEffect");
    life.delete(&path).await;
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(10));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_says_in_which_waves_it_would_come() {
    let mut life = fleet().await;
    let mut dig = waved(&canary(&json!({"soak": "10m", "approval": "After"})));
    dig["spec"]["desiredState"] = json!("Planned");
    life.put(&dig);
    life.put(&values("blue"));
    life.settle().await;
    let map = life.rig.hub.object(CONFIG_MAP).unwrap();
    let text = map["data"].as_object().unwrap().values().next().unwrap().as_str().unwrap();
    let details: Value = serde_json::from_str(text).unwrap();
    let waves = json!([
        {"name": "canary", "clusters": 1, "soak": 600, "approval": "After"},
        {"name": "the rest", "clusters": 3, "approval": "None"},
    ]);
    assert_eq!(details["waves"], waves, "{details:#}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_other_clusters_opens_no_gate() {
    let mut life = fleet().await;
    let gated = waved(&canary(&json!({"approval": "After"})));
    life.put(&gated);
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ["c"]);
    // The canary has what this edit wants of it.
    let mut edited = gated;
    let others = json!([{"selector": {"matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}}]);
    edited["spec"]["overrideValues"] =
        json!([{"app": "web", "clusters": others, "values": {"page": "green"}}]);
    life.put(&edited);
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    approve(&life);
    life.settle().await;
    assert_eq!(with(&life, "green"), ["a", "b", "d"]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_after_a_pin_goes_wave_by_wave_again() {
    let mut life = fleet().await;
    let rollout = canary(&json!({"soak": "10m"}));
    life.put(&waved(&rollout));
    life.put(&values("blue"));
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(10));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    let mut pinned = waved(&rollout);
    pinned["spec"]["revision"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL);
    life.put(&waved(&rollout));
    life.settle().await;
    assert_eq!((with(&life, "blue"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    life.rig.clock.forward(Duration::from_mins(10));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
}
