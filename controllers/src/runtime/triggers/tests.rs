//! What wakes whom.

use emco_crds::cluster::ClusterSpec;
use emco_crds::deployment_intent_group::DeploymentIntentGroupSpec;
use emco_crds::project::ProjectSpec;
use emco_crds::sync_shard::SyncShardSpec;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::runtime::stores::stores;

#[test]
fn a_key_does_not_wait_for_one_that_is_queued_again_and_again() {
    let queue = KeyQueue::default();
    queue.enqueue("acme", "a");
    queue.enqueue("shop", "z");
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(queue.take());
        queue.enqueue("acme", "a");
    }
    let names: Vec<_> = taken.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["a", "z", "a"]);
}

fn taken(queue: &KeyQueue) -> Vec<String> {
    std::iter::from_fn(|| queue.take()).map(|(namespace, name)| format!("{namespace}/{name}")).collect()
}

#[test]
fn a_deployment_wakes_the_project_that_counts_it_and_no_other() {
    let (stores, mut writers) = stores();
    for name in ["shop", "till"] {
        writers.projects.apply_watcher_event(&Event::Apply(Project::new(name, ProjectSpec::default())));
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": format!("{name}-here"), "labels": {"emco.io/project": name}},
        });
        writers.namespaces.apply_watcher_event(&Event::Apply(serde_json::from_value(namespace).unwrap()));
    }
    let mut dig = DeploymentIntentGroup::new("web", DeploymentIntentGroupSpec::default());
    dig.metadata.namespace = Some("shop-here".to_owned());
    let triggers = Triggers::default();
    triggers.dig(&stores, &dig, false);
    assert_eq!(taken(&triggers.projects), ["/shop"]);
    dig.metadata.namespace = Some("nobodys".to_owned());
    triggers.dig(&stores, &dig, false);
    assert_eq!(taken(&triggers.projects), Vec::<String>::new());
}

#[test]
fn rows_wake_the_clusters_that_they_name_and_no_others() {
    let (stores, mut writers) = stores();
    for name in ["a", "b", "c"] {
        let mut cluster = Cluster::new(name, ClusterSpec::default());
        cluster.metadata.namespace = Some("acme".to_owned());
        writers.clusters.apply_watcher_event(&Event::Apply(cluster));
    }
    let triggers = Triggers::default();
    let shard = SyncShard::new("s", SyncShardSpec::default());
    triggers.rows(&stores, &["acme/a".to_owned(), "acme/gone".to_owned()].into(), &shard);
    assert_eq!(taken(&triggers.clusters), ["acme/a"]);
}
