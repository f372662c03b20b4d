//! The deployment that has a release hears of others that want it, for as long as they do.

use serde_json::{Value, json};

use super::life::Life;
use super::rig::{emco, namespace};
use super::shop;

const ON: &str = "release shop in namespace team-a on 2 clusters (acme/a, acme/b) ";

fn path(within: &str, name: &str) -> String {
    format!("/apis/emco.io/v1alpha1/namespaces/{within}/deploymentintentgroups/{name}")
}

/// Another deployment of the shop's release.
fn wanting(within: &str, name: &str, cloud: &str) -> Value {
    let mut wanting = shop::deployment("edge");
    wanting["metadata"]["namespace"] = json!(within);
    wanting["metadata"]["name"] = json!(name);
    wanting["spec"]["release"] = json!("shop");
    wanting["spec"]["logicalCloudRef"]["name"] = json!(cloud);
    wanting
}

/// Notes of the Events that say so, sorted.
fn told(life: &Life) -> Vec<String> {
    let objects = life.rig.hub.objects().into_values();
    let events = objects.filter(|o| o["kind"] == "Event" && o["reason"] == "ReleaseContested");
    let mut notes: Vec<String> = events.map(|o| o["message"].as_str().unwrap().to_owned()).collect();
    notes.sort();
    notes
}

async fn running() -> (Life, (String, String, String)) {
    let mut life = Life::with(&shop::objects());
    life.settle().await;
    let ready = life.says("Ready");
    assert!(!ready.2.contains("wanted"), "{ready:?}");
    (life, ready)
}

#[tokio::test(start_paused = true)]
async fn a_deployment_says_who_wants_its_release_while_they_do() {
    let (mut life, before) = running().await;
    life.put(&wanting("team-a", "again", "default"));
    life.settle().await;
    let one = format!("{ON}is also wanted by DeploymentIntentGroup again, which does not get it");
    let (status, reason, message) = life.says("Ready");
    assert_eq!((&status, &reason), (&before.0, &before.1), "all is as it was");
    assert!(message.ends_with(&one), "{message}");
    assert_eq!(told(&life), [one.as_str()]);
    assert_eq!(life.rig.ready(&path("team-a", "again")).1, "DuplicateRelease");
    assert!(!life.rig.ready(&path("team-a", "again")).2.contains("also wanted"), "it does not have it");

    life.put(&wanting("team-a", "more", "default"));
    life.settle().await;
    let both = format!(
        "{ON}is also wanted by DeploymentIntentGroup again, DeploymentIntentGroup more, which do not get it"
    );
    assert!(life.says("Ready").2.ends_with(&both), "{:?}", life.says("Ready"));
    assert_eq!(told(&life), [both.as_str(), one.as_str()]);

    let mut ends = life.rig.hub.object(&path("team-a", "again")).unwrap();
    ends["spec"]["desiredState"] = json!("Terminated");
    life.put(&ends);
    life.settle().await;
    let message = life.says("Ready").2;
    assert!(message.ends_with("wanted by DeploymentIntentGroup more, which does not get it"), "{message}");
    life.delete(&path("team-a", "more")).await;
    life.settle().await;
    assert_eq!(life.says("Ready"), before);
    assert_eq!(told(&life).len(), 2, "one for each that came");
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_of_a_release_that_is_contested() {
    let (mut life, _) = running().await;
    life.put(&wanting("team-a", "again", "default"));
    life.settle().await;
    let version = life.dig()["metadata"]["resourceVersion"].clone();
    life.restart().await;
    life.settle().await;
    assert_eq!((&life.dig()["metadata"]["resourceVersion"], told(&life).len()), (&version, 1));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_another_project_is_not_named_to_the_holder() {
    let (mut life, before) = running().await;
    let grants = json!({"grants": [{"name": "all", "projects": ["team-a", "team-b"], "maxLevel": "Admin"}]});
    life.put(&emco("ClusterProvider", None, "acme", &grants));
    life.put(&namespace("team-b", &json!({"emco.io/project": "team-b"})));
    life.put(&emco("Project", None, "team-b", &json!({})));
    let cloud = json!({"level": "Admin", "namespace": "team-a"});
    life.put(&emco("LogicalCloud", Some("team-b"), "rival", &cloud));
    life.settle().await;
    assert_eq!(life.says("Ready"), before, "its logical cloud is told, and no deployment wants the release");
    life.put(&wanting("team-b", "kiosk", "rival"));
    life.settle().await;
    let (_, reason, refused) = life.rig.ready(&path("team-b", "kiosk"));
    assert_eq!(reason, "LogicalCloudNotReady", "{refused}");
    assert!(!refused.contains("shop"), "{refused}");
    let also = format!("{ON}is also wanted by a deployment of another project, which does not get it");
    let message = life.says("Ready").2;
    assert!(message.ends_with(&also), "{message}");
    assert!(["kiosk", "team-b", "rival"].iter().all(|name| !message.contains(name)), "{message}");
    assert_eq!(told(&life), [also]);
    life.delete(&path("team-b", "kiosk")).await;
    life.settle().await;
    assert_eq!(life.says("Ready"), before);
}
