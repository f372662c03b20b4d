//! Whoever is not woken by a change would have found nothing: after those looked who were, a look of everybody writes nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fleet::Fleet;
use super::rig::*;
use super::shop;
use crate::api::ApiServerExt as _;
use crate::object::context::Outcome;
use crate::reconcile::deployment;

const CLUSTERS: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters";
const PROVIDER: &str = "/apis/emco.io/v1alpha1/clusterproviders/acme";
const TENANT: &str = "/apis/emco.io/v1alpha1/namespaces/team-a";

/// A deployment of the shop with another placement.
fn placed(name: &str, placement: &Value) -> Value {
    let mut dig = shop::deployment("edge");
    dig["metadata"]["name"] = json!(name);
    dig["spec"]["release"] = json!(name);
    dig["spec"]["placement"] = placement.clone();
    dig
}

/// Three clusters, and deployments by label, by name, of all, of some, and of none.
fn objects() -> Vec<Value> {
    let mut all = shop::objects();
    all.extend([secret("c"), shop::labelled("c", &json!({"site": "north"}))]);
    all.extend([
        placed("wide", &json!({"allOf": [{"selector": {}}]})),
        placed("named", &json!({"allOf": [{"provider": "acme", "cluster": "c"}]})),
        placed(
            "one",
            &json!({"anyOf": [{"count": 1, "from": [{"selector": {"matchLabels": {"tier": "edge"}}}]}]}),
        ),
        placed(
            "frozen",
            &json!({"allOf": [{"selector": {"matchLabels": {"tier": "edge"}}}], "membership": "Frozen"}),
        ),
        placed("nowhere", &json!({"allOf": [{"selector": {"matchLabels": {"tier": "far"}}}]})),
    ]);
    all.push(emco("ClusterProvider", None, "other", &json!({})));
    all.push(emco("Project", None, "team-b", &json!({"logicalCloud": {"level": "Standard"}})));
    all
}

/// Deployments by path, without the numbers of clusters that they do not select, and what changes with each write.
fn uncounted(rig: &Rig) -> BTreeMap<String, Value> {
    let mut all = rig.hub.objects();
    all.retain(|_, object| object["kind"] == "DeploymentIntentGroup");
    for object in all.values_mut() {
        for app in object["status"]["apps"].as_array_mut().into_iter().flatten() {
            app.as_object_mut().unwrap().remove("rejected");
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !["resourceVersion", "managedFields"].contains(&key.as_str()));
    }
    all
}

impl Fleet {
    /// A cluster, changed by a person.
    async fn edit(&self, cluster: &str, patch: &Value) {
        self.rig.hub.merge(format!("{CLUSTERS}/{cluster}").as_str(), patch).await.unwrap();
    }

    /// Grants of the provider.
    async fn grant(&self, grants: &Value) {
        self.rig.hub.merge(PROVIDER, &json!({"spec": {"grants": grants}})).await.unwrap();
    }

    /// All that is written when everybody looks. How many clusters a deployment does not select is of its last plan: who selects none of
    /// them is not woken to count them.
    async fn everybody(&mut self) -> Vec<String> {
        let before = uncounted(&self.rig);
        self.rig.hub.take_seen();
        let failures = self.rig.round().await;
        assert!(failures.is_empty(), "{failures:?}");
        let (writes, after) = (self.rig.writes(), uncounted(&self.rig));
        let counts = |path: &str| {
            let object =
                path.strip_suffix("/status").filter(|path| path.contains("/deploymentintentgroups/"));
            object.is_some_and(|object| before.get(object) == after.get(object))
        };
        let found = writes.iter().filter(|seen| !counts(&seen.path));
        found.map(|seen| format!("{:?} {}", seen.method, seen.path)).collect()
    }

    /// Those look who are woken by what changed, and nobody else finds anything.
    async fn concerns_no_others(&mut self, what: &str) {
        self.look().await;
        let found = self.everybody().await;
        assert!(found.is_empty(), "{what}: others found something: {found:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_concern_those_who_select_by_them_and_nobody_else() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    fleet.concerns_no_others("nothing").await;
    for (cluster, labels) in [
        ("c", json!({"tier": "edge"})),
        ("a", json!({"colour": "red"})),
        ("a", json!({"tier": null})),
        ("c", json!({"tier": "far"})),
        ("b", json!({"disk": null})),
        ("c", json!({"disk": "fast", "tier": "edge"})),
    ] {
        fleet.edit(cluster, &json!({"metadata": {"labels": labels}})).await;
        fleet.concerns_no_others(&format!("{labels} of {cluster}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_people_want_of_a_cluster_concerns_those_who_may_be_there() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    for scheduling in ["Cordoned", "Drained", "Enabled"] {
        fleet.edit("b", &json!({"spec": {"scheduling": scheduling}})).await;
        fleet.concerns_no_others(scheduling).await;
    }
    fleet.edit("c", &json!({"spec": {"properties": {"zone": "1"}}})).await;
    fleet.concerns_no_others("properties").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_lost_and_found_concerns_those_who_have_it() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    for cluster in ["a", "c"] {
        fleet.rig.fails(cluster, "Timeout");
        fleet.concerns_no_others(&format!("{cluster} is lost")).await;
        fleet.rig.returns(cluster, &format!("uid-{cluster}"));
        fleet.concerns_no_others(&format!("{cluster} is back")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whether_a_cluster_answers_wakes_those_who_choose_among_several() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    let cloud = format!("{TENANT}/logicalclouds/default");
    let mut status = fleet.rig.hub.object(&cloud).unwrap()["status"].clone();
    for condition in status["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "Ready" {
            condition["status"] = json!("True");
        }
    }
    fleet.rig.hub.set_status(&cloud, &status).unwrap();
    fleet.see();
    fleet.woken();
    fleet.rig.fails("a", "Timeout");
    fleet.hear().await;
    let woken = fleet.woken();
    let deployments = &woken["DeploymentIntentGroup"];
    let is_woken = |name: &str| deployments.contains(&format!("team-a/{name}"));
    assert!(is_woken("one"), "another one may be chosen: {woken:?}");
    assert!(!is_woken("wide") && !is_woken("shop"), "their rows tell: {woken:?}");
    let clouds = &woken["LogicalCloud"];
    assert!(!clouds.contains(&"team-a/default".to_owned()), "it is ready: {woken:?}");
}

#[tokio::test(start_paused = true)]
async fn half_the_fleet_that_goes_and_comes_back_leaves_nothing_undone() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    for _ in 0..2 {
        for cluster in ["a", "b"] {
            fleet.rig.fails(cluster, "ConnectionRefused");
        }
        fleet.concerns_no_others("half is lost").await;
        for cluster in ["b", "a"] {
            fleet.rig.returns(cluster, &format!("uid-{cluster}"));
        }
        fleet.concerns_no_others("half is back").await;
    }
}

#[tokio::test(start_paused = true)]
async fn clusters_that_come_and_go_concern_those_who_may_be_there() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    fleet.rig.answers("d", "uid-d");
    for object in [secret("d"), shop::labelled("d", &json!({"tier": "edge"}))] {
        fleet.rig.hub.put("test", &object);
    }
    fleet.concerns_no_others("d came").await;
    fleet.rig.hub.delete(format!("{CLUSTERS}/d").as_str(), None, None).await.unwrap();
    fleet.concerns_no_others("d is being deleted").await;
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_that_never_answers_is_told_when_its_probe_fails() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    for object in [secret("d"), shop::labelled("d", &json!({"tier": "edge"}))] {
        fleet.rig.hub.put("test", &object);
    }
    fleet.concerns_no_others("d came").await;
    fleet.rig.fails("d", "ConnectionRefused");
    fleet.concerns_no_others("d does not answer").await;
    let dig = fleet.rig.hub.object(&format!("{TENANT}/deploymentintentgroups/wide")).unwrap();
    assert_eq!(dig["status"]["clusters"]["unreachable"], 1, "{dig:#}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_beside_a_dead_cluster_abandons_when_its_time_has_passed() {
    let path = format!("{TENANT}/deploymentintentgroups/shop");
    let mut rig = Rig::new();
    for cluster in ["a", "b", "c"] {
        rig.answers(cluster, &format!("uid-{cluster}"));
    }
    for object in objects() {
        rig.hub.put("test", &object);
    }
    let policy = json!({"spec": {"unreachable": {"action": "Abandon", "after": "1h"}}});
    rig.hub.merge(path.as_str(), &policy).await.unwrap();
    rig.settle().await;
    rig.fails("b", "Timeout");
    rig.settle().await;
    rig.hub.delete(path.as_str(), None, None).await.unwrap();
    rig.settle().await;
    // Another process begins: whether the cluster answers is not known until its first probe has failed.
    rig.forgotten("b");
    let mut fleet = Fleet::begun(rig).await;
    fleet.rig.never_answers("b");
    fleet.hear().await;
    let woken = fleet.woken().remove("DeploymentIntentGroup").unwrap_or_default();
    assert!(woken.contains(&"team-a/shop".to_owned()), "{woken:?}");
    let outcome = deployment::reconcile(&fleet.reach.ctx, "team-a", "shop").await.unwrap();
    let Outcome::After(left) = outcome else { panic!("it has to look again in time: {outcome:?}") };
    fleet.rig.clock.forward(left);
    deployment::reconcile(&fleet.reach.ctx, "team-a", "shop").await.unwrap();
    let is_ledger = |o: &Value| o["metadata"]["namespace"] == "acme" && o["spec"]["owner"]["name"] == "shop";
    assert!(fleet.rig.hub.of_kind("SyncShard").iter().any(is_ledger), "what is left on b is given up");
}

#[tokio::test(start_paused = true)]
async fn a_second_cluster_of_an_api_server_is_free_when_the_first_goes() {
    let mut fleet = Fleet::at_rest(&world()).await;
    fleet.rig.answers("e", "uid-a");
    for object in [secret("e"), cluster_object("e")] {
        fleet.rig.hub.put("test", &object);
    }
    fleet.concerns_no_others("e came").await;
    assert_eq!(fleet.rig.ready(&format!("{CLUSTERS}/e")).1, "SameClusterTwice");
    fleet.edit("a", &json!({"spec": {"scheduling": "Drained"}})).await;
    fleet.concerns_no_others("a is drained").await;
    fleet.edit("a", &json!({"metadata": {"finalizers": null}})).await;
    fleet.rig.hub.remove(&format!("{CLUSTERS}/a"));
    fleet.concerns_no_others("a is gone").await;
    let (_, reason, message) = fleet.rig.ready(&format!("{CLUSTERS}/e"));
    assert_ne!(reason, "SameClusterTwice", "{message}");
}

#[tokio::test(start_paused = true)]
async fn grants_concern_those_whom_they_name_or_named() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    let all = json!([{"name": "all", "projects": ["team-a"], "maxLevel": "Admin"}]);
    let edge = json!([{"name": "edge", "projects": ["team-a"], "maxLevel": "Admin",
        "clusters": [{"selector": {"matchLabels": {"tier": "edge"}}}]}]);
    let others = json!([{"name": "b", "projects": ["team-b"]}]);
    for grants in [&edge, &others, &all] {
        fleet.grant(grants).await;
        fleet.concerns_no_others(&grants.to_string()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn edits_of_a_tenant_concern_what_names_them() {
    let mut fleet = Fleet::at_rest(&objects()).await;
    let cloud = format!("{TENANT}/logicalclouds/default");
    let terms =
        json!({"spec": {"clusters": [{"provider": "acme", "selector": {"matchLabels": {"tier": "edge"}}}]}});
    fleet.rig.hub.merge(cloud.as_str(), &terms).await.unwrap();
    fleet.concerns_no_others("terms of the cloud").await;
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    fleet.rig.hub.merge("/apis/emco.io/v1alpha1/projects/team-a", &labels).await.unwrap();
    fleet.concerns_no_others("labels of the project").await;
    let values = json!({"spec": {"overrideValues": [{"app": "web", "values": {"page": "green"}}]}});
    fleet.rig.hub.merge(format!("{TENANT}/deploymentintentgroups/wide").as_str(), &values).await.unwrap();
    fleet.concerns_no_others("values of a deployment").await;
}
