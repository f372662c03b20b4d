//! Names the indexes of stores, and the keys of objects in them.

use std::collections::BTreeSet;

use emco_crds::cluster::Scheduling;
use emco_crds::conditions::types;
use emco_crds::names::label;
use emco_crds::{AppContext, Cluster, Conditioned, SyncShard};
use kube::Resource;

use super::objects::IndexKey;
use crate::object::meta;

/// Clusters by the Secret that they are reached with.
pub const SECRET: &str = "secret";
/// Clusters by the `GitTarget` that they are written to through.
pub const GIT_TARGET: &str = "git target";
/// Clusters by the UID of their kube-system, as their status has it.
pub const IDENTITY: &str = "identity";
/// Clusters that are ready, by namespace.
pub const READY: &str = "ready";
/// Clusters that take nothing new, by namespace.
pub const CORDONED: &str = "cordoned";
/// Shards by the clusters that they have rows of.
pub const ROW: &str = "row";
/// Shards and AppContexts by the hash of their owner, which their label names.
pub const OWNER: &str = "owner";
/// Objects by their `resourceVersion`, with leading zeros.
pub const VERSION: &str = "version";

/// The key of an object of a namespace, in the index of those that name it.
pub fn within(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Keys of a Cluster.
pub fn of_cluster(cluster: &Cluster) -> BTreeSet<IndexKey> {
    let namespace = meta::namespace(cluster);
    let access = &cluster.spec.access;
    let secret = access.kubeconfig().map(|secret| (SECRET, within(namespace, &secret.name)));
    let target = access.git_target().map(|target| (GIT_TARGET, within(namespace, target)));
    let status = cluster.status.as_ref();
    let uid = status.and_then(|status| status.uid.clone()).map(|uid| (IDENTITY, uid));
    let ready = status.is_some_and(|status| status.is_true(types::READY));
    let cordoned = cluster.spec.scheduling != Scheduling::Enabled;
    let counted = [(ready, READY), (cordoned, CORDONED)].into_iter().filter(|(counts, _)| *counts);
    let counted = counted.map(|(_, index)| (index, namespace.to_owned()));
    secret.into_iter().chain(target).chain(uid).chain(counted).collect()
}

/// Keys of a shard.
pub fn of_shard(shard: &SyncShard) -> BTreeSet<IndexKey> {
    let rows = shard.spec.clusters.iter().map(|row| (ROW, row.cluster.clone()));
    rows.chain(owner(shard)).chain([version(shard)]).collect()
}

/// Keys of an AppContext.
pub fn of_context(context: &AppContext) -> BTreeSet<IndexKey> {
    owner(context).into_iter().collect()
}

fn owner<K: Resource>(object: &K) -> Option<IndexKey> {
    let labels = object.meta().labels.as_ref()?;
    labels.get(label::OWNER).map(|hash| (OWNER, hash.clone()))
}

fn version<K: Resource>(object: &K) -> IndexKey {
    (VERSION, format!("{:020}", meta::version(object)))
}

#[cfg(test)]
mod tests {
    use emco_crds::sync_shard::ShardRow;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_found_by_its_secret_its_target_and_its_identity() {
        let cluster = |spec: serde_json::Value, uid: Option<&str>| {
            let cluster = serde_json::from_value(json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "a", "namespace": "acme"},
                "spec": spec, "status": {"uid": uid},
            }));
            of_cluster(&cluster.unwrap())
        };
        let key = |index, key: &str| (index, key.to_owned());
        let direct = json!({"access": {"kubeconfigSecretRef": {"name": "login"}}});
        assert_eq!(cluster(direct, None), [key(SECRET, "acme/login")].into());
        let git = json!({"access": {"gitOps": {"targetRef": {"name": "fleet"},
            "observe": {"kubeconfigSecretRef": {"name": "read"}}}}});
        let all = [key(SECRET, "acme/read"), key(GIT_TARGET, "acme/fleet"), key(IDENTITY, "u")];
        assert_eq!(cluster(git, Some("u")), all.into());
    }

    #[test]
    fn a_shard_is_found_by_its_rows_and_its_version_in_the_order_of_numbers() {
        let mut shard = SyncShard::default();
        shard.metadata.resource_version = Some("9".to_owned());
        let nine = of_shard(&shard);
        shard.metadata.resource_version = Some("10".to_owned());
        assert!(nine < of_shard(&shard));
        let row = |cluster: &str| ShardRow { cluster: cluster.to_owned(), ..ShardRow::default() };
        shard.spec.clusters = ["acme/a", "acme/b"].map(row).into();
        let keys = of_shard(&shard);
        assert!(keys.contains(&(ROW, "acme/b".to_owned())) && keys.len() == 3, "{keys:?}");
    }
}
