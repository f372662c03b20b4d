//! Passwords that a chart draws and looks up: they stay through changes, absences and losses.

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, composite_app, deployment, objects, packed};
use crate::api::ApiServerExt as _;

/// A password that is kept where it is there, drawn by an installation, and demanded by an upgrade.
const SECRET: &str = include_str!("password.yaml");

fn db(size: i64, length: i64, tier: &str) -> Value {
    let mut dig = deployment(tier);
    dig["spec"]["placement"].as_object_mut().unwrap().remove("apps");
    dig["spec"].as_object_mut().unwrap().remove("compositeProfileRef");
    dig["spec"]["overrideValues"] = json!([{"app": "db", "values": {"size": size, "length": length}}]);
    dig
}

async fn installed() -> Life {
    let chart = json!({"configMapRef": {"name": "charts", "key": "db-1.0.0.tgz"}});
    let mut all = objects();
    for object in &mut all {
        match object["kind"].as_str() {
            Some("ConfigMap") if object["metadata"]["name"] == "charts" => {
                object["binaryData"]["db-1.0.0.tgz"] =
                    json!(packed("db", "1.0.0", &[("templates/secret.yaml", SECRET)]));
            }
            Some("CompositeApp") => {
                *object = emco(
                    "CompositeApp",
                    Some("team-a"),
                    "shop",
                    &json!({"apps": [{"name": "db", "chart": chart}]}),
                );
            }
            Some("DeploymentIntentGroup") => *object = db(1, 16, "edge"),
            _ => {}
        }
    }
    let mut life = Life::with(&all);
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    life
}

fn password(life: &Life, edge: &str) -> String {
    life.on(edge)["secrets./team-a/db"]["data"]["password"].as_str().unwrap_or_default().to_owned()
}

fn size(life: &Life, edge: &str) -> String {
    life.on(edge)["configmaps./team-a/db"]["data"]["size"].as_str().unwrap_or_default().to_owned()
}

/// Paths of the packs of a revision, of one kind.
fn packs(life: &Life, revision: i64, kind: &str) -> Vec<String> {
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-{revision}")).unwrap();
    let packs = context["spec"]["packs"].as_array().unwrap().iter();
    let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
    let path =
        |pack: &Value| format!("/api/v1/namespaces/emco-system/{plural}/{}", pack["name"].as_str().unwrap());
    packs.filter(|pack| pack["kind"] == kind).map(path).collect()
}

#[tokio::test(start_paused = true)]
async fn a_changed_value_arrives_and_the_passwords_stay() {
    let mut life = installed().await;
    let before = EDGES.map(|edge| password(&life, edge));
    assert!(before[0].len() == 24 && before[0] != before[1], "{before:?}");
    for number in 2..5 {
        // After each start, what is stored is all that is known.
        life.restart().await;
        life.put(&db(number, 16 + number, "edge"));
        life.settle().await;
        assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
        assert_eq!(life.dig()["status"]["revision"], number);
        assert_eq!(EDGES.map(|edge| size(&life, edge)), [number.to_string(), number.to_string()]);
        assert_eq!(EDGES.map(|edge| password(&life, edge)), before, "revision {number}");
    }
    let at_rest: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    life.restart().await;
    life.settle().await;
    let after: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    assert_eq!(at_rest, after, "nothing is rendered or written anew at rest");
}

#[tokio::test(start_paused = true)]
async fn the_password_of_a_cluster_that_never_got_it_stays_too() {
    let mut life = installed().await;
    let before = EDGES.map(|edge| password(&life, edge));
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life.put(&db(2, 20, "edge"));
    life.settle().await;
    life.put(&db(3, 24, "edge"));
    life.settle().await;
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(EDGES.map(|edge| size(&life, edge)), ["3", "3"]);
    assert_eq!(EDGES.map(|edge| password(&life, edge)), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_and_comes_back_while_away_keeps_its_password() {
    let mut life = installed().await;
    let before = EDGES.map(|edge| password(&life, edge));
    life.rig.fails("b", "Timeout");
    life.settle().await;
    let mut alone = db(1, 16, "edge");
    alone["spec"]["placement"] = json!({"allOf": [{"provider": "acme", "cluster": "a"}]});
    life.put(&alone);
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 2);
    life.restart().await;
    life.put(&db(3, 24, "edge"));
    life.settle().await;
    assert_eq!(life.says("Rendered").0, "True", "{:#}", life.dig());
    life.rig.returns("b", "uid-b");
    life.settle().await;
    assert_eq!(EDGES.map(|edge| size(&life, edge)), ["3", "3"]);
    assert_eq!(EDGES.map(|edge| password(&life, edge)), before);
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_lost_passwords_and_goes_on_when_they_are_back() {
    let mut life = installed().await;
    let before = EDGES.map(|edge| password(&life, edge));
    life.put(&db(2, 24, "edge"));
    life.settle().await;
    let lost: Vec<_> = packs(&life, 2, "Secret")
        .into_iter()
        .map(|path| (life.rig.hub.object(&path).unwrap(), path))
        .collect();
    assert!(!lost.is_empty());
    for (_, path) in &lost {
        life.delete(path).await;
    }
    life.restart().await;
    life.put(&db(3, 24, "edge"));
    life.settle().await;
    let (status, reason, message) = life.says("Rendered");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ContentLost"), "{message}");
    assert!(message.starts_with("app db on acme/a: the chart looks up Secret db, "), "{message}");
    assert!(!message.contains(&before[0]), "{message}");
    assert_eq!(EDGES.map(|edge| password(&life, edge)), before);
    for (object, _) in lost {
        let mut object = object;
        object["metadata"] =
            json!({"name": object["metadata"]["name"], "labels": object["metadata"]["labels"]});
        life.rig.hub.create("/api/v1/namespaces/emco-system/secrets", &object).await.unwrap();
    }
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(EDGES.map(|edge| size(&life, edge)), ["3", "3"]);
    assert_eq!(EDGES.map(|edge| password(&life, edge)), before);
}

#[tokio::test(start_paused = true)]
async fn lost_manifests_are_made_again_around_the_stored_password() {
    let mut life = installed().await;
    life.put(&db(2, 24, "edge"));
    life.settle().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let assignment = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-2")).unwrap();
    let assignment = assignment["spec"]["assignment"]["pack"].as_str().unwrap().to_owned();
    for path in packs(&life, 2, "ConfigMap").iter().filter(|path| !path.ends_with(&assignment)) {
        life.delete(path).await;
    }
    life.restart().await;
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 2, "{:#}", life.dig());
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_the_chart_refuses_says_so_and_what_runs_goes_on() {
    let mut life = Life::with(&objects());
    life.settle().await;
    // The same app, of another chart: nothing of it is there to be looked up.
    let charts = life.rig.hub.object("/api/v1/namespaces/team-a/configmaps/charts").unwrap();
    let mut charts = charts;
    charts["binaryData"]["web-1.1.0.tgz"] =
        json!(packed("web", "1.1.0", &[("templates/secret.yaml", SECRET)]));
    life.put(&charts);
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    life.put(&composite_app("1.1.0"));
    life.settle().await;
    let (status, reason, message) = life.says("Rendered");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateError"), "{message}");
    let words = "(web/templates/secret.yaml:2:48): PASSWORD ERROR: give the one in use";
    assert!(message.contains(words), "{message}");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}
