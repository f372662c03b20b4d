//! Targets of clusters that are written to through Git: their logins, their folders, and who holds them.

use serde_json::{Value, json};

use super::rig::*;

const TARGETS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/gittargets";
const CLUSTERS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters";

fn target(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "url": "https://git.example.com/acme/fleet.git", "branch": "main", "folder": "hub", "interval": "1m",
        "edge": {"namespace": "flux-system", "interval": "1m"},
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    emco("GitTarget", Some("acme"), name, &spec)
}

fn through(target: &str, name: &str) -> Value {
    let access = json!({"gitOps": {"targetRef": {"name": target}, "observe": {"kubeconfigSecretRef": {"name": name}}}});
    emco("Cluster", Some("acme"), name, &json!({"access": access}))
}

#[tokio::test]
async fn the_younger_of_two_targets_on_one_folder_publishes_nothing() {
    let mut rig = settled().await;
    for name in ["first", "second"] {
        rig.hub.put("test", &target(name, &json!({})));
    }
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{TARGETS}/first")).1, "Publishing");
    let (_, reason, message) = rig.ready(&format!("{TARGETS}/second"));
    assert_eq!(reason, "SameFolderTwice");
    assert!(message.contains("acme/first"), "{message}");
    rig.hub.put("test", &target("third", &json!({"folder": "other"})));
    rig.settle().await;
    assert_eq!(rig.ready(&format!("{TARGETS}/third")).1, "Publishing");
}

#[tokio::test]
async fn a_login_that_is_missing_is_named_with_what_it_has_to_hold() {
    let mut rig = settled().await;
    rig.hub.put("test", &target("fleet", &json!({"secretRef": {"name": "fleet-login"}})));
    rig.settle().await;
    let (_, reason, message) = rig.ready(&format!("{TARGETS}/fleet"));
    assert_eq!(reason, "SecretNotFound");
    assert!(message.contains("Secret fleet-login") && message.contains("bearerToken"), "{message}");
}

#[tokio::test]
async fn a_cluster_through_git_holds_its_target_and_waits_for_one() {
    let mut rig = settled().await;
    rig.hub.put("test", &secret("g"));
    rig.hub.put("test", &through("fleet", "g"));
    rig.settle().await;
    rig.answers("g", "uid-g");
    rig.settle().await;
    let (_, reason, message) = rig.ready(&format!("{CLUSTERS}/g"));
    assert_eq!(reason, "TargetNotFound", "{message}");
    rig.hub.put("test", &target("fleet", &json!({})));
    rig.settle().await;
    let held = rig.hub.object(&format!("{TARGETS}/fleet")).unwrap()["status"]["inUse"].clone();
    assert_eq!(held, json!({"total": 1, "holders": ["Cluster/acme/g"]}));
    assert_eq!(rig.hub.object(&format!("{CLUSTERS}/g")).unwrap()["status"]["uid"], "uid-g");
}
