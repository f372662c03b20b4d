//! Names the objects that refer to another: what a deletion waits for, and what the policy prints.
//!
//! One place, because the admission policy and the finalizers must never disagree. Only workloads hold a cluster: a
//! logical cloud leaves it by itself.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::deployment_intent_group::IntentRef;
use emco_crds::names::object::DEFAULT_LOGICAL_CLOUD;
use emco_crds::{Cluster, DeploymentIntentGroup, InUse, LogicalCloud, OwnerKind, Project, SyncShard};
use kube::core::Resource;

use crate::identity::ClusterId;
use crate::resolve::{is_generic_action, is_hardware, is_traffic};

/// The kind whose shards hold clusters.
const HOLDS: OwnerKind = OwnerKind::DeploymentIntentGroup;

/// `Kind/namespace/name`.
fn text<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    format!("{}/{namespace}/{}", K::kind(&()), meta.name.as_deref().unwrap_or_default())
}

fn texts<'a, K: Resource<DynamicType = ()> + 'a>(objects: impl Iterator<Item = &'a K>) -> Vec<String> {
    let sorted: BTreeSet<String> = objects.map(text).collect();
    sorted.into_iter().collect()
}

/// Who has something on each cluster, or may have. Clusters that nobody holds are absent.
pub fn clusters<'a>(shards: impl IntoIterator<Item = &'a SyncShard>) -> BTreeMap<ClusterId, Vec<String>> {
    let mut holders: BTreeMap<ClusterId, BTreeSet<String>> = BTreeMap::new();
    for shard in shards {
        // What was given up holds nothing any more.
        if shard.spec.owner.kind != HOLDS || shard.spec.abandoned.is_some() {
            continue;
        }
        let namespace = shard.metadata.namespace.as_deref().unwrap_or_default();
        let holder = format!("{HOLDS}/{namespace}/{}", shard.spec.owner.name);
        for id in shard.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster)) {
            holders.entry(id).or_default().insert(holder.clone());
        }
    }
    holders.into_iter().map(|(id, holders)| (id, holders.into_iter().collect())).collect()
}

/// Who has something on one cluster, or may have.
pub fn cluster<'a>(id: &ClusterId, shards: impl IntoIterator<Item = &'a SyncShard>) -> Vec<String> {
    clusters(shards).remove(id).unwrap_or_default()
}

/// What keeps a provider: the clusters of its namespace.
pub fn provider<'a>(namespace: &str, clusters: impl IntoIterator<Item = &'a Cluster>) -> Vec<String> {
    texts(clusters.into_iter().filter(|c| c.metadata.namespace.as_deref() == Some(namespace)))
}

/// Names the clusters that keep a Git target: those that are written to through it, also while they are being deleted.
pub fn git_target<'a>(
    namespace: &str,
    name: &str,
    clusters: impl IntoIterator<Item = &'a Cluster>,
) -> Vec<String> {
    let is_its = |cluster: &&Cluster| {
        cluster.metadata.namespace.as_deref() == Some(namespace)
            && cluster.spec.access.git_target() == Some(name)
    };
    texts(clusters.into_iter().filter(is_its))
}

/// What keeps a project: its groups, and the logical clouds that it did not make itself.
pub fn project<'a>(
    project: &Project,
    namespace: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
    clouds: impl IntoIterator<Item = &'a LogicalCloud>,
) -> Vec<String> {
    let here = |of: Option<&str>| of == Some(namespace);
    let own = |cloud: &&LogicalCloud| {
        project.spec.logical_cloud.is_some() && cloud.metadata.name.as_deref() == Some(DEFAULT_LOGICAL_CLOUD)
    };
    let clouds = clouds.into_iter().filter(|cloud| here(cloud.metadata.namespace.as_deref()) && !own(cloud));
    let digs = digs.into_iter().filter(|dig| here(dig.metadata.namespace.as_deref()));
    let mut holders = texts(digs);
    holders.extend(texts(clouds));
    holders
}

/// What keeps a logical cloud: the groups that name it, also while they are being deleted.
pub fn logical_cloud<'a>(
    cloud: &LogicalCloud,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    let name = cloud.metadata.name.as_deref();
    of(cloud.metadata.namespace.as_deref(), digs, |dig| {
        Some(dig.spec.logical_cloud_ref.name.as_str()) == name
    })
}

/// What keeps a composite app: the groups that name it. One that is being deleted needs only its inventory.
pub fn composite_app<'a>(
    namespace: Option<&str>,
    name: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    of(namespace, digs, |dig| alive(dig) && dig.spec.composite_app_ref.name == name)
}

/// What keeps a profile: the groups that name it. One that is being deleted needs only its inventory.
pub fn profile<'a>(
    namespace: Option<&str>,
    name: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    let names = |dig: &DeploymentIntentGroup| {
        dig.spec.composite_profile_ref.as_ref().is_some_and(|reference| reference.name == name)
    };
    of(namespace, digs, |dig| alive(dig) && names(dig))
}

/// What keeps a `GenericActionIntent`: the groups that list it. One that is being deleted needs only its inventory.
pub fn intent<'a>(
    namespace: Option<&str>,
    name: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    listing(namespace, name, is_generic_action, digs)
}

/// The same of a `HardwareIntent`.
pub fn hardware_intent<'a>(
    namespace: Option<&str>,
    name: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    listing(namespace, name, is_hardware, digs)
}

/// The same of a `TrafficGroupIntent`.
pub fn traffic<'a>(
    namespace: Option<&str>,
    name: &str,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    listing(namespace, name, is_traffic, digs)
}

fn listing<'a>(
    namespace: Option<&str>,
    name: &str,
    is_it: impl Fn(&IntentRef) -> bool,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
) -> Vec<String> {
    let lists = |dig: &DeploymentIntentGroup| {
        dig.spec.intents.iter().any(|listed| is_it(listed) && listed.name == name)
    };
    of(namespace, digs, |dig| alive(dig) && lists(dig))
}

fn alive(dig: &DeploymentIntentGroup) -> bool {
    dig.metadata.deletion_timestamp.is_none()
}

fn of<'a>(
    namespace: Option<&str>,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
    names: impl Fn(&DeploymentIntentGroup) -> bool,
) -> Vec<String> {
    texts(digs.into_iter().filter(|dig| dig.metadata.namespace.as_deref() == namespace && names(dig)))
}

/// For `status.inUse`: all of them counted, the first ten named; `None` when nobody holds the object.
pub fn in_use(holders: &[String]) -> Option<InUse> {
    let total = i64::try_from(holders.len()).unwrap_or(i64::MAX);
    (total > 0).then(|| InUse { total, holders: holders.iter().take(10).cloned().collect() })
}

/// `deletion waits for 2 holders: DeploymentIntentGroup/team-a/shop, ...`, the first ten; `None` when nobody holds.
pub fn waits_for(holders: &[String]) -> Option<String> {
    let shown = holders.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
    match holders.len() {
        0 => None,
        1 => Some(format!("deletion waits for 1 holder: {shown}")),
        many if many > 10 => Some(format!("deletion waits for {many} holders: {shown}, ...")),
        many => Some(format!("deletion waits for {many} holders: {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dig(name: &str, deleted: bool) -> DeploymentIntentGroup {
        let mut object = json!({
            "metadata": {"name": name, "namespace": "team-a"},
            "spec": {
                "compositeAppRef": {"name": "shop"},
                "compositeProfileRef": {"name": "prod"},
                "logicalCloudRef": {"name": "edge"},
                "placement": {"allOf": [{"selector": {}}]},
            },
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-21T07:00:00Z");
        }
        serde_json::from_value(typed(object, "DeploymentIntentGroup")).unwrap()
    }

    fn typed(mut object: serde_json::Value, kind: &str) -> serde_json::Value {
        object["apiVersion"] = json!("emco.io/v1alpha1");
        object["kind"] = json!(kind);
        object
    }

    fn cloud(name: &str) -> LogicalCloud {
        let object = json!({"metadata": {"name": name, "namespace": "team-a"}, "spec": {}});
        serde_json::from_value(typed(object, "LogicalCloud")).unwrap()
    }

    fn shard(kind: &str, name: &str, clusters: &[&str]) -> SyncShard {
        let rows: Vec<_> =
            clusters.iter().enumerate().map(|(i, c)| json!({"id": i + 1, "cluster": c})).collect();
        let object = json!({
            "metadata": {"name": "x", "namespace": "team-a"},
            "spec": {
                "format": 1, "owner": {"kind": kind, "name": name, "uid": "u"},
                "slot": 0, "bits": 0, "epoch": 1, "nextId": 9, "clusters": rows,
            },
        });
        serde_json::from_value(typed(object, "SyncShard")).unwrap()
    }

    #[test]
    fn only_workloads_hold_a_cluster() {
        let shards = [
            shard("DeploymentIntentGroup", "shop", &["acme/a", "acme/b"]),
            shard("DeploymentIntentGroup", "pos", &["acme/a"]),
            shard("LogicalCloud", "edge", &["acme/a", "acme/c"]),
        ];
        let id = |name| ClusterId::new("acme", name);
        assert_eq!(
            cluster(&id("a"), &shards),
            ["DeploymentIntentGroup/team-a/pos", "DeploymentIntentGroup/team-a/shop"]
        );
        assert!(cluster(&id("c"), &shards).is_empty());
    }

    #[test]
    fn a_group_that_is_being_deleted_holds_its_cloud_but_not_its_app() {
        let digs = [dig("shop", true)];
        assert_eq!(logical_cloud(&cloud("edge"), &digs), ["DeploymentIntentGroup/team-a/shop"]);
        assert!(composite_app(Some("team-a"), "shop", &digs).is_empty());
        assert!(profile(Some("team-a"), "prod", &digs).is_empty());
        let digs = [dig("shop", false)];
        assert_eq!(composite_app(Some("team-a"), "shop", &digs).len(), 1);
        assert_eq!(profile(Some("team-a"), "prod", &digs).len(), 1);
        assert!(profile(Some("team-b"), "prod", &digs).is_empty());
    }

    #[test]
    fn an_intent_is_held_by_the_groups_that_list_its_kind_and_name() {
        let mut group = dig("shop", false);
        group.spec.intents = serde_json::from_value(json!([
            {"kind": "TrafficGroupIntent", "name": "front"}, {"kind": "GenericActionIntent", "name": "banner"},
            {"kind": "HardwareIntent", "name": "front"}
        ]))
        .unwrap();
        let held = |name: &str| {
            let all = [group.clone()];
            let of = Some("team-a");
            (
                traffic(of, name, &all).len(),
                intent(of, name, &all).len(),
                hardware_intent(of, name, &all).len(),
            )
        };
        assert_eq!((held("front"), held("banner")), ((1, 0, 1), (0, 1, 0)));
    }

    #[test]
    fn the_cloud_that_a_project_made_does_not_hold_it() {
        let object = json!({"metadata": {"name": "team-a"}, "spec": {"logicalCloud": {"level": "Admin"}}});
        let tenant: Project = serde_json::from_value(typed(object, "Project")).unwrap();
        let clouds = [cloud("default"), cloud("edge")];
        assert_eq!(
            project(&tenant, "team-a", &[dig("shop", false)], &clouds),
            ["DeploymentIntentGroup/team-a/shop", "LogicalCloud/team-a/edge"]
        );
    }

    #[test]
    fn the_sentence_names_ten_at_most() {
        let holders: Vec<_> = (0..12).map(|i| format!("Cluster/acme/{i:02}")).collect();
        assert_eq!(waits_for(&[]), None);
        assert_eq!(waits_for(&holders[..1]).as_deref(), Some("deletion waits for 1 holder: Cluster/acme/00"));
        let sentence = waits_for(&holders).unwrap();
        assert!(sentence.starts_with("deletion waits for 12 holders: Cluster/acme/00, "), "{sentence}");
        assert!(sentence.ends_with("Cluster/acme/09, ..."), "{sentence}");
        assert_eq!(in_use(&holders).unwrap().holders.len(), 10);
    }
}
