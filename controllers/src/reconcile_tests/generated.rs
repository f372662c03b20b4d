//! What an intent adds to no chart, from the list of a deployment to its clusters: an app of its own, through every change of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::actions::listing;
use super::approvals::{approval, manual};
use super::deaths;
use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, composite_app, deployment, objects, values};

const CLOSED: &str = "networkpolicies.networking.k8s.io/team-a/closed";
const CLOSED_PATH: &str = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/closed";
const APP: &str = "gai.closed";

/// When an object on a cluster was written last.
fn version(life: &Life, edge: &str, path: &str) -> u64 {
    let object = life.edges[edge].object(path).unwrap();
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// An intent that adds a policy for Pods with this label to no chart, on all clusters or on those that it does not deny.
fn intent(label: &str, denied: &[&str]) -> Value {
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
        "spec": {"podSelector": {"matchLabels": {"app": label}}, "policyTypes": ["Ingress", "Egress"]}});
    let mut action = json!({"name": "closed", "type": "Add", "add": {"inline": policy}});
    if !denied.is_empty() {
        let term = |cluster: &&str| json!({"provider": "acme", "cluster": cluster});
        action["deny"] = denied.iter().map(term).collect();
    }
    emco("GenericActionIntent", Some("team-a"), "closed", &json!({"actions": [action]}))
}

async fn closed() -> Life {
    let mut life = Life::with(&objects());
    life.put(&intent("web", &[]));
    life.put(&listing(&["closed"]));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life
}

async fn open() -> Life {
    let mut life = Life::with(&objects());
    life.put(&intent("web", &[]));
    life.settle().await;
    life
}

fn label(life: &Life, edge: &str) -> Value {
    life.on(edge)
        .get(CLOSED)
        .map(|policy| policy["spec"]["podSelector"]["matchLabels"]["app"].clone())
        .unwrap_or_default()
}

/// The sets of each app of a revision.
fn variants(life: &Life, revision: i64) -> BTreeMap<String, Value> {
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-{revision}")).unwrap();
    let apps = context["spec"]["apps"].as_array().unwrap().iter();
    apps.map(|app| (app["name"].as_str().unwrap().to_owned(), app["variants"].clone())).collect()
}

fn status_of(life: &Life, app: &str) -> Option<Value> {
    let status = life.dig()["status"].clone();
    status["apps"].as_array().and_then(|apps| apps.iter().find(|one| one["name"] == app).cloned())
}

fn changes(life: &Life) {
    life.put(&intent("other", &[]));
}

fn comes(life: &Life) {
    life.put(&listing(&["closed"]));
}

fn leaves(life: &Life) {
    life.put(&deployment("edge"));
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_comes_changes_and_leaves_is_an_app_and_touches_no_chart() {
    let mut life = open().await;
    let charts = variants(&life, 1);
    comes(&life);
    life.settle().await;
    assert_eq!([label(&life, "a"), label(&life, "b")], ["web", "web"]);
    let said = status_of(&life, APP).unwrap();
    assert_eq!(
        (&said["clusters"], &said["ready"], &said["state"]),
        (&json!(2), &json!(2), &json!("Instantiated"))
    );
    let mut stored = variants(&life, 2);
    let sets = stored.remove(APP).unwrap();
    assert_eq!(
        (sets.as_array().unwrap().len(), &sets[0]["clusters"]),
        (1, &json!(2)),
        "one set for all clusters"
    );
    assert_eq!(stored, charts);
    let before: BTreeMap<&str, _> = EDGES.map(|edge| (edge, versions(&life.edges[edge]))).into();
    changes(&life);
    life.settle().await;
    assert_eq!([label(&life, "a"), label(&life, "b")], ["other", "other"]);
    for edge in EDGES {
        let now = versions(&life.edges[edge]);
        let moved: Vec<&String> =
            now.iter().filter(|(key, at)| before[edge].get(*key) != Some(*at)).map(|(key, _)| key).collect();
        assert!(moved.iter().all(|key| key.contains("closed")), "{moved:?}");
    }
    leaves(&life);
    life.settle().await;
    let revision = life.dig()["status"]["revision"].clone();
    assert_eq!((revision, label(&life, "a"), status_of(&life, APP)), (json!(4), Value::Null, None));
    assert_eq!(variants(&life, 4), charts);
    assert_eq!(life.says("Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_the_intent_denies_loses_it_alone() {
    let mut life = closed().await;
    life.put(&intent("web", &["b"]));
    life.settle().await;
    assert_eq!([label(&life, "a"), label(&life, "b")], [json!("web"), Value::Null]);
    let said = status_of(&life, APP).unwrap();
    assert_eq!(
        (&said["clusters"], &said["rejected"][0]["reason"]),
        (&json!(1), &json!("NotSelected")),
        "{said:#}"
    );
    life.put(&intent("web", &["a", "b"]));
    life.settle().await;
    assert_eq!((label(&life, "a"), &status_of(&life, APP).unwrap()["clusters"]), (Value::Null, &json!(0)));
    assert_eq!(life.says("Ready").0, "True");
    assert!(life.on("a").contains_key("deployments.apps/team-a/web"));
}

#[tokio::test(start_paused = true)]
async fn several_intents_come_in_the_order_of_the_list() {
    let mut life = Life::with(&objects());
    for name in ["z", "a"] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let actions = json!([{"name": "one", "type": "Add", "add": {"inline": object}}]);
        life.put(&emco("GenericActionIntent", Some("team-a"), name, &json!({"actions": actions})));
    }
    life.put(&listing(&["z", "a"]));
    life.settle().await;
    let made = |path: &str| version(&life, "a", path);
    let (z, a) =
        (made("/api/v1/namespaces/team-a/configmaps/z"), made("/api/v1/namespaces/team-a/configmaps/a"));
    assert!(z < a && a < made("/api/v1/namespaces/team-a/configmaps/page"), "{z} {a}");
    let shard = life
        .rig
        .hub
        .objects()
        .into_values()
        .find(|object| object["kind"] == "SyncShard" && object["spec"]["owner"]["name"] == "shop");
    assert_eq!(shard.unwrap()["spec"]["order"]["generated"], json!(["gai.z", "gai.a"]));
}

#[tokio::test(start_paused = true)]
async fn a_death_while_an_intent_comes_makes_no_difference() {
    deaths::at_every_write(async || open().await, comes, async |_: &mut Life| {}, 6).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_while_an_intent_changes_makes_no_difference() {
    deaths::at_every_write(async || closed().await, changes, async |_: &mut Life| {}, 6).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_while_an_intent_leaves_makes_no_difference() {
    let nothing = async |life: &mut Life| {
        for edge in EDGES {
            assert!(!life.on(edge).contains_key(CLOSED), "{edge}");
        }
    };
    deaths::at_every_write(async || closed().await, leaves, nothing, 6).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_away_while_the_intent_changes_gets_it_later() {
    let mut life = closed().await;
    life.edges["b"].set_down(true);
    changes(&life);
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!((label(&life, "a"), label(&life, "b")), (json!("other"), json!("web")));
    life.edges["b"].take_seen();
    life.edges["b"].set_down(false);
    for _ in 0..3 {
        life.next().await;
    }
    life.settle().await;
    assert_eq!(label(&life, "b"), "other");
    let page = "/api/v1/namespaces/team-a/configmaps/page";
    assert!(version(&life, "b", CLOSED_PATH) < version(&life, "b", page));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_deployment_takes_no_changed_intent_until_it_goes_on() {
    let mut life = closed().await;
    let mut dig = listing(&["closed"]);
    dig["spec"]["suspend"] = json!(true);
    life.put(&dig);
    life.settle().await;
    changes(&life);
    life.settle().await;
    assert_eq!(label(&life, "a"), "web");
    comes(&life);
    life.settle().await;
    assert_eq!(label(&life, "a"), "other");
}

#[tokio::test(start_paused = true)]
async fn a_pin_brings_back_and_takes_away_what_the_revision_had_of_an_intent() {
    let mut life = open().await;
    comes(&life);
    life.settle().await;
    changes(&life);
    life.settle().await;
    for (pin, wanted) in [
        (json!(2), json!("web")),
        (json!(1), Value::Null),
        (json!(3), json!("other")),
        (Value::Null, json!("other")),
    ] {
        let mut dig = listing(&["closed"]);
        dig["spec"]["revision"] = pin.clone();
        life.put(&dig);
        life.settle().await;
        assert_eq!([label(&life, "a"), label(&life, "b")], [wanted.clone(), wanted], "{pin}");
    }
    assert_eq!((life.says("Ready").0, &life.dig()["status"]["revision"]), ("True".into(), &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn another_composite_app_keeps_the_objects_of_the_intent() {
    let mut life = closed().await;
    let path = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/closed";
    let uid = |life: &Life| life.edges["a"].object(path).map(|object| object["metadata"]["uid"].clone());
    let before = uid(&life);
    let mut app = composite_app("1.1.0");
    app["metadata"]["name"] = json!("next");
    life.put(&app);
    let mut dig = listing(&["closed"]);
    dig["spec"]["compositeAppRef"]["name"] = json!("next");
    life.put(&dig);
    life.settle().await;
    assert_eq!(
        (life.says("Ready").0, &life.dig()["status"]["revision"]),
        ("True".into(), &json!(2)),
        "{:#}",
        life.dig()
    );
    assert!(before.is_some() && uid(&life) == before);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_names_the_app_of_the_intent() {
    let mut life = open().await;
    life.put(&manual("Plan"));
    comes(&life);
    life.settle().await;
    assert_eq!(label(&life, "a"), Value::Null);
    let pending = life.dig()["status"]["pending"].clone();
    let apps: Vec<&Value> = pending["apps"].as_array().unwrap().iter().map(|app| &app["name"]).collect();
    assert_eq!(apps, [APP], "{pending:#}");
    assert_eq!(pending["apps"][0]["clusters"]["added"], 2);
    let digest = pending["digest"].as_str().unwrap();
    life.put(&approval("yes", "shop", digest, "Approved"));
    life.settle().await;
    assert_eq!(label(&life, "a"), "web");
    // An intent that leaves many clusters is no removal that has to be confirmed: its plan was approved.
    leaves(&life);
    life.settle().await;
    assert_eq!(life.dig()["status"]["pending"]["requires"], "Approval");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_ends_leaves_nothing_of_its_intents() {
    let mut life = closed().await;
    let mut dig = listing(&["closed"]);
    dig["spec"]["desiredState"] = json!("Terminated");
    life.put(&dig);
    life.settle().await;
    for edge in EDGES {
        let left: Vec<String> =
            life.names_on(edge).into_iter().filter(|key| !key.starts_with("namespaces.")).collect();
        assert!(left.is_empty(), "{edge}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_names_of_all_intents_fit_into_every_object_of_the_hub() {
    let mut life = Life::with(&objects());
    let names: Vec<String> = (0..64).map(|n| format!("{n:0>53}")).collect();
    for name in &names {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let actions = json!([{"name": "one", "type": "Add", "add": {"inline": object}}]);
        life.put(&emco("GenericActionIntent", Some("team-a"), name, &json!({"actions": actions})));
    }
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    life.put(&listing(&listed));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig()["status"]["conditions"]);
    let status = life.dig()["status"].clone();
    assert_eq!(status["apps"].as_array().unwrap().len(), 66);
    let bytes = status.to_string().len();
    assert!(bytes <= 54 * 1024, "{bytes} bytes");
}
