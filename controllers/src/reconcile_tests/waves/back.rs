//! A rollback goes to the last good revision, in the order of the waves, and takes nothing that nobody asked it to take.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::approvals::project;
use super::super::copied::copied;
use super::super::shop::{PAGE, charts, composite_app, packed};
use super::failed::{wants, without_canary};
use super::*;

const WEB: &str = "/apis/apps/v1/namespaces/team-a/deployments/web";

/// The web alone, without the hook, which would hold what does not become ready.
fn hookless() -> [Value; 2] {
    let files = [("values.yaml", "page: none\nreplicas: 1\n"), ("templates/page.yaml", PAGE)];
    let mut all = charts();
    all["binaryData"]["web-2.0.0.tgz"] = json!(packed("web", "2.0.0", &files));
    [all, composite_app("2.0.0")]
}

/// One is away for longer than a rollout waits.
async fn dead(mut life: Life, edge: &'static str) -> Life {
    life.rig.fails(edge, "Timeout");
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(11));
    life.settle().await;
    life
}

/// The shop with a page, and a number of replicas by which its Deployment is another one and has to become ready anew.
fn edited(rollout: &Value, page: &str, replicas: i64) -> Value {
    let mut dig = deployment("edge");
    if !rollout.is_null() {
        dig["spec"]["rollout"] = rollout.clone();
    }
    dig["spec"]["overrideValues"] = json!([{"app": "web", "values": {"page": page, "replicas": replicas}}]);
    dig
}

/// The canary, and then the rest, with a rollback.
fn rollback() -> Value {
    let mut rollout = canary(&json!({}));
    rollout["onFailure"] = json!("Rollback");
    rollout
}

/// Nothing that changes becomes ready there any more.
fn breaks(life: &Life, edges: &[&str]) {
    for edge in edges {
        life.edges[*edge].set_workloads_ready(false);
    }
}

/// What is there becomes ready.
fn heals(life: &Life, edges: &[&str]) {
    for edge in edges {
        let server = &life.edges[*edge];
        server.set_workloads_ready(true);
        let web = server.object(WEB).unwrap();
        let (generation, replicas) = (&web["metadata"]["generation"], &web["spec"]["replicas"]);
        let ready = json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [{"type": "Available", "status": "True"}],
        });
        server.set_status(WEB, &ready).unwrap();
    }
}

/// What does not become ready has failed.
async fn late(life: &mut Life) {
    let beyond_its_deadline = Duration::from_mins(11);
    life.rig.clock.forward(beyond_its_deadline);
    tokio::time::sleep(beyond_its_deadline).await;
    life.settle().await;
}

/// Outcome of a revision, and whether it is good.
fn judged(life: &Life, revision: i64) -> (String, bool) {
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-{revision}")).unwrap();
    let status = &context["status"];
    (status["outcome"].as_str().unwrap_or_default().to_owned(), status["good"] == true)
}

fn was(outcome: &str, good: bool) -> (String, bool) {
    (outcome.to_owned(), good)
}

/// The canary becomes ready with revision 2, the rest does not, and revision 1 is back.
async fn taken_back() -> Life {
    let mut life = fleet_with(&hookless()).await;
    assert_eq!(judged(&life, 1), was("Instantiated", true));
    breaks(&life, &["a", "b", "d"]);
    life.put(&edited(&rollback(), "blue", 3));
    life.settle().await;
    assert_eq!((with(&life, "blue"), judged(&life, 2).1), (ALL.to_vec(), false));
    late(&mut life).await;
    assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Ready"));
    life
}

#[tokio::test(start_paused = true)]
async fn a_second_rollback_goes_to_the_good_revision_too() {
    let mut life = taken_back().await;
    assert_eq!(judged(&life, 2), was("UpdateFailed", false));
    heals(&life, &["a", "b", "d"]);
    life.settle().await;
    breaks(&life, &["c"]);
    life.put(&edited(&rollback(), "green", 4));
    life.settle().await;
    assert_eq!((with(&life, "green"), with(&life, "red")), (vec!["c"], vec!["a", "b", "d"]));
    late(&mut life).await;
    assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Ready"));
    assert!(life.says("Ready").2.contains("revision 1 came back"), "{:?}", life.says("Ready"));
    assert_eq!(
        (judged(&life, 2), judged(&life, 3)),
        (was("UpdateFailed", false), was("UpdateFailed", false))
    );
    assert_eq!(judged(&life, 1), was("Instantiated", true));
}

#[tokio::test(start_paused = true)]
async fn after_a_rollback_that_worked_the_deployment_is_ready() {
    let mut life = taken_back().await;
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "RolloutPaused"), "{message}");
    heals(&life, &["a", "b", "d"]);
    life.settle().await;
    for _ in 0..2 {
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((ready.as_str(), reason.as_str()), ("True", "Ready"), "{message}");
        assert!(message.contains("too many clusters failed, and revision 1 came back"), "{message}");
        // Who waits for the change learns that it does not come.
        let (deployed, reason, message) = life.says("Deployed");
        assert_eq!((deployed.as_str(), reason.as_str()), ("False", "RolloutPaused"), "{message}");
        assert_eq!((life.says("Stalled").0.as_str(), life.says("Reconciling").0.as_str()), ("True", ""));
        let status = life.dig()["status"].clone();
        assert_eq!((&status["revision"], &status["state"]), (&json!(1), &json!("Updated")), "{status:#}");
        assert_eq!(status["clusters"]["ready"], 4, "{status:#}");
        life.restart().await;
        life.settle().await;
    }
    // The next change is a rollout as any other.
    life.put(&edited(&rollback(), "green", 4));
    life.settle().await;
    assert_eq!((with(&life, "green"), life.says("Ready").0), (ALL.to_vec(), "True".into()));
    assert_eq!((judged(&life, 3), life.says("Stalled").0), (was("Updated", true), String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_rollback_passes_over_what_was_applied_and_never_ready() {
    let mut life = fleet_with(&hookless()).await;
    breaks(&life, &ALL);
    life.put(&edited(&Value::Null, "blue", 3));
    life.settle().await;
    assert_eq!(judged(&life, 2), was("Updated", false), "applied, and not ready");
    late(&mut life).await;
    assert_eq!(judged(&life, 2), was("UpdateFailed", false));
    life.put(&edited(&rollback(), "green", 4));
    life.settle().await;
    late(&mut life).await;
    // The canary goes back first, and the rest when it is ready.
    assert_eq!((with(&life, "red"), with(&life, "blue")), (vec!["c"], vec!["a", "b", "d"]));
    assert!(life.says("Ready").2.contains("revision 1 comes back"), "{:?}", life.says("Ready"));
    assert_eq!(life.says("Stalled").0, "");
    heals(&life, &["c"]);
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_way_back_waits_for_no_canary_that_stays_broken() {
    let mut life = fleet_with(&hookless()).await;
    breaks(&life, &ALL);
    life.put(&edited(&Value::Null, "blue", 3));
    life.settle().await;
    life.put(&edited(&rollback(), "green", 4));
    life.settle().await;
    late(&mut life).await;
    assert_eq!(with(&life, "red"), ["c"]);
    late(&mut life).await;
    assert_eq!(with(&life, "red"), ALL, "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_rollback_takes_nothing_off_a_cluster_that_came_between() {
    let mut life = fleet_with(&hookless()).await;
    life.put(&labelled("d", &json!({"tier": "core"})));
    life.settle().await;
    assert_eq!((judged(&life, 2), with(&life, "red")), (was("Updated", true), vec!["a", "b", "c"]));
    breaks(&life, &["a", "b"]);
    life.put(&edited(&rollback(), "blue", 3));
    life.put(&labelled("d", &json!({"tier": "edge"})));
    life.settle().await;
    assert_eq!(with(&life, "blue"), ALL);
    late(&mut life).await;
    assert_eq!((with(&life, "red"), with(&life, "blue")), (vec!["a", "b", "c"], vec!["d"]));
    heals(&life, &["a", "b"]);
    life.settle().await;
    let (ready, _, message) = life.says("Ready");
    assert!(ready == "True" && message.contains("revision 2 came back"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_fails_for_ever_keeps_no_revision_from_being_good() {
    let mut life = dead(fleet_with(&hookless()).await, "c").await;
    let rollout = json!({"waves": [], "maxFailures": 1, "onFailure": "Rollback"});
    life.put(&edited(&rollout, "blue", 3));
    life.settle().await;
    assert_eq!((with(&life, "blue"), judged(&life, 2).1), (vec!["a", "b", "d"], true));
    breaks(&life, &["a", "b"]);
    life.put(&edited(&rollout, "green", 4));
    life.settle().await;
    late(&mut life).await;
    assert_eq!(with(&life, "blue"), ["a", "b", "d"], "{:?}", life.says("Ready"));
    assert!(life.says("Ready").2.contains("revision 2 came back"), "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_beyond_all_failures_is_not_good() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Continue");
    life.settle().await;
    assert_eq!((with(&life, "blue"), judged(&life, 2).1), (vec!["a", "b", "d"], false));
    life.rig.returns("c", "uid-c");
    life.settle().await;
    assert_eq!(judged(&life, 2), was("Updated", true));
}

#[tokio::test(start_paused = true)]
async fn a_way_back_that_removes_too_much_waits_for_a_person() {
    let mut life = fleet_with(&hookless()).await;
    breaks(&life, &["a", "b", "d"]);
    let mut everywhere = edited(&rollback(), "blue", 3);
    let all = json!([{"selector": {"matchLabels": {"tier": "edge"}}}]);
    everywhere["spec"]["placement"]["apps"] = json!([{"app": "db", "allOf": all}]);
    life.put(&everywhere);
    life.settle().await;
    late(&mut life).await;
    let (ready, reason, message) = life.says("Ready");
    assert_eq!(
        (ready.as_str(), reason.as_str(), with(&life, "blue")),
        ("False", "RolloutPaused", ALL.to_vec())
    );
    let because = "revision 1 does not come back by itself: app db leaves 3 of the 4 clusters";
    assert!(
        message.contains(because) && message.contains("kubectl emco rollback team-a/shop 1"),
        "{message}"
    );
    life.put(&project(&json!({"removalBudget": "100%"})));
    life.settle().await;
    // What is to go waits until what comes is ready.
    heals(&life, &["a", "b", "d"]);
    life.settle().await;
    let db = |edge: &&str| life.on(edge).contains_key("statefulsets.apps/team-a/db");
    assert_eq!(
        (with(&life, "red"), ALL.into_iter().filter(db).collect::<Vec<_>>()),
        (ALL.to_vec(), vec!["b"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_way_back_changes_nothing() {
    // The others of the last wave have the revision when this one fails.
    let first = async || dead(fleet().await, "d").await;
    let change = |life: &Life| wants(life, &canary(&json!({})), "Rollback");
    let check = async |life: &mut Life, how: &str| {
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((with(life, "red"), judged(life, 2)), (ALL.to_vec(), was("UpdateFailed", false)), "{how}");
        assert!(message.contains("revision 1 came back"), "{how}: {ready} {reason}: {message}");
        assert_eq!(
            (&rollout(life)["takenBack"], &life.dig()["status"]["state"]),
            (&json!(true), &json!("Updated")),
            "{how}"
        );
    };
    Box::pin(deaths::at_each_write(first, change, check, 12)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_stays_so_when_statuses_are_lost() {
    let mut life = without_canary().await;
    wants(&life, &canary(&json!({})), "Rollback");
    life.settle().await;
    assert_eq!(with(&life, "red"), ALL);
    life.end().await;
    // The canary answers again, and would take the revision.
    let mut life = copied(&life, false, true).await;
    life.settle().await;
    assert_eq!((with(&life, "red"), &rollout(&life)["takenBack"]), (ALL.to_vec(), &json!(true)));
    assert!(life.says("Ready").2.contains("revision 1 came back"), "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn the_first_revision_that_fails_has_no_way_back() {
    let mut life = Life::joined(ALL.map(|name| (name, MemoryServer::new())).into());
    for object in objects().iter().chain(&hookless()) {
        life.put(object);
    }
    breaks(&life, &["a"]);
    life.put(&edited(&json!({"waves": [], "onFailure": "Rollback"}), "blue", 3));
    life.settle().await;
    late(&mut life).await;
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "RolloutPaused"), "{message}");
    assert!(
        message.contains("no good revision before it is stored, so that what is there stays"),
        "{message}"
    );
    assert_eq!((with(&life, "blue"), judged(&life, 1)), (vec!["a", "b"], was("InstantiateFailed", false)));
}

#[tokio::test(start_paused = true)]
async fn what_crashes_is_not_good_because_a_cluster_left() {
    let mut life = fleet_with(&hookless()).await;
    breaks(&life, &ALL);
    life.put(&edited(&Value::Null, "blue", 3));
    life.settle().await;
    life.put(&edited(&rollback(), "blue", 3));
    life.put(&labelled("d", &json!({"tier": "core"})));
    life.settle().await;
    late(&mut life).await;
    assert_eq!(with(&life, "blue"), ["a", "b", "c"]);
    assert_eq!((judged(&life, 2).1, judged(&life, 3).1), (false, false), "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_deployment_still_says_what_came_back() {
    let mut life = taken_back().await;
    let mut dig = life.dig();
    dig["spec"]["suspend"] = json!(true);
    life.put(&dig);
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 1, "{:?}", life.says("Ready"));
}
