//! Credentials are taken back, and Secrets that others touch are put right or left alone.

use serde_json::{Value, json};

use super::super::shop::{TENANT, labelled};
use super::{CLOUD, SECRETS, Signs, Stage, cloud, of_type};

#[tokio::test(start_paused = true)]
async fn who_is_named_no_more_loses_rights_and_kubeconfigs() {
    let mut stage = Stage::with(&of_type("Auto")).await;
    let account = stage.life.edges["a"].of_kind("ServiceAccount").len();
    stage.life.put(&cloud(&json!({})));
    stage.life.settle().await;
    assert!(stage.keys().is_empty() && stage.secret("default-kubeconfig").is_empty());
    assert!(!stage.subjects("a").contains("ann"), "{}", stage.subjects("a"));
    assert_eq!(stage.life.edges["a"].of_kind("ServiceAccount").len(), account - 1);
    assert_eq!((&stage.status()["kubeconfigs"], stage.ready().0.as_str()), (&Value::Null, "True"));
}

#[tokio::test(start_paused = true)]
async fn another_person_takes_the_place_of_the_first() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    stage.set("a", Signs::Nothing);
    stage.life.put(&cloud(&json!({"user": {"name": "bob"}, "credentials": {"type": "ClientCertificate"}})));
    stage.life.settle().await;
    let users: Vec<String> = stage.stored().into_values().map(|one| one.user).collect();
    assert_eq!(users, ["emco:team-a:default:bob"], "the first one's is gone where the next is awaited");
    assert!(!stage.subjects("a").contains(":ann"), "{}", stage.subjects("a"));
    assert!(!stage.secret("default-kubeconfig")["kubeconfig"].contains(":ann"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_takes_its_kubeconfig_along() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    let names = json!({"user": {"name": "ann"}, "credentials": {"type": "ClientCertificate"},
        "clusters": [{"selector": {"matchLabels": {"disk": "fast"}}}]});
    stage.life.put(&labelled("a", &json!({"tier": "core"})));
    stage.life.put(&cloud(&names));
    stage.life.settle().await;
    assert_eq!(stage.keys(), ["acme.b"]);
    assert!(!stage.secret("default-kubeconfig")["kubeconfig"].contains("acme.a"));
}

#[tokio::test(start_paused = true)]
async fn a_logical_cloud_that_ends_leaves_no_kubeconfig() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    stage.life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    stage.life.settle().await;
    stage.life.delete(CLOUD).await;
    stage.life.settle().await;
    assert!(stage.keys().is_empty() && stage.secret("default-kubeconfig").is_empty());
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/emco-default";
    assert_eq!(stage.life.edges["a"].object(binding), None);
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_left_alone() {
    let theirs = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "default-kubeconfig-0", "namespace": "team-a"}, "data": {"mine": "eA=="}});
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.life.put(&theirs);
    stage.life.settle().await;
    let (_, reason, message) = stage.ready();
    assert_eq!(reason, "Conflict");
    assert!(
        message.contains("Secret team-a/default-kubeconfig-0 was not made for LogicalCloud default"),
        "{message}"
    );
    assert_eq!((stage.secret("default-kubeconfig-0").len(), *stage.made.lock()), (1, 0));
    stage.life.rig.hub.remove(&format!("{SECRETS}/default-kubeconfig-0"));
    stage.life.settle().await;
    assert_eq!((stage.keys().len(), stage.ready().0.as_str()), (2, "True"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_somebody_removes_is_made_again() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    stage.life.rig.hub.remove(&format!("{SECRETS}/default-kubeconfig-0"));
    let key = ("team-a".to_owned(), "default".to_owned());
    // As the watch of Secrets tells it.
    assert!(stage.life.rig.ctx.people.secret_changed(&key, "default-kubeconfig-0", Some("gone")));
    stage.life.settle().await;
    assert_eq!((stage.keys().len(), stage.ready().0.as_str(), stage.left()), (2, "True", 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_made_there_is_named_when_the_name_is_removed() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "again", "namespace": "team-a"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "forever", "namespace": "team-a"}});
    for object in [&binding, &secret] {
        stage.life.edges["a"].put("ann", object);
    }
    stage.life.put(&cloud(&json!({})));
    stage.life.settle().await;
    assert_eq!(stage.status()["kubeconfigs"], Value::Null);
    let events = stage.life.rig.hub.of_kind("Event");
    let told: Vec<&str> = events
        .iter()
        .filter(|one| one["reason"] == "RightsRemain")
        .filter_map(|one| one["message"].as_str())
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    for made in ["acme/a: RoleBinding/team-a/again", "acme/a: Secret/team-a/forever"] {
        assert!(told[0].contains(made), "{told:?}");
    }
    assert!(!told[0].contains("emco-default") && !told[0].contains("acme/b"), "{told:?}");
}
