//! A change costs what it changed: the same with 100 clusters as with 5,000.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::{
    Cluster, ClusterProvider, CompositeApp, CompositeProfile, DeploymentIntentGroup, LogicalCloud, Project,
    SyncShard,
};
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use super::fleet::Fleet;
use super::rig::*;
use crate::reconcile::cluster;
use crate::stores::visits;
use crate::triggers::APART;

mod secrets;
mod told;

const DEPLOYMENTS: usize = 100;
const FEW: usize = 100;
const MANY: usize = 5_000;

fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn edge(number: usize) -> String {
    format!("edge-{number:05}")
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Reachable", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A cluster that was judged. The first hundred are each of a group.
fn cluster_of(number: usize) -> Value {
    let name = edge(number);
    let mut object = cluster_object(&name);
    object["metadata"]["uid"] = json!(format!("c{number}"));
    object["metadata"]["resourceVersion"] = json!("1");
    object["metadata"]["finalizers"] = json!(["emco.io/in-use"]);
    if number < DEPLOYMENTS {
        object["metadata"]["labels"] = json!({"group": number.to_string()});
    }
    object["status"] = json!({
        "provider": "acme", "id": format!("acme/{name}"), "uid": format!("u{number}"),
        "conditions": [condition("Ready", "True"), condition("Reachable", "True")],
    });
    object
}

fn path_of(number: usize) -> String {
    format!("/apis/emco.io/v1alpha1/namespaces/acme/clusters/{}", edge(number))
}

/// Puts a cluster on the hub, as it was judged.
fn store(rig: &Rig, number: usize, object: &Value) {
    let mut applied = object.clone();
    let metadata = applied["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["uid", "resourceVersion"].contains(&key.as_str()));
    applied.as_object_mut().unwrap().remove("status");
    rig.hub.put("test", &applied);
    rig.hub.set_status(&path_of(number), &object["status"]).unwrap();
}

fn tenant(kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = emco(kind, Some("team-a"), name, spec);
    object["metadata"]["uid"] = json!(format!("{kind}-{name}"));
    object["metadata"]["generation"] = json!(1);
    object
}

/// A deployment on the cluster of its group, at rest.
fn deployment_of(number: usize) -> Value {
    let selector = json!({"matchLabels": {"group": number.to_string()}});
    let name = format!("d{number}");
    let mut dig = tenant(
        "DeploymentIntentGroup",
        &name,
        &json!({"compositeAppRef": {"name": name}, "compositeProfileRef": {"name": name},
            "logicalCloudRef": {"name": "default"}, "placement": {"allOf": [{"selector": selector}]}}),
    );
    dig["status"] = json!({"observedGeneration": 1, "revision": 1});
    dig
}

fn cloud_of() -> Value {
    let terms = json!([{"selector": {"matchExpressions": [{"key": "group", "operator": "Exists"}]}}]);
    let mut cloud = tenant("LogicalCloud", "default", &json!({"level": "Admin", "clusters": terms}));
    cloud["status"] = json!({"conditions": [condition("Ready", "True")]});
    cloud
}

fn provider_of(projects: &[&str]) -> ClusterProvider {
    let mut provider = emco(
        "ClusterProvider",
        None,
        "acme",
        &json!({"grants": [{"name": "all", "projects": projects, "maxLevel": "Admin"}]}),
    );
    provider["metadata"]["uid"] = json!("p");
    read(provider)
}

fn shard_of(owner: (&str, &str), clusters: impl IntoIterator<Item = usize>, epoch: i64) -> SyncShard {
    let rows: Vec<Value> = (1..)
        .zip(clusters)
        .map(|(id, number)| json!({"id": id, "cluster": format!("acme/{}", edge(number))}))
        .collect();
    let (kind, name) = owner;
    let spec = json!({"format": 1, "owner": {"kind": kind, "name": name, "uid": "u"}, "slot": 0, "bits": 0, "epoch": epoch,
        "nextId": 1000, "clusters": rows});
    let mut shard = emco("SyncShard", Some("team-a"), &format!("{}-{name}", kind.to_lowercase()), &spec);
    shard["metadata"]["uid"] = json!(format!("s-{kind}-{name}"));
    shard["metadata"]["resourceVersion"] = json!(epoch.to_string());
    read(shard)
}

/// Which of both is listed first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Namespaces,
    Clusters,
}

/// So many clusters and a hundred deployments, each on one of them. The first cluster is on the hub, and answers.
fn fleet_of(clusters: usize) -> Fleet {
    fleet_listed(clusters, First::Namespaces)
}

fn fleet_listed(clusters: usize, first: First) -> Fleet {
    let rig = Rig::new();
    rig.answers(&edge(0), "u0");
    let owned = |label: &str, name: &str| {
        rig.hub.put("test", &namespace(name, &json!({label: name})));
        rig.hub.object(&format!("/api/v1/namespaces/{name}")).unwrap()
    };
    let namespaces = [owned("emco.io/provider", "acme"), owned("emco.io/project", "team-a")];
    rig.hub.put("test", &secret(&edge(0)));
    store(&rig, 0, &cluster_of(0));
    let on_hub = rig.hub.object(&path_of(0)).unwrap();
    let all = [on_hub].into_iter().chain((1..clusters).map(cluster_of)).map(read);
    let mut fleet = Fleet::new(rig);
    if first == First::Clusters {
        fleet.watches.clusters.list(&fleet.reach, all.clone().collect());
    }
    for namespace in namespaces {
        fleet.show_namespace(read(namespace));
    }
    let Fleet { reach, watches, .. } = &mut fleet;
    watches.providers.list(reach, vec![provider_of(&["team-a"])]);
    watches.projects.list(reach, vec![read(emco("Project", None, "team-a", &json!({})))]);
    watches.clouds.list(reach, vec![read(cloud_of())]);
    watches.digs.list(reach, (0..DEPLOYMENTS).map(|number| read(deployment_of(number))).collect());
    for number in 0..DEPLOYMENTS {
        fleet.show_shard(shard_of(("DeploymentIntentGroup", &format!("d{number}")), [number], 1));
    }
    fleet.show_shard(shard_of(("LogicalCloud", "default"), 0..DEPLOYMENTS, 1));
    if first == First::Namespaces {
        fleet.watches.clusters.list(&fleet.reach, all.collect());
    }
    fleet.listed();
    fleet
}

/// The cost of a change: who was woken, what readers were given until the clusters had looked, and requests to the hub.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    woken: BTreeMap<&'static str, Vec<String>>,
    visits: BTreeMap<String, usize>,
    requests: usize,
}

async fn cost(fleet: &mut Fleet) -> Cost {
    let woken = fleet.woken();
    for key in woken.get("Cluster").into_iter().flatten() {
        let (namespace, name) = key.split_once('/').unwrap();
        cluster::reconcile(&fleet.reach.ctx, namespace, name).await.unwrap();
        // What it wrote is seen, and wakes nobody here.
        let written =
            fleet.rig.hub.object(&format!("/apis/emco.io/v1alpha1/namespaces/{namespace}/clusters/{name}"));
        let written = written.map(|object| Event::Apply(read(object)));
        if let Some(event) = written {
            fleet.watches.clusters.feed.apply_watcher_event(&event);
        }
    }
    Cost { woken, visits: visits::take(), requests: fleet.rig.hub.take_seen().len() }
}

fn show_cluster(fleet: &mut Fleet, change: impl FnOnce(&mut Value)) {
    let mut object = fleet.rig.hub.object(&path_of(0)).unwrap();
    change(&mut object);
    fleet.watches.clusters.show(&fleet.reach, read(object), false);
    fleet.reach.triggers.clusters.enqueue("acme", &edge(0));
}

/// The connection of the first cluster shows something else.
fn observe(fleet: &Fleet) {
    let id = emco_engine::identity::ClusterId::new("acme", &edge(0));
    fleet.reach.triggers.cluster_observed(&fleet.reach.ctx, &id);
}

type Happens = (&'static str, fn(&mut Fleet));

/// Every kind of event. (Nobody watches Leases.)
const EVENTS: &[Happens] = &[
    ("a label of a Cluster", |fleet| {
        show_cluster(fleet, |object| object["metadata"]["labels"] = json!({"group": "0", "colour": "red"}));
    }),
    ("the group of a Cluster", |fleet| {
        show_cluster(fleet, |object| object["metadata"]["labels"] = json!({"group": "7"}));
    }),
    ("the group of a Cluster again", |fleet| {
        show_cluster(fleet, |object| object["metadata"]["labels"] = json!({"group": "0"}));
    }),
    ("nodes in the status of a Cluster", |fleet| {
        show_cluster(fleet, |object| object["status"]["nodes"] = json!({"ready": 2, "total": 3}));
    }),
    ("Reachable of a Cluster", |fleet| {
        show_cluster(fleet, |object| {
            object["status"]["conditions"] = json!([condition("Reachable", "False")]);
        });
    }),
    ("a Cluster that is cordoned", |fleet| {
        show_cluster(fleet, |object| object["spec"]["scheduling"] = json!("Cordoned"));
    }),
    ("a connection that is lost", |fleet| {
        fleet.rig.fails(&edge(0), "Timeout");
        observe(fleet);
    }),
    ("a connection that is found", |fleet| {
        fleet.rig.returns(&edge(0), "u0");
        observe(fleet);
    }),
    ("a list of APIs", |fleet| {
        fleet.rig.serves(&edge(0), "sha256:other");
        observe(fleet);
    }),
    ("a Secret", |fleet| {
        let Fleet { reach, .. } = fleet;
        reach.triggers.source(&reach.ctx.stores, "Secret", "acme", &edge(0));
    }),
    ("an object of an edge, which is the status of a shard", |fleet| {
        fleet.show_shard(shard_of(("DeploymentIntentGroup", "d0"), [0], 2));
    }),
    ("rows of a shard", |fleet| fleet.show_shard(shard_of(("DeploymentIntentGroup", "d0"), [], 3))),
    ("values of a deployment", |fleet| {
        let mut dig = deployment_of(0);
        dig["spec"]["overrideValues"] = json!([{"app": "web", "values": {"a": 1}}]);
        fleet.watches.digs.show(&fleet.reach, read::<DeploymentIntentGroup>(dig), false);
    }),
    ("what a deployment names", |fleet| {
        let mut dig = deployment_of(0);
        dig["spec"]["release"] = json!("other");
        fleet.watches.digs.show(&fleet.reach, read::<DeploymentIntentGroup>(dig), false);
    }),
    ("an app", |fleet| {
        let app = tenant("CompositeApp", "d0", &json!({"apps": []}));
        fleet.watches.apps.show(&fleet.reach, read::<CompositeApp>(app), false);
    }),
    ("a profile", |fleet| {
        let profile = tenant("CompositeProfile", "d0", &json!({"apps": []}));
        fleet.watches.profiles.show(&fleet.reach, read::<CompositeProfile>(profile), false);
    }),
    ("the status of a logical cloud", |fleet| {
        let mut cloud = cloud_of();
        cloud["status"]["summary"] = json!({"clusters": "99/100"});
        fleet.watches.clouds.show(&fleet.reach, read::<LogicalCloud>(cloud), false);
    }),
    ("the status of a project", |fleet| {
        let mut project = emco("Project", None, "team-a", &json!({}));
        project["status"] = json!({"namespace": "team-a"});
        fleet.watches.projects.show(&fleet.reach, read::<Project>(project), false);
    }),
    ("labels of a project", |fleet| {
        let mut project = emco("Project", None, "team-a", &json!({}));
        project["metadata"]["labels"] = json!({"team": "a"});
        fleet.watches.projects.show(&fleet.reach, read::<Project>(project), false);
    }),
    ("the status of a provider", |fleet| {
        let mut provider = provider_of(&["team-a"]);
        provider.status = Some(read(json!({"summary": {"clusters": "1/2"}})));
        fleet.watches.providers.show(&fleet.reach, provider, false);
    }),
    ("a grant", |fleet| {
        fleet.watches.providers.show(&fleet.reach, provider_of(&["team-a", "team-b"]), false);
    }),
    ("a Cluster that is gone", |fleet| {
        fleet.watches.clusters.show(&fleet.reach, read::<Cluster>(cluster_of(50)), true);
    }),
    ("a Cluster that came", |fleet| {
        let mut object = cluster_of(50);
        object["metadata"]["uid"] = json!("another");
        fleet.watches.clusters.show(&fleet.reach, read::<Cluster>(object), false);
    }),
];

async fn costs(clusters: usize) -> Vec<(&'static str, Cost)> {
    let mut fleet = fleet_of(clusters);
    let _ = cost(&mut fleet).await;
    let mut all = Vec::new();
    for (event, happens) in EVENTS {
        advance(APART * 2).await;
        happens(&mut fleet);
        all.push((*event, cost(&mut fleet).await));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn an_event_costs_the_same_with_few_clusters_and_with_many() {
    let (few, many) = (costs(FEW).await, costs(MANY).await);
    for ((event, few), (_, many)) in few.into_iter().zip(many) {
        assert_eq!(few, many, "{event} costs more with {MANY} clusters than with {FEW}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_that_nobody_selects_by_wakes_only_who_has_the_cluster() {
    let mut all = costs(FEW).await;
    all.truncate(2);
    let woken =
        |(_, cost): &(&str, Cost)| cost.woken.get("DeploymentIntentGroup").cloned().unwrap_or_default();
    assert_eq!(woken(&all[0]), ["team-a/d0"]);
    assert_eq!(woken(&all[1]), ["team-a/d0", "team-a/d7"], "who had it, and who gets it");
}

#[tokio::test(start_paused = true)]
async fn a_start_visits_each_cluster_a_few_times_and_wakes_none() {
    let mut visited = Vec::new();
    for clusters in [500, MANY] {
        visits::take();
        let mut fleet = fleet_of(clusters);
        let visits: usize = visits::take().values().sum();
        visited.push(visits);
        assert!(!fleet.woken().contains_key("Cluster"));
        // The watch is cut, and all is listed anew: one of them changed meanwhile.
        let first = fleet.rig.hub.object(&path_of(0)).unwrap();
        let others = (1..clusters).map(cluster_of);
        let mut objects: Vec<Cluster> = [first].into_iter().chain(others).map(read).collect();
        objects[3].metadata.labels = Some([("group".to_owned(), "4".to_owned())].into());
        fleet.watches.clusters.list(&fleet.reach, objects);
        let woken = fleet.woken();
        assert_eq!(woken["DeploymentIntentGroup"], ["team-a/d3", "team-a/d4"]);
        assert!(!woken.contains_key("Cluster"), "{woken:?}");
    }
    let (few, many) = (visited[0], visited[1]);
    assert!(many <= few * MANY / 500, "{few} objects with 500 clusters, {many} with {MANY}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_flaps_every_second_wakes_others_twice_in_half_a_minute() {
    let mut fleet = fleet_of(FEW);
    fleet.woken();
    let (mut woken, mut who) = (0, BTreeSet::new());
    for second in 0..300 {
        let status = if second % 2 == 0 { "False" } else { "True" };
        show_cluster(&mut fleet, |object| {
            object["status"]["conditions"] = json!([condition("Reachable", status)]);
        });
        sleep(std::time::Duration::from_secs(1)).await;
        while let Some(change) = fleet.reach.triggers.pace.take_due() {
            fleet.reach.triggers.cluster(&fleet.reach.ctx, &change);
        }
        let deployments = fleet.woken().remove("DeploymentIntentGroup");
        woken += usize::from(deployments.is_some());
        who.extend(deployments.unwrap_or_default());
    }
    assert!((10..=22).contains(&woken), "{woken} times in five minutes");
    assert_eq!(who, ["team-a/d0".to_owned()].into(), "nobody else has it, or selects it");
}

#[tokio::test(start_paused = true)]
async fn clusters_that_come_and_go_all_at_once_cost_each_what_one_costs() {
    let mut visited = Vec::new();
    for clusters in [500, 2_000] {
        let mut fleet = fleet_of(FEW);
        fleet.woken();
        visits::take();
        let Fleet { reach, watches, .. } = &mut fleet;
        for number in FEW..FEW + clusters {
            watches.clusters.show(reach, read(cluster_of(number)), false);
        }
        for number in FEW..FEW + clusters {
            let mut object = cluster_of(number);
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            watches.clusters.show(reach, read(object.clone()), false);
            watches.clusters.show(reach, read(object), true);
        }
        visited.push(visits::take().values().sum::<usize>());
        let woken = fleet.woken();
        assert!(!woken.contains_key("DeploymentIntentGroup"), "no one selects them: {woken:?}");
    }
    let (few, many) = (visited[0], visited[1]);
    assert!(many <= few * 4, "{few} objects for 500 clusters, {many} for 2,000");
}

#[tokio::test(start_paused = true)]
async fn a_label_of_every_cluster_wakes_each_deployment_once() {
    let mut fleet = fleet_of(1_000);
    fleet.woken();
    let Fleet { reach, watches, .. } = &mut fleet;
    for number in 0..1_000 {
        let mut object = cluster_of(number);
        object["metadata"]["labels"]["colour"] = json!("red");
        watches.clusters.show(reach, read(object), false);
    }
    let woken = fleet.woken();
    assert_eq!(woken["DeploymentIntentGroup"].len(), DEPLOYMENTS, "those on them, each once for all");
    assert_eq!(woken["Project"], ["/team-a"]);
    assert!(!woken.contains_key("Cluster"), "{woken:?}");
}
