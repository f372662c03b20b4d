//! A deployment's life: installed, changed, refused, ended.

use serde_json::json;

use super::life::*;
use super::shop::{TENANT, composite_app, deployment, objects, values};

const BOTH: [&str; 6] = [
    "configmaps./team-a/old",
    "configmaps./team-a/page",
    "deployments.apps/team-a/web",
    "jobs.batch/team-a/prepare",
    "namespaces.//team-a",
    "",
];

fn web() -> Vec<&'static str> {
    BOTH.into_iter().filter(|name| !name.is_empty()).collect()
}

async fn installed() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_ends_instantiated_with_exactly_its_objects() {
    let life = installed().await;
    let status = &life.dig()["status"];
    assert_eq!(status["state"], "Instantiated", "{status:#}");
    assert_eq!(status["revision"], 1);
    assert_eq!(life.says("Ready").0, "True");
    assert_eq!(life.says("Deployed").0, "True");
    assert_eq!(life.names_on("a"), web());
    let mut with_store = web();
    with_store.extend(["secrets./team-a/key", "statefulsets.apps/team-a/db"]);
    assert_eq!(life.names_on("b"), with_store);
    let page = &life.on("a")["configmaps./team-a/page"];
    assert_eq!(page["data"]["text"], "red", "from the ConfigMap that the profile names");
    assert_eq!(life.on("b")["deployments.apps/team-a/web"]["spec"]["replicas"], 2, "from the profile itself");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_on_a_settled_hub_writes_nothing_anywhere() {
    let mut life = installed().await;
    let before: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    life.restart().await;
    life.settle().await;
    let after: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn a_change_counts_as_deployed_only_where_it_could_be_worked_out() {
    let mut life = installed().await;
    let seen = life.rig.forgotten("b");
    life.put(&values("blue"));
    life.settle().await;
    let (deployed, reason, message) = life.says("Deployed");
    assert_eq!(life.on("a")["configmaps./team-a/page"]["data"]["text"], "blue");
    assert_eq!(life.on("b")["configmaps./team-a/page"]["data"]["text"], "red", "what it has stays");
    assert_eq!((deployed.as_str(), reason.as_str()), ("False", "Progressing"), "{message}");
    assert!(message.starts_with("1 of 2 clusters"), "{message}");
    life.rig.remembered("b", seen);
    life.settle().await;
    assert_eq!(life.on("b")["configmaps./team-a/page"]["data"]["text"], "blue");
    assert_eq!(life.says("Deployed").0, "True");
}

#[tokio::test(start_paused = true)]
async fn an_update_changes_what_differs_and_prunes_what_the_chart_no_longer_makes() {
    let mut life = installed().await;
    let store = life.edges["b"].object("/apis/apps/v1/namespaces/team-a/statefulsets/db").unwrap();
    life.put(&composite_app("1.1.0"));
    life.put(&values("blue"));
    life.settle().await;
    let status = &life.dig()["status"];
    assert_eq!(
        (&status["state"], &status["history"][0]["revision"]),
        (&json!("Updated"), &status["revision"])
    );
    for edge in EDGES {
        assert!(!life.names_on(edge).iter().any(|name| name.ends_with("/old")), "{edge}");
        assert_eq!(life.on(edge)["configmaps./team-a/page"]["data"]["text"], "blue");
    }
    let now = life.edges["b"].object("/apis/apps/v1/namespaces/team-a/statefulsets/db").unwrap();
    assert_eq!(store, now, "an app that did not change is not written");
}

#[tokio::test(start_paused = true)]
async fn each_revision_is_stored_with_counts_of_what_it_changed() {
    let mut life = installed().await;
    life.put(&values("blue"));
    life.settle().await;
    let counts = |revision: i64| {
        let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-{revision}")).unwrap();
        context["spec"]["changes"].clone()
    };
    let of = |added: i64, changed: i64| json!({"added": added, "changed": changed, "removed": 0});
    // Four objects of `web` on both clusters, and two of `db` on one.
    assert_eq!(counts(1), json!({"clusters": of(2, 0), "objects": of(10, 0)}));
    assert_eq!(counts(2), json!({"clusters": of(0, 2), "objects": of(0, 2)}));
}

#[tokio::test(start_paused = true)]
async fn a_placement_that_matches_nothing_is_refused_and_what_runs_stays() {
    let mut life = installed().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let shards = names(&life.rig.hub, &format!("{TENANT}/syncshards")).await;
    life.put(&deployment("nowhere"));
    life.settle().await;
    let (status, reason, message) = life.says("Placed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoClusterMatches"));
    assert!(message.contains("tier=nowhere"), "{message}");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    assert_eq!(shards, names(&life.rig.hub, &format!("{TENANT}/syncshards")).await);
    assert_eq!(life.dig()["status"]["revision"], 1);
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Placed").0, "True");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_change_refused_while_a_cluster_is_away_stays_refused() {
    let mut life = installed().await;
    life.rig.fails("b", "Timeout");
    life.settle().await;
    assert_eq!(life.says("Ready").0, "False", "{:#}", life.dig());
    life.put(&deployment("nowhere"));
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoClusterMatches"));
    assert!(message.contains("the last change is refused: "), "{message}");
    let away = "; besides, what runs is not ready: 1 of 2 clusters ready; 1 unreachable; acme/b: Unreachable";
    assert!(message.ends_with(away), "{message}");
    let runs = "revision 1 runs on 2 of 2 clusters, of which 1 cannot be reached; ";
    assert!(message.starts_with(runs), "{message}");
    life.rig.returns("b", "uid-b");
    life.settle().await;
    let (status, reason, message) = life.says("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoClusterMatches"));
    assert!(message.starts_with("revision 1 runs on 2 of 2 clusters; "), "{message}");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_loses_its_label_is_left_and_no_other_is_touched() {
    let mut life = installed().await;
    let other = versions(&life.edges["b"]);
    life.put(&super::rig::cluster_object("a"));
    // Another manager's apply does not take the label away: the tenant's own does.
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
    assert_eq!(other, versions(&life.edges["b"]));
    assert_eq!(life.dig()["status"]["clusters"]["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_terminated_deployment_leaves_every_edge_keeps_its_history_and_comes_back() {
    let mut life = installed().await;
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminated");
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"], "the logical cloud's own");
    }
    let shop = |all: Vec<String>| all.into_iter().filter(|name| name.starts_with("dig-")).collect::<Vec<_>>();
    let hub = life.rig.hub.clone();
    assert!(shop(names(&hub, &format!("{TENANT}/syncshards")).await).is_empty());
    assert_eq!(shop(names(&hub, &format!("{TENANT}/appcontexts")).await), ["dig-shop-1"]);
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True");
    assert_eq!(life.names_on("a"), web());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_a_revision_is_never_used_again() {
    let mut life = installed().await;
    life.put(&values("blue"));
    life.settle().await;
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminated");
    life.restart().await;
    life.put(&values("green"));
    life.put(&deployment("edge"));
    life.settle().await;
    let status = life.dig()["status"].clone();
    assert_eq!((life.says("Ready").0, &status["revision"]), ("True".into(), &json!(3)), "{status:#}");
    let shop = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
    let shop: Vec<_> = shop.into_iter().filter(|name| name.starts_with("dig-")).collect();
    assert_eq!(shop, ["dig-shop-1", "dig-shop-2", "dig-shop-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_leaves_nothing_on_edges_or_hub() {
    let mut life = Life::with(&objects()[..objects().len() - 1]);
    life.settle().await;
    let before = life.everything();
    life.put(&deployment("edge"));
    life.settle().await;
    assert_ne!(before, life.everything());
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    life.collect().await;
    assert_eq!(before, life.everything());
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_uses_is_held_until_it_is_gone() {
    let mut life = installed().await;
    for what in ["compositeapps/shop", "compositeprofiles/shop", "logicalclouds/default"] {
        life.delete(&format!("{TENANT}/{what}")).await;
    }
    life.settle().await;
    for what in ["compositeapps/shop", "compositeprofiles/shop", "logicalclouds/default"] {
        let object = life.rig.hub.object(&format!("{TENANT}/{what}")).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let held = conditions.iter().find(|condition| condition["type"] == "InUse");
        let message = held.map(|held| held["message"].to_string()).unwrap_or_default();
        assert!(message.contains("DeploymentIntentGroup/team-a/shop"), "{what}: {object:#}");
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
        let says = ready["message"].as_str().unwrap_or_default();
        assert_eq!(ready["reason"], "Terminating", "{what}: {object:#}");
        assert!(says.contains("deletion waits for 1 holder"), "{what}: {says}");
    }
    assert_eq!(life.names_on("a"), web());
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    for what in ["compositeapps/shop", "compositeprofiles/shop"] {
        assert!(life.rig.hub.object(&format!("{TENANT}/{what}")).is_none(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_in_use_that_is_deleted_says_what_it_waits_for() {
    let mut life = installed().await;
    let path = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
    life.delete(path).await;
    life.settle().await;
    let (status, reason, message) = life.rig.ready(path);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Terminating"), "{message}");
    for part in ["v1.33.1", "; deletion waits for 1 holder: DeploymentIntentGroup/team-a/shop"] {
        assert!(message.contains(part), "{message}");
    }
    let told = |life: &Life| {
        let events = life.rig.hub.objects().into_values();
        events.filter(|o| o["kind"] == "Event" && o["reason"] == "Terminating").count()
    };
    assert_eq!(told(&life), 1);
    life.rig.fails("a", "Timeout");
    life.settle().await;
    let (status, reason, message) = life.rig.ready(path);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Terminating"), "{message}");
    assert!(message.starts_with("Timeout: nobody answers; deletion waits"), "{message}");
    life.rig.returns("a", "uid-a");
    life.settle().await;
    assert_eq!(life.names_on("a"), web(), "a plan needs a cluster that is ready");
}

#[tokio::test(start_paused = true)]
async fn a_profile_and_an_app_say_what_is_missing_and_notice_its_arrival() {
    let all = objects();
    let (sources, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|object| ["charts", "values"].iter().any(|name| object["metadata"]["name"] == *name));
    let mut life = Life::with(&rest);
    life.settle().await;
    let ready = |life: &Life, what: &str| life.rig.ready(&format!("{TENANT}/{what}/shop")).1;
    assert_eq!(ready(&life, "compositeapps"), "ConfigMapNotFound");
    assert_eq!(ready(&life, "compositeprofiles"), "ConfigMapNotFound");
    assert_eq!(life.says("Resolved").1, "ChartNotReady");
    assert!(life.dig()["status"]["revision"].is_null());
    for object in &sources {
        life.put(object);
    }
    life.settle().await;
    assert_eq!(ready(&life, "compositeapps"), "ChartsResolved");
    assert_eq!(ready(&life, "compositeprofiles"), "Valid");
    assert_eq!(life.dig()["status"]["state"], "Instantiated");
}

/// Revisions of the new one are numbered anew: what was read of the old one's says nothing of them.
#[tokio::test(start_paused = true)]
async fn a_deployment_made_again_with_other_content_is_installed_by_the_same_process() {
    let mut life = installed().await;
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    life.put(&composite_app("1.1.0"));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(life.dig()["status"]["revision"], 1);
    assert!(!life.names_on("a").iter().any(|name| name.ends_with("/old")));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deleted_is_left_by_logical_clouds_when_no_deployment_is_there_any_more() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let cluster = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
    life.delete(cluster).await;
    life.settle().await;
    assert!(life.rig.hub.object(cluster).is_some(), "a deployment is there");
    assert!(life.names_on("a").len() > 1);
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert!(life.rig.hub.object(cluster).is_none(), "{:#}", life.rig.hub.object(cluster).unwrap());
    assert_eq!(life.names_on("a"), Vec::<String>::new(), "not even the namespace");
    assert_eq!(life.names_on("b"), ["namespaces.//team-a"], "the other one is none of its business");
}
