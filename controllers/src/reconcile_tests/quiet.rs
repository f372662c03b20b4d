//! Clusters first: what people read, and what only tidies up, waits until they had their turn. It comes all the same, whatever
//! dies in between.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::shop;
use crate::api::Method;
use crate::object::context::Outcome;
use crate::object::events;
use crate::reconcile::deployment;

/// The deployment with another text on its page, and a short history.
fn page(text: &str) -> Value {
    let mut dig = shop::deployment("edge");
    dig["spec"]["overrideValues"] = json!([{"app": "web", "values": {"page": text}}]);
    dig["spec"]["revisionHistoryLimit"] = json!(2);
    dig
}

async fn at_rest() -> Life {
    let mut life = Life::with(&shop::objects());
    for text in ["one", "two"] {
        life.put(&page(text));
        life.settle().await;
    }
    life
}

/// Writes to the hub: verb and kind, with the subresource.
fn kinds(life: &Life) -> Vec<String> {
    let kind = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        let status = if parts.last() == Some(&"status") { "/status" } else { "" };
        let known =
            ["appcontexts", "syncshards", "configmaps", "secrets", "events", "deploymentintentgroups"];
        let found = known.into_iter().find(|kind| parts.contains(kind)).unwrap_or("other");
        format!("{found}{status}")
    };
    let mut all: Vec<String> =
        life.rig.writes().iter().map(|seen| format!("{:?} {}", seen.method, kind(&seen.path))).collect();
    all.sort();
    all
}

fn contexts(life: &Life) -> BTreeMap<i64, Value> {
    let all = life.rig.hub.objects().into_values().filter(|object| {
        object["kind"] == "AppContext" && object["metadata"]["name"].as_str().unwrap().starts_with("dig-shop")
    });
    all.map(|context| (context["spec"]["revision"].as_i64().unwrap(), context["status"].clone())).collect()
}

/// What Events of a reason say.
fn told(life: &Life, reason: &str) -> Vec<String> {
    let events = life.rig.hub.objects().into_values().filter(|object| object["kind"] == "Event");
    let of = events.filter(|event| event["reason"] == reason);
    of.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

fn explanations(life: &Life) -> Vec<String> {
    let objects = life.rig.hub.objects().into_keys().filter(|key| key.contains("-explain"));
    objects.map(|key| key.rsplit('/').next().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_change_is_stored_and_targeted_before_anything_else_is_written() {
    let mut life = at_rest().await;
    life.put(&page("three"));
    life.rig.hub.take_seen();
    assert!(life.rig.round().await.is_empty());
    assert_eq!(
        kinds(&life),
        ["Post appcontexts", "Post configmaps", "Post configmaps", "Post secrets", "Put syncshards",]
    );
    // Woken by what it wrote itself, the deployment is left alone; no second look costs anything.
    life.rig.hub.take_seen();
    assert!(life.rig.round().await.is_empty());
    assert_eq!(kinds(&life), Vec::<String>::new());
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 3);
    assert_eq!(contexts(&life)[&3]["outcome"], "Updated");
    assert_eq!(explanations(&life), ["dig-shop-2-explain", "dig-shop-3-explain"]);
    let told = told(&life, "Revision");
    assert!(told.iter().any(|note| note.starts_with("revision 3: web on 2 clusters")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_everywhere_is_written_about_once() {
    let mut life = at_rest().await;
    life.put(&page("three"));
    life.rig.hub.take_seen();
    let mut all = Vec::new();
    for _ in 0..4 {
        life.next().await;
        all.extend(kinds(&life));
    }
    let of = |what: &str| all.iter().filter(|write| write.as_str() == what).count();
    assert_eq!(of("Patch deploymentintentgroups/status"), 1, "{all:?}");
    assert_eq!(of("Patch appcontexts/status"), 1, "{all:?}");
    assert_eq!(of("Post events"), 1, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_to_look_now_is_echoed_and_changes_nothing_else() {
    let mut life = at_rest().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let mut dig = page("two");
    dig["metadata"]["annotations"] = json!({"emco.io/requestedAt": "now"});
    life.put(&dig);
    let mut all = Vec::new();
    for _ in 0..3 {
        life.next().await;
        all.extend(kinds(&life));
    }
    assert_eq!(all, ["Patch deploymentintentgroups/status"]);
    assert_eq!(life.dig()["status"]["lastHandledRequest"], "now");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_left_alone_for_a_moment_only() {
    let mut life = at_rest().await;
    life.put(&page("three"));
    life.rig.see();
    let first = deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    let Outcome::After(left) = first else { panic!("{first:?}") };
    assert!(left <= Duration::from_millis(250), "{left:?}");
    life.rig.see();
    tokio::time::sleep(left / 2).await;
    let again = deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(matches!(again, Outcome::After(less) if less <= left / 2), "{again:?}");
    // Nobody works, and it is told how far it is all the same.
    tokio::time::sleep(left / 2).await;
    deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!(life.dig()["status"]["revision"], 3);
    assert_eq!(life.dig()["status"]["state"], "Updating");
}

#[tokio::test(start_paused = true)]
async fn revisions_that_follow_each_other_at_once_are_all_noted() {
    let mut life = at_rest().await;
    for text in ["three", "four"] {
        life.put(&page(text));
        assert!(life.rig.round().await.is_empty());
    }
    let before = contexts(&life);
    assert_eq!(before.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(before[&3].is_null() && before[&4].is_null(), "nobody was told yet: {before:#?}");
    life.settle().await;
    let after = contexts(&life);
    assert_eq!(after[&3]["outcome"], "Updating", "the next one came while clusters were at work on it");
    assert_eq!(after[&4]["outcome"], "Updated");
    assert!(after.values().all(|status| status["stored"] == true));
    let told = told(&life, "Revision");
    for number in [3, 4] {
        let of = told.iter().filter(|note| note.starts_with(&format!("revision {number}: ")));
        assert_eq!(of.count(), 1, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_put_off_is_done_after_a_death_at_any_write() {
    let mut wanted = None;
    let the_same = async |life: &mut Life, how: &str| {
        // What a process that died left behind of old revisions goes with the next one.
        let (contexts, mut explained) = (contexts(life), explanations(life));
        explained.retain(|name| name != "dig-shop-1-explain");
        let found = (contexts, explained);
        assert_eq!(*wanted.get_or_insert_with(|| found.clone()), found, "{how}");
    };
    Box::pin(deaths::at_each_write(at_rest, |life| life.put(&page("three")), the_same, 12)).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_once_within_a_second() {
    let mut life = at_rest().await;
    life.rig.see();
    let dig = life.rig.ctx.stores.digs.state().pop().unwrap();
    life.rig.hub.take_seen();
    for note in ["a", "b", "a"] {
        events::emit(&life.rig.ctx, dig.as_ref(), false, "Ready", note).await;
    }
    let posts = |life: &Life| life.rig.writes().iter().filter(|seen| seen.method == Method::Post).count();
    assert_eq!(posts(&life), 2);
    life.rig.clock.forward(Duration::from_secs(1));
    events::emit(&life.rig.ctx, dig.as_ref(), false, "Ready", "a").await;
    assert_eq!(posts(&life), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_has_25_events_in_an_hour_and_the_last_says_so() {
    let mut life = at_rest().await;
    life.rig.see();
    let dig = life.rig.ctx.stores.digs.state().pop().unwrap();
    let project = life.rig.ctx.stores.projects.state().pop().unwrap();
    let told = |life: &Life, kind: &str| {
        let all = life.rig.hub.of_kind("Event").into_iter();
        let notes = all.filter(|event| event["involvedObject"]["kind"] == kind);
        notes.map(|event| event["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Of the hour in which it was deployed nothing is left.
    tokio::time::advance(Duration::from_hours(1)).await;
    let before = told(&life, "DeploymentIntentGroup").len();
    for number in 0..40 {
        let note = format!("note {number:02}");
        events::emit(&life.rig.ctx, dig.as_ref(), true, "Ready", &note).await;
        events::emit(&life.rig.ctx, project.as_ref(), true, "Ready", &note).await;
    }
    let notes = told(&life, "DeploymentIntentGroup");
    assert_eq!(notes.len() - before, 20, "{notes:?}");
    let end = "no more Events of it within the hour";
    let last = format!("note 19; {end}, unless with other reasons: its status and the log go on");
    assert!(notes.contains(&last), "{notes:?}");
    for reason in ["NotReady", "A", "B", "C", "D", "E"] {
        events::emit(&life.rig.ctx, dig.as_ref(), true, reason, &format!("of {reason}")).await;
    }
    let notes = told(&life, "DeploymentIntentGroup");
    assert_eq!(notes.len() - before, 25, "{notes:?}");
    assert!(notes.contains(&format!("of D; {end}: its status and the log go on")), "{notes:?}");
    assert!(told(&life, "Project").len() >= 40, "others are not bounded");
    tokio::time::advance(Duration::from_hours(1)).await;
    events::emit(&life.rig.ctx, dig.as_ref(), true, "Ready", "again").await;
    assert!(told(&life, "DeploymentIntentGroup").iter().any(|note| note == "again"));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_at_rest_waits_while_a_process_begins_and_one_that_changed_does_not() {
    let mut life = at_rest().await;
    life.begin().await;
    let rests = deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(matches!(rests, Outcome::After(left) if left <= Duration::from_secs(1)), "{rests:?}");
    assert!(life.rig.hub.take_seen().is_empty(), "nothing is asked about it");
    life.put(&page("three"));
    life.begin().await;
    deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(kinds(&life).contains(&"Put syncshards".to_owned()));
    assert_eq!(contexts(&life).into_keys().max(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_a_moment_for_clusters_that_are_about_to_answer() {
    let mut life = at_rest().await;
    let seen = life.rig.forgotten("b");
    life.put(&page("three"));
    life.begin().await;
    let waits = deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    let Outcome::After(left) = waits else { panic!("{waits:?}") };
    assert_eq!(kinds(&life), Vec::<String>::new(), "each that answers would be another revision");
    life.rig.remembered("b", seen);
    deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(kinds(&life).contains(&"Put syncshards".to_owned()));

    life.rig.forgotten("b");
    life.put(&page("four"));
    life.begin().await;
    // A busy machine takes longer than what is at rest waits.
    tokio::time::sleep(left * 3).await;
    deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!(contexts(&life).into_keys().max(), Some(3), "it is still about to answer");
    tokio::time::sleep(Duration::from_secs(15)).await;
    deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!(contexts(&life).into_keys().max(), Some(4), "one that does not answer holds nobody up");
}
