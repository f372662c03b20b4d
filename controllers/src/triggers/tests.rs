//! What wakes whom.

use emco_crds::Cluster;
use emco_crds::cluster::ClusterSpec;
use emco_crds::deployment_intent_group::{DeploymentIntentGroupSpec, IntentRef};
use emco_crds::project::ProjectSpec;
use emco_crds::sync_shard::SyncShardSpec;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::stores::stores;

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

fn listing(name: &str, intents: &[&str]) -> DeploymentIntentGroup {
    let listed = |intent: &&str| IntentRef {
        kind: "GenericActionIntent".to_owned(),
        name: (*intent).to_owned(),
        ..IntentRef::default()
    };
    let intents = intents.iter().map(listed).collect();
    let spec = DeploymentIntentGroupSpec { intents, ..DeploymentIntentGroupSpec::default() };
    let mut dig = DeploymentIntentGroup::new(name, spec);
    dig.metadata.namespace = Some("shop".to_owned());
    dig
}

#[test]
fn an_intent_wakes_the_deployments_that_list_it_and_no_others() {
    let (stores, mut writers) = stores();
    for dig in [listing("both", &["banner", "limits"]), listing("one", &["limits"]), listing("none", &[])] {
        writers.digs.apply_watcher_event(&Event::Apply(dig));
    }
    let from = json!({"kind": "Secret", "name": "login"});
    let actions = json!([{"name": "login", "app": "web", "type": "Add", "add": {"from": from}}]);
    let spec = serde_json::from_value(json!({"actions": actions})).unwrap();
    let mut intent = GenericActionIntent::new("banner", spec);
    intent.metadata.namespace = Some("shop".to_owned());
    writers.intents.apply_watcher_event(&Event::Apply(intent));
    let triggers = Triggers::default();
    triggers.intent(&stores, "shop", "banner");
    assert_eq!(taken(&triggers.digs), ["shop/both"]);
    triggers.intent(&stores, "other", "banner");
    assert_eq!(taken(&triggers.digs), Vec::<String>::new(), "it is of another namespace");
    triggers.source(&stores, "Secret", "shop", "login");
    assert_eq!(
        (taken(&triggers.intents), taken(&triggers.digs)),
        (vec!["shop/banner".to_owned()], vec!["shop/both".to_owned()])
    );
    triggers.source(&stores, "ConfigMap", "shop", "login");
    assert_eq!(taken(&triggers.intents), Vec::<String>::new());
}

#[test]
fn a_deployment_wakes_the_intents_that_it_lists() {
    let (stores, _writers) = stores();
    let triggers = Triggers::default();
    triggers.dig(&stores, &listing("both", &["banner", "limits"]), false);
    assert_eq!(taken(&triggers.intents), ["shop/banner", "shop/limits"]);
}

#[test]
fn a_deployment_wakes_what_it_named_before_once_more() {
    let (stores, _writers) = stores();
    let triggers = Triggers::default();
    triggers.dig(&stores, &listing("both", &["banner", "limits"]), false);
    taken(&triggers.intents);
    triggers.dig(&stores, &listing("both", &["limits"]), false);
    assert_eq!(taken(&triggers.intents), ["shop/banner", "shop/limits"]);
    triggers.dig(&stores, &listing("both", &["limits"]), false);
    assert_eq!(taken(&triggers.intents), ["shop/limits"]);
    triggers.dig(&stores, &listing("both", &["limits"]), true);
    assert_eq!(taken(&triggers.intents), ["shop/limits"]);
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

fn deployment(within: &str, name: &str, release: &str) -> DeploymentIntentGroup {
    serde_json::from_value(json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": name, "namespace": within},
        "spec": {"compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "default"}, "release": release,
            "placement": {"allOf": [{"selector": {}}]}},
        "status": {"revision": 1},
    }))
    .unwrap()
}

fn cloud_on(within: &str, on_clusters: &str) -> LogicalCloud {
    serde_json::from_value(json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud",
        "metadata": {"name": "default", "namespace": within},
        "spec": {"level": "Admin", "namespace": on_clusters},
    }))
    .unwrap()
}

#[test]
fn a_release_wakes_those_that_share_it_and_nobody_else_with_a_revision() {
    let (stores, mut writers) = stores();
    let triggers = Triggers::default();
    let shares = cloud_on("b", "a");
    for cloud in [cloud_on("a", "a"), shares.clone(), cloud_on("c", "c")] {
        stores.cloud_namespaces.note(&cloud, false);
        writers.clouds.apply_watcher_event(&Event::Apply(cloud));
    }
    for (within, name, release) in [
        ("a", "shop", "pos"),
        ("a", "till", "pos"),
        ("a", "web", "web"),
        ("b", "far", "pos"),
        ("c", "own", "pos"),
    ] {
        let dig = deployment(within, name, release);
        writers.digs.apply_watcher_event(&Event::Apply(dig.clone()));
        triggers.dig(&stores, &dig, false);
    }
    let woken = || {
        let mut woken = taken(&triggers.digs);
        woken.sort();
        woken
    };
    woken();
    triggers.dig(&stores, &deployment("a", "till", "pos"), false);
    assert_eq!(woken(), ["a/shop", "a/till", "b/far"]);
    triggers.dig(&stores, &deployment("a", "till", "pos"), true);
    assert_eq!(woken(), ["a/shop", "b/far"]);
    writers.clouds.apply_watcher_event(&Event::Delete(shares.clone()));
    triggers.cloud(&stores, &shares, true);
    assert_eq!(woken(), ["a/shop", "b/far"], "the holder hears that the other cloud is gone");
    triggers.dig(&stores, &deployment("a", "shop", "pos"), false);
    assert_eq!(woken(), ["a/shop"]);
}

#[test]
fn a_shard_wakes_its_owner_and_none_of_another_kind() {
    let (none, web) = (Vec::new(), vec!["shop/web".to_owned()]);
    let cases = [
        ("DeploymentIntentGroup", none.clone(), web.clone()),
        ("LogicalCloud", web, none.clone()),
        ("ClusterNetwork", none.clone(), none),
    ];
    for (kind, clouds, digs) in cases {
        let mut shard = SyncShard::new("s", SyncShardSpec::default());
        shard.metadata.namespace = Some("shop".to_owned());
        (shard.spec.owner.kind, shard.spec.owner.name) = (OwnerKind::from(kind), "web".to_owned());
        let triggers = Triggers::default();
        triggers.shard(&shard);
        assert_eq!((taken(&triggers.clouds), taken(&triggers.digs)), (clouds, digs), "{kind}");
        assert_eq!(taken(&triggers.owners), [format!("shop/{kind}/web")]);
    }
}
