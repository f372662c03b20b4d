//! Two logical clouds with one namespace on one cluster, and two deployments of one release.

use serde_json::{Value, json};

use super::rig::{Rig, emco, namespace, settled_with, world};
use super::shop;

const FIRST: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";

/// A second project with a cloud that wants the namespace of the first one's.
fn rival(within: &str, name: &str) -> serde_json::Value {
    emco("LogicalCloud", Some(within), name, &json!({"level": "Admin", "namespace": "team-a"}))
}

fn path(within: &str, name: &str) -> String {
    format!("/apis/emco.io/v1alpha1/namespaces/{within}/logicalclouds/{name}")
}

/// Both projects may use the cluster; the rival comes when the first cloud has it.
async fn two_projects() -> Rig {
    let mut rig = settled_with(world()).await;
    let grants = json!({"grants": [{"name": "all", "projects": ["team-a", "team-b"], "maxLevel": "Admin"}]});
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &grants));
    rig.hub.put("test", &namespace("team-b", &json!({"emco.io/project": "team-b"})));
    rig.hub.put("test", &emco("Project", None, "team-b", &json!({})));
    rig.hub.put("test", &rival("team-b", "other"));
    rig.settle().await;
    rig
}

fn shards_of(rig: &Rig, within: &str) -> usize {
    let objects = rig.hub.objects();
    objects
        .values()
        .filter(|o| o["kind"] == "SyncShard" && o["metadata"]["namespace"] == within)
        .filter(|o| o["spec"]["clusters"].as_array().is_some_and(|rows| !rows.is_empty()))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_another_cloud_has_is_not_taken() {
    let rig = two_projects().await;
    let (status, reason, message) = rig.ready(&path("team-b", "other"));
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NamespaceConflict"), "{message}");
    assert!(
        message.starts_with(
            "namespace team-a on cluster acme/a belongs to a logical cloud of another project: "
        ),
        "{message}"
    );
    assert!(!message.contains("default"), "the name of another tenant's object: {message}");
    assert_eq!(shards_of(&rig, "team-b"), 0, "nothing is targeted");
    let (_, reason, message) = rig.ready(FIRST);
    assert_ne!(reason, "NamespaceConflict");
    let also = "; namespace team-a on cluster acme/a is also wanted by a logical cloud of another project, which does not get it";
    assert!(message.ends_with(also) && !message.contains("other,"), "{message}");
    let stored = rig.hub.object(&path("team-b", "other")).unwrap();
    let stalled = stored["status"]["conditions"].as_array().unwrap().iter().any(|c| c["type"] == "Stalled");
    assert!(stalled, "{stored:#}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_of_the_same_project_is_named() {
    let mut rig = settled_with(world()).await;
    rig.hub.put("test", &rival("team-a", "second"));
    rig.settle().await;
    let (_, reason, message) = rig.ready(&path("team-a", "second"));
    assert_eq!(reason, "NamespaceConflict");
    assert!(message.contains("belongs to LogicalCloud default: "), "{message}");
    let holder = |rig: &Rig| rig.ready(FIRST).2;
    assert!(
        holder(&rig).contains("is also wanted by LogicalCloud second, which does not get it"),
        "{}",
        holder(&rig)
    );
    rig.hub.remove(&path("team-a", "second"));
    rig.settle().await;
    assert!(!holder(&rig).contains("wanted"), "{}", holder(&rig));
}

#[tokio::test(start_paused = true)]
async fn the_recorded_holder_keeps_a_namespace_though_it_is_younger() {
    let mut rig = two_projects().await;
    // As after a restore of the hub's objects: who came second has the older object now.
    let mut rival = rig.hub.object(&path("team-b", "other")).unwrap();
    rival["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    rig.hub.put("test", &rival);
    rig.settle().await;
    assert_eq!(rig.ready(&path("team-b", "other")).1, "NamespaceConflict");
    assert_ne!(rig.ready(FIRST).1, "NamespaceConflict");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_its_holder_left_is_taken() {
    let mut rig = two_projects().await;
    assert_eq!(rig.ready(&path("team-b", "other")).1, "NamespaceConflict", "before");
    // The grant moves: the first project has no cluster any more, and its rows are gone with the edge's answer.
    let grants = json!({"grants": [{"name": "all", "projects": ["team-b"], "maxLevel": "Admin"}]});
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &grants));
    let shards: Vec<String> = rig
        .hub
        .objects()
        .values()
        .filter(|o| o["kind"] == "SyncShard" && o["metadata"]["namespace"] == "team-a")
        .map(|o| o["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    rig.settle().await;
    for shard in shards {
        let path = format!("/apis/emco.io/v1alpha1/namespaces/team-a/syncshards/{shard}");
        let mut stored = rig.hub.object(&path).unwrap();
        stored["spec"]["clusters"] = json!([]);
        rig.hub.put("test", &stored);
    }
    rig.settle().await;
    assert_ne!(rig.ready(&path("team-b", "other")).1, "NamespaceConflict");
    assert_eq!(shards_of(&rig, "team-b"), 1);
}

#[tokio::test(start_paused = true)]
async fn clouds_on_different_clusters_share_a_namespace_s_name() {
    let mut objects = world();
    objects.push(super::rig::secret("b"));
    objects.push(super::rig::cluster_object("b"));
    let project = emco("Project", None, "team-a", &json!({}));
    objects.retain(|object| object["kind"] != "Project");
    objects.push(project);
    objects.push(namespace("team-a", &json!({"emco.io/project": "team-a"})));
    for name in ["a", "b"] {
        let spec = json!({"level": "Admin", "clusters": [{"provider": "acme", "cluster": name}]});
        objects.push(emco("LogicalCloud", Some("team-a"), name, &spec));
    }
    let rig = settled_with(objects).await;
    for name in ["a", "b"] {
        assert_ne!(rig.ready(&path("team-a", name)).1, "NamespaceConflict", "{name}");
    }
}

const AGAIN: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/deploymentintentgroups/again";

/// A second deployment of the release of the shop, through this cloud.
fn again(cloud: &str) -> Value {
    let mut again = shop::deployment("edge");
    again["metadata"]["name"] = json!("again");
    again["spec"]["release"] = json!("shop");
    again["spec"]["logicalCloudRef"]["name"] = json!(cloud);
    again
}

/// Shards of deployment `again`.
fn targeted(rig: &Rig) -> usize {
    let objects = rig.hub.objects();
    objects.values().filter(|o| o["kind"] == "SyncShard" && o["spec"]["owner"]["name"] == "again").count()
}

#[tokio::test(start_paused = true)]
async fn a_release_that_another_deployment_has_is_refused_and_changes_nothing() {
    let mut rig = settled_with(shop::objects()).await;
    rig.hub.put("test", &again("default"));
    rig.settle().await;
    let refused = |rig: &Rig| {
        let (status, reason, message) = rig.ready(AGAIN);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "DuplicateRelease"), "{message}");
        assert!(
            message.contains(
                "release shop in logical cloud default is DeploymentIntentGroup shop's, which had it first"
            ),
            "{message}"
        );
        assert_eq!(targeted(rig), 0, "nothing is targeted");
    };
    refused(&rig);
    // As after a restore of the hub's objects: who came second has the older object now.
    let mut older = rig.hub.object(AGAIN).unwrap();
    older["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    rig.hub.put("test", &older);
    rig.settle().await;
    refused(&rig);
    assert_ne!(rig.ready(&format!("{}/deploymentintentgroups/shop", shop::TENANT)).1, "DuplicateRelease");
}

#[tokio::test(start_paused = true)]
async fn a_release_through_another_cloud_of_the_same_namespace_is_not_shared() {
    let mut rig = settled_with(shop::objects()).await;
    rig.hub.put("test", &rival("team-a", "second"));
    rig.hub.put("test", &again("second"));
    rig.settle().await;
    assert_eq!(rig.ready(&path("team-a", "second")).1, "NamespaceConflict");
    let (status, reason, message) = rig.ready(AGAIN);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "LogicalCloudNotReady"), "{message}");
    assert!(message.contains("belongs to LogicalCloud default: "), "{message}");
    assert_eq!(targeted(&rig), 0, "nothing is targeted");
}
