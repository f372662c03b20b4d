//! A Cluster gets another name in Git while deployments run there: the old object is deleted and a new one made, in either order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::life::Life;
use super::rig::{cluster_object, secret};
use super::shop::objects;
use crate::api::ApiServerExt as _;
use crate::memory::MemoryServer;
use crate::remote::Admission;

const CLUSTERS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters";

fn path(cluster: &str) -> String {
    format!("{CLUSTERS}/{cluster}")
}

/// The shop runs on a and b. Cluster a is registered a second time, as c.
async fn registered_again() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    let edge: MemoryServer = life.edges["a"].clone();
    life.rig.attach("c", &edge);
    life.rig.answers("c", "uid-a");
    life.rig.unjudged("c");
    let mut cluster = cluster_object("c");
    cluster["metadata"]["labels"] = json!({"tier": "edge"});
    life.put(&secret("c"));
    life.put(&cluster);
    life
}

fn in_use(life: &Life, cluster: &str) -> Option<String> {
    let object = life.rig.hub.object(&path(cluster))?;
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let held = conditions.into_iter().find(|c| c["type"] == "InUse" && c["status"] == "True")?;
    held["message"].as_str().map(str::to_owned)
}

/// Ours on the edge: the name of its Cluster is no part of an object.
fn there(life: &Life) -> BTreeMap<String, Value> {
    life.on("a")
}

#[tokio::test(start_paused = true)]
async fn a_cluster_renamed_while_it_is_in_use_keeps_its_work_until_the_old_name_is_drained() {
    let mut life = registered_again().await;
    let before = there(&life);
    life.settle().await;
    assert_eq!(life.rig.ready(&path("c")).1, "SameClusterTwice");
    assert!(matches!(life.rig.admission("c"), Admission::Refused { reason: "SameClusterTwice", .. }));

    // Git has the old one no more. It is held, and both say what it waits for.
    life.delete(&path("a")).await;
    life.settle().await;
    let held = in_use(&life, "a").expect("it is held");
    assert!(held.contains("DeploymentIntentGroup/team-a/shop"), "{held}");
    let (_, reason, message) = life.rig.ready(&path("c"));
    assert_eq!(reason, "SameClusterTwice");
    assert!(message.contains("acme/a is being deleted and waits for what runs there"), "{message}");
    assert!(message.contains("spec.scheduling: Drained"), "{message}");
    assert_eq!(there(&life), before, "nothing is removed and nothing written");
    life.restart().await;
    life.settle().await;
    assert_eq!(life.rig.ready(&path("c")).1, "SameClusterTwice", "nor by a process that begins");
    assert_eq!(there(&life), before);

    // Drained, it goes; the new one is who the cluster is now, and has the work.
    life.rig.hub.merge(&path("a"), &json!({"spec": {"scheduling": "Drained"}})).await.unwrap();
    life.settle().await;
    assert!(life.rig.hub.object(&path("a")).is_none(), "{:#}", life.rig.hub.object(&path("a")).unwrap());
    assert_eq!(life.rig.ready(&path("c")).1, "Reachable");
    assert_eq!(life.rig.hub.object(&path("c")).unwrap()["status"]["uid"], "uid-a");
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(there(&life).into_keys().collect::<Vec<_>>(), before.into_keys().collect::<Vec<_>>());
}
