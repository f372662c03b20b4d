//! Clusters that do not come back in time: what is left on them is given up, written down before it is forgotten, and removed
//! when they do come back.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::rig::{cluster_object, emco};
use super::shop::{TENANT, composite_app, deployment, objects};
use crate::api::ApiServerExt;

const HOUR: Duration = Duration::from_hours(1);
pub(super) const CLUSTER: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/b";

fn dig() -> String {
    format!("{TENANT}/deploymentintentgroups/shop")
}

/// The shop that gives up after a day.
fn patient() -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["unreachable"] = json!({"action": "Abandon", "after": "24h"});
    dig
}

/// Installed; then cluster b is away.
async fn with_one_away(dig: &Value) -> Life {
    let mut all = objects();
    all.pop();
    all.push(dig.clone());
    let mut life = Life::with(&all);
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life
}

/// The same, and the deployment was deleted and has left cluster a.
async fn ending(dig_: &Value) -> Life {
    let mut life = with_one_away(dig_).await;
    life.delete(&dig()).await;
    life.settle().await;
    assert!(of_shop_on(&life, "a").is_empty());
    life
}

pub(super) async fn given_up() -> Life {
    let mut life = ending(&patient()).await;
    life.rig.clock.forward(25 * HOUR);
    life.settle().await;
    assert_eq!(life.dig(), Value::Null, "{:#}", life.dig());
    life
}

/// What the shop has on an edge: the namespace is the logical cloud's.
fn of_shop_on(life: &Life, edge: &str) -> Vec<String> {
    life.names_on(edge).into_iter().filter(|name| !name.starts_with("namespaces.")).collect()
}

pub(super) fn ledgers(life: &Life) -> Vec<Value> {
    let is = |o: &Value| o["kind"] == "SyncShard" && o["metadata"]["namespace"] == "acme";
    life.rig.hub.objects().into_values().filter(is).collect()
}

fn events(life: &Life, reason: &str) -> Vec<String> {
    let is = |o: &Value| o["kind"] == "Event" && o["reason"] == reason;
    let text = |o: Value| o["message"].as_str().unwrap_or_default().to_owned();
    life.rig.hub.objects().into_values().filter(is).map(text).collect()
}

fn cluster(life: &Life) -> Value {
    life.rig.hub.object(CLUSTER).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_dead_cluster_is_given_up_after_its_time_and_cleaned_when_it_returns() {
    let mut life = ending(&patient()).await;
    let before = of_shop_on(&life, "b");
    assert!(before.len() > 3, "{before:?}");
    life.rig.clock.forward(23 * HOUR);
    life.settle().await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!(reason, "Terminating");
    assert!(message.contains("acme/b") && message.contains("24h is given up"), "{message}");
    assert!(ledgers(&life).is_empty());
    assert_eq!(life.waiting(), 1, "somebody waits for the removal");
    life.rig.clock.forward(2 * HOUR);
    life.settle().await;
    assert_eq!(life.dig(), Value::Null, "it waits no longer");
    assert_eq!(of_shop_on(&life, "b"), before, "nothing can have been removed there");
    let ledger = ledgers(&life);
    assert_eq!(ledger.len(), 1, "{ledger:#?}");
    assert_eq!(ledger[0]["spec"]["abandoned"]["namespace"], "team-a");
    assert_eq!(ledger[0]["spec"]["clusters"][0]["uid"], "uid-b");
    let said = events(&life, "Abandoned");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("acme/b (kube-system has uid uid-b): 6 objects"), "{said:?}");
    assert_eq!(
        cluster(&life)["status"]["abandoned"],
        json!({"owners": 1, "example": "DeploymentIntentGroup/team-a/shop"})
    );
    assert_eq!(life.waiting(), 0, "nobody waits for what was given up");
    life.collect().await;
    life.restart().await;
    life.settle().await;
    assert_eq!(life.waiting(), 0, "not after a restart either");
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert!(of_shop_on(&life, "b").is_empty(), "{:?}", of_shop_on(&life, "b"));
    assert!(ledgers(&life).is_empty());
    assert_eq!(cluster(&life)["status"]["abandoned"], Value::Null);
    assert_eq!(events(&life, "AbandonedRemoved").len(), 1);
    life.collect().await;
    let packs = names(&life.rig.hub, "/api/v1/namespaces/emco-system/configmaps").await;
    let owners: BTreeSet<&str> = packs.iter().filter_map(|name| name.get(..26)).collect();
    assert_eq!(owners.len(), 1, "only the logical cloud has something stored: {packs:?}");
}

#[tokio::test(start_paused = true)]
async fn another_cluster_under_the_same_name_is_not_cleaned() {
    let mut life = given_up().await;
    let before = versions(&life.edges["b"]);
    life.rig.returns("b", "uid-other");
    life.settle().await;
    assert_eq!(versions(&life.edges["b"]), before);
    assert_eq!(ledgers(&life).len(), 1);
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert!(of_shop_on(&life, "b").is_empty());
    assert!(ledgers(&life).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_away_for_a_while_and_is_back_is_not_given_up() {
    let mut life = with_one_away(&patient()).await;
    life.rig.clock.forward(20 * HOUR);
    life.rig.returns("b", "uid-b");
    life.settle().await;
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life.rig.clock.forward(20 * HOUR);
    life.delete(&dig()).await;
    life.settle().await;
    assert!(ledgers(&life).is_empty(), "it is away for twenty hours, not for forty");
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
    assert!(of_shop_on(&life, "b").is_empty() && ledgers(&life).is_empty());
}

/// What the message of Ready says to type.
fn asked_for(life: &Life) -> String {
    let (_, _, message) = life.says("Ready");
    let text = message.split("emco.io/abandon=").nth(1).unwrap_or_else(|| panic!("{message}"));
    text.split_whitespace().next().unwrap().to_owned()
}

async fn type_(life: &Life, text: &str) {
    let typed = json!({"metadata": {"annotations": {"emco.io/abandon": text}}});
    life.rig.hub.merge(&dig(), &typed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_person_gives_up_by_typing_the_text_of_the_removal_and_nothing_else() {
    let mut life = ending(&deployment("edge")).await;
    life.rig.clock.forward(1000 * HOUR);
    life.settle().await;
    let uid = life.dig()["metadata"]["uid"].as_str().unwrap().to_owned();
    let text = asked_for(&life);
    for other in ["yes", &uid] {
        type_(&life, other).await;
        life.settle().await;
        let (_, _, message) = life.says("Ready");
        assert!(
            message.contains(&format!("emco.io/abandon is {other}")) && message.contains(&text),
            "{message}"
        );
        assert!(ledgers(&life).is_empty());
    }
    type_(&life, &text).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
    assert_eq!(ledgers(&life).len(), 1);
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert!(of_shop_on(&life, "b").is_empty() && ledgers(&life).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_typed_for_one_removal_gives_up_nothing_in_the_next() {
    let mut life = with_one_away(&deployment("edge")).await;
    let desired = async |life: &mut Life, state: &str| {
        life.rig.hub.merge(&dig(), &json!({"spec": {"desiredState": state}})).await.unwrap();
        life.settle().await;
    };
    desired(&mut life, "Terminated").await;
    let first = asked_for(&life);
    type_(&life, &first).await;
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Abandoned");
    life.rig.returns("b", "uid-b");
    desired(&mut life, "Instantiated").await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life.rig.fails("b", "Timeout");
    life.settle().await;
    desired(&mut life, "Terminated").await;
    let (_, reason, message) = life.says("Ready");
    assert_eq!(reason, "Terminating", "{message}");
    assert!(ledgers(&life).is_empty());
    let second = message.split("the text for this removal is ").nth(1).unwrap();
    assert!(message.contains(&first) && second != first, "{message}");
    type_(&life, second).await;
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Abandoned");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_made_again_takes_back_what_was_given_up() {
    let mut life = given_up().await;
    life.put(&composite_app("1.1.0"));
    life.put(&patient());
    life.settle().await;
    assert!(ledgers(&life).is_empty(), "its row knows now");
    let old = |life: &Life| of_shop_on(life, "b").iter().any(|name| name.ends_with("/old"));
    assert!(old(&life));
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert!(!old(&life), "not of the new version: {:?}", of_shop_on(&life, "b"));
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(of_shop_on(&life, "b").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_terminated_deployment_says_what_was_given_up_until_it_is_removed() {
    let mut life = with_one_away(&patient()).await;
    let mut ended = patient();
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    life.rig.clock.forward(25 * HOUR);
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Abandoned"), "{message}");
    assert!(message.contains("acme/b"), "{message}");
    assert_eq!(life.dig()["status"]["clusters"]["abandoned"], 1);
    assert_eq!(life.dig()["status"]["state"], "Terminated");
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminated");
    assert_eq!(life.dig()["status"]["clusters"]["abandoned"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_left_the_placement_is_given_up_while_the_rest_runs() {
    let mut life = with_one_away(&patient()).await;
    let mut moved = patient();
    moved["spec"]["placement"] = json!({"allOf": [{"cluster": "a"}]});
    life.put(&moved);
    life.settle().await;
    assert_eq!(life.says("Deployed").0, "False", "{:#}", life.dig());
    life.rig.clock.forward(25 * HOUR);
    life.settle().await;
    let (status, _, message) = life.says("Deployed");
    assert_eq!(status, "True", "{message}");
    assert!(message.contains("given up on 1 cluster"), "{message}");
    assert_eq!(life.says("Ready").0, "True");
    assert_eq!(life.dig()["status"]["clusters"]["abandoned"], 1);
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert!(of_shop_on(&life, "b").is_empty());
    assert!(!life.says("Deployed").2.contains("given up"));
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_namespace_ends_waits_for_nothing_that_was_given_up() {
    let mut life = given_up().await;
    let before = of_shop_on(&life, "b");
    life.delete("/api/v1/namespaces/acme").await;
    life.settle().await;
    assert!(ledgers(&life).is_empty());
    assert_eq!(of_shop_on(&life, "b"), before);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_deleted_by_hand_waits_for_its_cluster_unless_that_is_not_registered_any_more() {
    let mut life = given_up().await;
    let ledger = ledgers(&life).remove(0)["metadata"]["name"].as_str().unwrap().to_owned();
    life.delete(&format!("/apis/emco.io/v1alpha1/namespaces/acme/syncshards/{ledger}")).await;
    life.settle().await;
    assert_eq!(ledgers(&life).len(), 1, "the cluster may come back");
    life.delete(CLUSTER).await;
    life.settle().await;
    assert!(life.rig.hub.object(CLUSTER).is_none(), "what was given up holds nothing");
    let left = ledgers(&life);
    assert_eq!(left.len(), 1, "{left:#?}");
    assert_eq!(
        left[0]["spec"]["owner"]["kind"], "LogicalCloud",
        "which gave up the cluster when that was deleted"
    );
    assert_eq!(events(&life, "AbandonedForgotten").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn owners_of_one_name_in_two_projects_have_two_ledgers() {
    let mut life = given_up().await;
    life.put(&super::rig::namespace("team-b", &json!({"emco.io/project": "team-b"})));
    for object in objects() {
        if object["metadata"]["namespace"] == "team-a" {
            let mut other = object.clone();
            other["metadata"]["namespace"] = json!("team-b");
            life.put(&other);
        }
    }
    let grants = json!({"grants": [{"name": "all", "projects": ["team-a", "team-b"], "maxLevel": "Admin"}]});
    life.put(&emco("ClusterProvider", None, "acme", &grants));
    life.put(&emco("Project", None, "team-b", &json!({"logicalCloud": {"level": "Admin"}})));
    let mut dig = patient();
    dig["metadata"]["namespace"] = json!("team-b");
    life.put(&dig);
    life.rig.returns("b", "uid-b");
    life.rig.fails("b", "Timeout");
    life.settle().await;
    let path = "/apis/emco.io/v1alpha1/namespaces/team-b/deploymentintentgroups/shop";
    let there = life.rig.hub.object(path).unwrap();
    assert_eq!(there["status"]["clusters"]["abandoned"], 0, "the other one's is not its: {there:#}");
    assert_eq!(ledgers(&life).len(), 1);
}

/// The cloud has clusters a and b, no deployment is there, and b is away.
pub(super) async fn with_cloud_alone() -> Life {
    let mut all = objects();
    all.pop();
    let mut life = Life::with(&all);
    life.settle().await;
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life
}

/// The same, and the Cluster b was deleted.
async fn let_go_of() -> Life {
    let mut life = with_cloud_alone().await;
    life.rig.hub.remove(CLUSTER);
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_never_answered_leaves_no_ledger() {
    let mut life = Life::with(&objects());
    life.rig.never_answers("b");
    life.settle().await;
    let waits = |life: &Life| {
        let shards = life.rig.hub.objects().into_values().filter(|o| o["kind"] == "SyncShard");
        let rows: Vec<Value> =
            shards.flat_map(|o| o["spec"]["clusters"].as_array().cloned().unwrap_or_default()).collect();
        rows.into_iter().filter(|row| row["cluster"] == "acme/b").count()
    };
    assert!(waits(&life) > 0, "the default logical cloud wants it");
    life.delete(CLUSTER).await;
    life.settle().await;
    assert!(life.rig.hub.object(CLUSTER).is_none(), "{:#}", cluster(&life));
    assert_eq!((ledgers(&life).len(), waits(&life)), (0, 0), "{:#?}", ledgers(&life));
    assert!(events(&life, "Abandoned").is_empty());
    life.rig.answers("b", "uid-b");
    register_again(&life);
    life.settle().await;
    assert!(!life.names_on("b").is_empty(), "it is worked on once it answers");
}

fn register_again(life: &Life) {
    life.put(&super::rig::secret("b"));
    life.put(&cluster_object("b"));
    life.rig.returns("b", "uid-b");
}

fn cloud(life: &Life) -> Value {
    life.rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_let_go_of_while_it_is_away_is_given_up_by_its_logical_cloud() {
    let mut life = let_go_of().await;
    assert!(life.rig.hub.object(CLUSTER).is_none());
    let there = life.names_on("b");
    assert!(!there.is_empty());
    assert_eq!(cloud(&life)["status"]["summary"]["clusters"], "1/1", "{:#}", cloud(&life));
    let ledger = ledgers(&life);
    assert_eq!(ledger.len(), 1, "{ledger:#?}");
    assert_eq!(ledger[0]["spec"]["owner"]["kind"], "LogicalCloud");
    assert_eq!(ledger[0]["spec"]["clusters"][0]["uid"], "uid-b");
    assert_eq!(events(&life, "Abandoned").len(), 1);
    register_again(&life);
    life.settle().await;
    assert_eq!(life.names_on("b"), there, "the cloud wants it again");
    assert_eq!(cloud(&life)["status"]["summary"]["clusters"], "2/2");
    assert!(ledgers(&life).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_project_ends_although_a_cluster_was_let_go_of_while_it_was_away() {
    let mut life = let_go_of().await;
    life.delete("/apis/emco.io/v1alpha1/projects/team-a").await;
    life.settle().await;
    assert!(life.rig.hub.object("/apis/emco.io/v1alpha1/projects/team-a").is_none());
    assert_eq!(ledgers(&life).len(), 1);
    register_again(&life);
    life.settle().await;
    assert_eq!(life.names_on("b"), Vec::<String>::new());
    assert!(ledgers(&life).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_namespace_says_no_provider_is_not_taken_for_gone() {
    let mut life = with_cloud_alone().await;
    let label = |provider: Value| json!({"metadata": {"labels": {"emco.io/provider": provider}}});
    life.rig.hub.merge("/api/v1/namespaces/acme", &label(Value::Null)).await.unwrap();
    life.delete("/apis/emco.io/v1alpha1/projects/team-a").await;
    life.settle().await;
    assert!(events(&life, "Abandoned").is_empty());
    assert!(cloud(&life)["status"].to_string().contains("1 cluster still to be left: acme/b"));
    life.rig.hub.merge("/api/v1/namespaces/acme", &label(json!("acme"))).await.unwrap();
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(life.names_on("b"), Vec::<String>::new());
    assert!(life.rig.hub.object("/apis/emco.io/v1alpha1/projects/team-a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_letting_go_of_a_cluster_forgets_nothing() {
    Box::pin(at_every_write(with_cloud_alone, |life| life.rig.hub.remove(CLUSTER), 5)).await;
}

/// Deaths at every write; then another process begins, and what nobody names is collected.
async fn at_every_write(begin: impl AsyncFn() -> Life, change: impl Fn(&Life), least: u64) {
    let rest = async |life: &mut Life| {
        life.restart().await;
        life.settle().await;
        // Nothing is left to do for its workers while the time of the collector passes.
        life.end().await;
        life.collect().await;
    };
    deaths::at_every_write(begin, change, rest, least).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_giving_up_forgets_nothing() {
    Box::pin(at_every_write(async || ending(&patient()).await, |life| life.rig.clock.forward(25 * HOUR), 5))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_cleaning_up_after_a_return_leaves_nothing() {
    Box::pin(at_every_write(given_up, |life| life.rig.returns("b", "uid-b"), 8)).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_taking_back_forgets_nothing() {
    let change = |life: &Life| {
        life.put(&composite_app("1.1.0"));
        life.put(&patient());
        life.rig.returns("b", "uid-b");
    };
    Box::pin(at_every_write(given_up, change, 12)).await;
}
