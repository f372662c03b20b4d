//! What explains a placement: written with a revision, gone with it, and nothing depends on it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::explain::{self, Verdict};

use super::life::*;
use super::shop::{TENANT, deployment, objects, values};

const CONFIG_MAPS: &str = "/api/v1/namespaces/team-a/configmaps";

fn explanations(life: &Life) -> Vec<String> {
    let objects = life.rig.hub.objects().into_iter().filter(|(key, _)| key.contains("-explain"));
    objects.map(|(key, _)| key.rsplit('/').next().unwrap().to_owned()).collect()
}

/// What the revisions that are stored name, but for the first, whose explanation was deleted.
fn revisions(life: &Life) -> Vec<String> {
    let contexts = life.rig.hub.objects().into_values().filter(|object| object["kind"] == "AppContext");
    let names =
        contexts.flat_map(|c| c["spec"]["explain"]["configMaps"].as_array().cloned().unwrap_or_default());
    let names = names.map(|name| name.as_str().unwrap().to_owned());
    names.filter(|name| name != "dig-shop-1-explain").collect()
}

#[tokio::test(start_paused = true)]
async fn every_cluster_of_every_app_is_explained_beside_the_revision() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-1")).unwrap();
    assert_eq!(context["spec"]["explain"]["configMaps"], serde_json::json!(["dig-shop-1-explain"]));
    let map = life.rig.hub.object(&format!("{CONFIG_MAPS}/dig-shop-1-explain")).unwrap();
    let bytes = STANDARD.decode(map["binaryData"]["explain.json.zst"].as_str().unwrap()).unwrap();
    let read = explain::read(&[&bytes]).unwrap();
    let rows: Vec<String> = read
        .apps
        .iter()
        .flat_map(|app| app.clusters.iter().map(move |row| (app, row)))
        .map(|(app, row)| {
            format!("{} {} {:?} {} [{}]", app.app, row.cluster, row.verdict, row.reason, row.needs)
        })
        .collect();
    assert_eq!(
        rows,
        [
            "web acme/a Chosen allOf []",
            "web acme/b Chosen allOf []",
            "db acme/a Rejected LabelMissing [label disk=fast]",
            "db acme/b Chosen anyOf[0] []",
        ]
    );
    assert!(read.apps.iter().flat_map(|app| &app.clusters).any(|row| row.verdict == Verdict::Rejected));
}

#[tokio::test(start_paused = true)]
async fn explanations_leave_with_their_revision_and_nobody_misses_a_lost_one() {
    let mut life = Life::with(&objects());
    let mut short = deployment("edge");
    short["spec"]["revisionHistoryLimit"] = serde_json::json!(1);
    life.put(&short);
    life.settle().await;
    life.delete(&format!("{CONFIG_MAPS}/dig-shop-1-explain")).await;
    life.settle().await;
    assert!(explanations(&life).is_empty(), "what is lost is not written again");
    for page in ["blue", "green"] {
        life.put(&values(page));
        life.settle().await;
    }
    assert!(explanations(&life).contains(&"dig-shop-3-explain".to_owned()));
    assert_eq!(explanations(&life), revisions(&life), "each goes with its revision");
    // Somebody's own ConfigMap under such a name is nobody else's business.
    let theirs = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "dig-shop-4-explain", "namespace": "team-a"}, "data": {"mine": "yes"}});
    life.put(&theirs);
    life.put(&values("grey"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 4);
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(explanations(&life), ["dig-shop-4-explain"]);
    let left = life.rig.hub.object(&format!("{CONFIG_MAPS}/dig-shop-4-explain")).unwrap();
    assert_eq!(left["data"]["mine"], "yes");
}
