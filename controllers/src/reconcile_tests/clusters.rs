//! Who a cluster is, who holds its provider, and whose a namespace is.

use emco_engine::identity::ClusterId;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::ApiServerExt;
use crate::memory::MemoryServer;
use crate::reconcile;
use crate::remote::{Admission, Claim, claim};
use crate::tenancy::facts;

const PROVIDER: &str = "/apis/emco.io/v1alpha1/clusterproviders/acme";
const CLUSTERS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters";

/// A provider and its cluster, on which nothing is placed.
fn unused() -> Vec<Value> {
    world().into_iter().filter(|object| object["kind"] != "Project").collect()
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
async fn a_restart_writes_nothing_of_clusters_that_are_as_they_were() {
    let mut rig = settled().await;
    rig.fails("a", "Unreachable");
    for reason in ["Unreachable", "Reachable"] {
        rig.settle().await;
        assert_eq!(rig.ready(&format!("{CLUSTERS}/a")).1, reason);
        let seen = rig.forgotten("a");
        rig.restart();
        rig.hub.take_seen();
        assert!(rig.round().await.is_empty());
        rig.remembered("a", seen);
        assert!(rig.round().await.is_empty());
        assert!(rig.writes().is_empty(), "{reason}");
        rig.returns("a", "uid-a");
    }
}

#[tokio::test]
async fn a_cluster_that_was_not_asked_yet_serves_what_its_digest_says() {
    let mut rig = settled().await;
    rig.serves("a", "sha256:one");
    rig.settle().await;
    rig.answers("z", "uid-z");
    rig.forgotten("a");
    let id = ClusterId::new("acme", "a");
    let is_known = |rig: &Rig| {
        let cluster = rig.ctx.stores.clusters.named("acme", "a").unwrap();
        let known = facts::facts(&rig.ctx, &cluster).unwrap().apis.is_some();
        assert_eq!(facts::is_about_to_answer(&rig.ctx, &id), !known, "plans wait for what is not known");
        known
    };
    assert!(!is_known(&rig), "nobody serves that");
    rig.serves("z", "sha256:one");
    assert!(is_known(&rig));
    rig.serves("z", "sha256:other");
    assert!(!is_known(&rig));
}

#[tokio::test]
async fn what_was_wrong_with_credentials_is_not_said_of_those_that_replaced_them() {
    let mut rig = settled().await;
    let mut broken = secret("a");
    broken["data"]["kubeconfig"] = json!("Og==");
    rig.hub.put("test", &broken);
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{CLUSTERS}/a")).1, "KubeconfigInvalid");
    rig.forgotten("a");
    rig.hub.put("test", &secret("a"));
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{CLUSTERS}/a")).1, "Connecting");
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
async fn of_two_new_clusters_of_one_api_server_the_first_to_answer_is_admitted() {
    let mut rig = Rig::new();
    for object in world().into_iter().chain([secret("b"), cluster_object("b")]) {
        rig.hub.put("test", &object);
    }
    for name in ["a", "b"] {
        rig.never_answers(name);
    }
    rig.settle().await;
    rig.answers("b", "uid-a");
    rig.unjudged("b");
    reconcile::cluster::reconcile(&rig.ctx, "acme", "b").await.unwrap();
    assert_eq!(rig.admission("b"), Admission::Admitted);
    // The watch has not shown what was written of it.
    rig.answers("a", "uid-a");
    rig.unjudged("a");
    reconcile::cluster::reconcile(&rig.ctx, "acme", "a").await.unwrap();
    assert!(matches!(rig.admission("a"), Admission::Refused { reason: "SameClusterTwice", .. }));
    rig.settle().await;
    let (_, reason, message) = rig.ready(&format!("{CLUSTERS}/a"));
    assert_eq!(reason, "SameClusterTwice");
    assert!(message.contains("acme/b"), "{message}");
    assert_eq!(rig.ready(&format!("{CLUSTERS}/b")).1, "Reachable");
}

#[tokio::test]
async fn another_cluster_takes_the_place_of_the_first_when_somebody_confirms_it() {
    let mut rig = settled().await;
    rig.answers("a", "uid-other");
    rig.settle().await;
    assert!(matches!(rig.admission("a"), Admission::Refused { reason: "ClusterReplaced", .. }));
    let path = format!("{CLUSTERS}/a");
    let confirm = |uid: &str| json!({"metadata": {"annotations": {"emco.io/confirm": uid}}});
    rig.hub.merge(&path, &confirm("uid-third")).await.unwrap();
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "ClusterReplaced", "exactly this one is confirmed, or none");
    rig.hub.merge(&path, &confirm("uid-other")).await.unwrap();
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "Reachable");
    assert_eq!(rig.hub.object(&path).unwrap()["status"]["uid"], "uid-other");
    assert_eq!(rig.admission("a"), Admission::Admitted);
    // The first one coming back is the stranger now.
    rig.answers("a", "uid-a");
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "ClusterReplaced");
}

#[tokio::test]
async fn a_cluster_of_another_hub_is_left_alone_until_it_is_moved() {
    let mut rig = Rig::new();
    let edge = MemoryServer::new();
    rig.attach("a", &edge);
    let theirs =
        Claim::Held { installation: "theirs".to_owned(), since: "2026-01-01T00:00:00Z".to_owned(), seen: 0 };
    claim::take(&edge, &Claim::Absent, "theirs", "2026-01-01T00:00:00Z").await.unwrap();
    rig.claims("a", theirs.clone());
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    let path = format!("{CLUSTERS}/a");
    let (_, reason, message) = rig.ready(&path);
    assert_eq!(reason, "ClaimedByAnotherHub");
    assert!(
        message.contains("theirs") && message.contains("emco.io/confirm=theirs@2026-01-01T00:00:00Z"),
        "{message}"
    );
    assert!(matches!(rig.admission("a"), Admission::Refused { reason: "ClaimedByAnotherHub", .. }));
    assert_eq!(claim::read(&edge).await.unwrap(), theirs);
    let confirm = json!({"metadata": {"annotations": {"emco.io/confirm": "theirs@2026-01-01T00:00:00Z"}}});
    rig.hub.merge(&path, &confirm).await.unwrap();
    rig.round().await;
    let now = claim::read(&edge).await.unwrap();
    assert!(matches!(&now, Claim::Held { installation, .. } if installation == "inst"), "{now:?}");
    rig.claims("a", now);
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "Reachable");
}

/// Disaster recovery and fail-back: both hubs' annotations stand from then on.
#[tokio::test]
async fn a_confirmed_move_does_not_take_back_what_another_hub_took_since() {
    let mut rig = Rig::new();
    let edge = MemoryServer::new();
    rig.attach("a", &edge);
    let first = "2026-01-01T00:00:00Z";
    claim::take(&edge, &Claim::Absent, "theirs", first).await.unwrap();
    rig.claims("a", claim::read(&edge).await.unwrap());
    for object in world() {
        rig.hub.put("test", &object);
    }
    let path = format!("{CLUSTERS}/a");
    rig.settle().await;
    let confirm = |what: &str| json!({"metadata": {"annotations": {"emco.io/confirm": what}}});
    rig.hub.merge(&path, &confirm(&format!("theirs@{first}"))).await.unwrap();
    rig.round().await;
    let ours = claim::read(&edge).await.unwrap();
    // The operator may die here: the claim is written, the status is not.
    rig.claims("a", ours.clone());
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "Reachable");
    // The other hub takes it back; the annotation of the first move still stands.
    claim::take(&edge, &ours, "theirs", "2026-02-02T00:00:00Z").await.unwrap();
    let theirs = claim::read(&edge).await.unwrap();
    rig.claims("a", theirs.clone());
    rig.settle().await;
    assert_eq!(rig.ready(&path).1, "ClaimedByAnotherHub");
    assert_eq!(claim::read(&edge).await.unwrap(), theirs, "nothing is taken that nobody confirmed");
    // What does not say which claim confirms none.
    rig.hub.merge(&path, &confirm("theirs")).await.unwrap();
    rig.settle().await;
    assert_eq!(claim::read(&edge).await.unwrap(), theirs);
    rig.hub.merge(&path, &confirm("theirs@2026-02-02T00:00:00Z")).await.unwrap();
    rig.round().await;
    let now = claim::read(&edge).await.unwrap();
    assert!(matches!(&now, Claim::Held { installation, .. } if installation == "inst"), "{now:?}");
}

#[tokio::test]
async fn a_cluster_that_belongs_to_nobody_is_claimed_and_given_back_at_its_end() {
    let mut rig = Rig::new();
    let edge = MemoryServer::new();
    rig.attach("a", &edge);
    rig.claims("a", Claim::Absent);
    for object in unused() {
        rig.hub.put("test", &object);
    }
    rig.round().await;
    rig.round().await;
    let ours = claim::read(&edge).await.unwrap();
    assert!(matches!(&ours, Claim::Held { installation, .. } if installation == "inst"), "{ours:?}");
    rig.claims("a", ours);
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{CLUSTERS}/a")).1, "Reachable");
    rig.hub.remove(&format!("{CLUSTERS}/a"));
    rig.settle().await;
    assert!(rig.hub.object(&format!("{CLUSTERS}/a")).is_none());
    assert_eq!(claim::read(&edge).await.unwrap(), Claim::Absent);
}

#[tokio::test]
async fn credentials_that_may_not_claim_are_worked_with_and_told() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    rig.claims("a", Claim::Unreadable("configmaps is forbidden".to_owned()));
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    let (status, reason, message) = rig.ready(&format!("{CLUSTERS}/a"));
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Reachable"));
    assert!(message.contains("not claimed") && message.contains("forbidden"), "{message}");
}

#[tokio::test]
async fn a_cluster_renamed_in_git_waits_for_the_old_name_to_be_gone() {
    let mut rig = settled_with(unused()).await;
    rig.answers("b", "uid-a");
    rig.hub.put("test", &secret("b"));
    rig.hub.put("test", &cluster_object("b"));
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{CLUSTERS}/b")).1, "SameClusterTwice");
    assert!(
        matches!(rig.admission("b"), Admission::Refused { .. }),
        "nothing is done there under the second name"
    );
    rig.hub.remove(&format!("{CLUSTERS}/a"));
    rig.settle().await;
    assert!(rig.hub.object(&format!("{CLUSTERS}/a")).is_none());
    assert_eq!(rig.ready(&format!("{CLUSTERS}/b")).1, "Reachable");
    assert_eq!(rig.hub.object(&format!("{CLUSTERS}/b")).unwrap()["status"]["uid"], "uid-a");
    assert_eq!(rig.admission("b"), Admission::Admitted);
}

#[tokio::test]
async fn a_provider_with_clusters_is_held_and_names_them() {
    let mut rig = settled().await;
    rig.hub.remove(PROVIDER);
    rig.settle().await;
    let (_, reason, message) = rig.ready(PROVIDER);
    assert_eq!(reason, "Terminating");
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

#[tokio::test]
async fn a_project_whose_namespace_ends_makes_nothing_in_it() {
    let mut rig = Rig::new();
    rig.hub.put("test", &emco("Project", None, "team-a", &json!({"logicalCloud": {"level": "Admin"}})));
    let mut ends = namespace("team-a", &json!({"emco.io/project": "team-a"}));
    ends["metadata"]["deletionTimestamp"] = json!("2026-11-21T06:00:00Z");
    ends["metadata"]["uid"] = json!("uid-of-team-a");
    rig.hidden_namespace = Some(ends);
    rig.settle().await;
    let clouds = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds";
    assert!(rig.hub.object(&format!("{clouds}/default")).is_none());
    // It is gone: made again, with what belongs into it.
    rig.hidden_namespace = None;
    rig.settle().await;
    assert!(rig.hub.object(&format!("{clouds}/default")).is_some());
}

#[tokio::test]
async fn a_connection_is_told_since_when_its_cluster_is_registered() {
    let rig = settled().await;
    let made = rig.hub.object(&format!("{CLUSTERS}/a")).unwrap()["metadata"]["creationTimestamp"].clone();
    let registered = rig.wanted("a").unwrap().registered.unwrap();
    assert_eq!(made, registered.to_string());
}
