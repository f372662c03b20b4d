//! Who a cluster is, who holds its provider, and whose a namespace is.

use serde_json::json;

use super::rig::*;

const PROVIDER: &str = "/apis/emco.io/v1alpha1/clusterproviders/acme";
const CLUSTERS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters";

async fn settled() -> Rig {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    rig
}

#[tokio::test]
async fn another_cluster_behind_a_known_name_is_refused() {
    let mut rig = settled().await;
    rig.answers("a", "uid-other");
    rig.settle().await;
    let (status, reason, message) = rig.ready(&format!("{CLUSTERS}/a"));
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ClusterReplaced"));
    assert!(message.contains("uid-other") && message.contains("uid-a"), "{message}");
    assert_eq!(rig.hub.object(&format!("{CLUSTERS}/a")).unwrap()["status"]["uid"], "uid-a");
}

#[tokio::test]
async fn a_cluster_registered_twice_is_refused_the_second_time() {
    let mut rig = settled().await;
    rig.answers("b", "uid-a");
    rig.hub.put("test", &secret("b"));
    rig.hub.put("test", &cluster_object("b"));
    rig.settle().await;
    let (_, reason, message) = rig.ready(&format!("{CLUSTERS}/b"));
    assert_eq!(reason, "SameClusterTwice");
    assert!(message.contains("acme/a"), "{message}");
    assert_eq!(rig.ready(&format!("{CLUSTERS}/a")).1, "Reachable");
}

#[tokio::test]
async fn a_provider_with_clusters_is_held_and_names_them() {
    let mut rig = settled().await;
    rig.hub.remove(PROVIDER);
    rig.settle().await;
    let (_, reason, message) = rig.ready(PROVIDER);
    assert_eq!(reason, "ClustersExist");
    assert!(message.contains("acme/a"), "{message}");
}

#[tokio::test]
async fn a_provider_without_clusters_goes() {
    let mut rig = Rig::new();
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &json!({})));
    rig.settle().await;
    assert!(rig.hub.object("/api/v1/namespaces/acme").is_some());
    rig.hub.remove(PROVIDER);
    rig.settle().await;
    assert!(rig.hub.object(PROVIDER).is_none());
    assert!(rig.hub.object("/api/v1/namespaces/acme").is_none());
}

#[tokio::test]
async fn a_namespace_of_somebody_else_is_refused_and_left_alone() {
    let mut rig = Rig::new();
    rig.hub.put("test", &namespace("team-a", &json!({})));
    rig.hub.put("test", &namespace("team-b", &json!({"emco.io/project": "other"})));
    for name in ["team-a", "team-b"] {
        rig.hub.put("test", &emco("Project", None, name, &json!({})));
    }
    rig.settle().await;
    assert_eq!(rig.ready("/apis/emco.io/v1alpha1/projects/team-a").1, "NamespaceNotOurs");
    assert_eq!(rig.ready("/apis/emco.io/v1alpha1/projects/team-b").1, "NamespaceTaken");
    rig.hub.remove("/apis/emco.io/v1alpha1/projects/team-b");
    rig.settle().await;
    assert!(rig.hub.object("/apis/emco.io/v1alpha1/projects/team-b").is_none());
    assert!(rig.hub.object("/api/v1/namespaces/team-b").is_some());
}
