//! Finds the shards of an owner, and those that have a row of one cluster, without a walk over all shards.

use std::collections::{BTreeMap, BTreeSet};

use emco_engine::identity::ClusterId;

use super::inbox::ShardKey;
use crate::object::Owner;

/// Owners of the shards that are known.
#[derive(Default)]
pub(super) struct Owners {
    by_hash: BTreeMap<String, Shards>,
    /// Hashes by the owners' namespace on the hub.
    by_namespace: BTreeMap<String, BTreeSet<String>>,
}

/// The shards of one owner.
#[derive(Default)]
struct Shards {
    all: BTreeSet<ShardKey>,
    /// More than one while a row moves.
    by_cluster: BTreeMap<ClusterId, BTreeSet<ShardKey>>,
}

impl Owners {
    /// A shard has rows of these clusters, besides others that are known.
    pub fn know<'a>(
        &mut self,
        owner: &Owner,
        key: &ShardKey,
        clusters: impl IntoIterator<Item = &'a ClusterId>,
    ) {
        if !self.by_hash.contains_key(&owner.hash) {
            self.by_namespace.entry(owner.namespace.clone()).or_default().insert(owner.hash.clone());
        }
        let shards = self.by_hash.entry(owner.hash.clone()).or_default();
        shards.all.insert(key.clone());
        for cluster in clusters {
            let of_cluster = shards.by_cluster.entry(cluster.clone()).or_default();
            if !of_cluster.contains(key) {
                of_cluster.insert(key.clone());
            }
        }
    }

    /// A shard has no rows of these clusters any more.
    pub fn forget_rows<'a>(
        &mut self,
        owner: &Owner,
        key: &ShardKey,
        clusters: impl IntoIterator<Item = &'a ClusterId>,
    ) {
        let Some(shards) = self.by_hash.get_mut(&owner.hash) else { return };
        for cluster in clusters {
            if let Some(of_cluster) = shards.by_cluster.get_mut(cluster) {
                of_cluster.remove(key);
                if of_cluster.is_empty() {
                    shards.by_cluster.remove(cluster);
                }
            }
        }
    }

    /// A shard is no more. It had rows of these clusters.
    pub fn forget<'a>(
        &mut self,
        owner: &Owner,
        key: &ShardKey,
        clusters: impl IntoIterator<Item = &'a ClusterId>,
    ) {
        self.forget_rows(owner, key, clusters);
        let Some(shards) = self.by_hash.get_mut(&owner.hash) else { return };
        shards.all.remove(key);
        if !shards.all.is_empty() {
            return;
        }
        self.by_hash.remove(&owner.hash);
        if let Some(hashes) = self.by_namespace.get_mut(&owner.namespace) {
            hashes.remove(&owner.hash);
            if hashes.is_empty() {
                self.by_namespace.remove(&owner.namespace);
            }
        }
    }

    /// All shards of an owner.
    pub fn all_shards(&self, hash: &str) -> impl Iterator<Item = &ShardKey> {
        self.by_hash.get(hash).into_iter().flat_map(|shards| &shards.all)
    }

    /// Those with a row of this cluster.
    pub fn shards(&self, hash: &str, cluster: &ClusterId) -> Vec<ShardKey> {
        let found = self.by_hash.get(hash).and_then(|shards| shards.by_cluster.get(cluster));
        found.into_iter().flatten().cloned().collect()
    }

    /// Clusters that an owner has rows of.
    pub fn clusters(&self, hash: &str) -> impl Iterator<Item = &ClusterId> {
        self.by_hash.get(hash).into_iter().flat_map(|shards| shards.by_cluster.keys())
    }

    /// Owners of a namespace, as their hashes.
    pub fn within(&self, namespace: &str) -> impl Iterator<Item = &String> {
        self.by_namespace.get(namespace).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::OwnerKind;
    use emco_engine::snapshot::Installation;

    use super::*;

    fn owner(namespace: &str, name: &str) -> Owner {
        let of = Installation { id: "inst".to_owned(), digest_key: [7; 32], random_key: [8; 32] };
        Owner::new(&of, OwnerKind::DeploymentIntentGroup, namespace, name, "u")
    }

    fn key(name: &str) -> ShardKey {
        ("team-a".to_owned(), name.to_owned())
    }

    fn clusters(names: &[&str]) -> Vec<ClusterId> {
        names.iter().map(|name| ClusterId::new("acme", name)).collect()
    }

    #[test]
    fn shards_are_found_by_owner_and_cluster_while_they_have_the_row() {
        let (mut owners, shop) = (Owners::default(), owner("team-a", "shop"));
        let [a, b] = [&clusters(&["a"])[0], &clusters(&["b"])[0]].map(ClusterId::clone);
        owners.know(&shop, &key("s0"), &clusters(&["a", "b"]));
        owners.know(&shop, &key("s1"), &clusters(&["b"]));
        owners.know(&owner("team-b", "shop"), &key("t"), &clusters(&["a"]));
        assert_eq!(owners.shards(&shop.hash, &a), [key("s0")]);
        assert_eq!(owners.shards(&shop.hash, &b), [key("s0"), key("s1")], "the row moves");
        assert_eq!(owners.clusters(&shop.hash).count(), 2);
        owners.forget_rows(&shop, &key("s0"), [&b]);
        assert_eq!(owners.shards(&shop.hash, &b), [key("s1")]);
        assert_eq!(owners.all_shards(&shop.hash).count(), 2);
        assert_eq!(owners.within("team-a").collect::<Vec<_>>(), [&shop.hash]);
        owners.forget(&shop, &key("s0"), [&a]);
        owners.forget(&shop, &key("s1"), [&b]);
        assert_eq!(owners.all_shards(&shop.hash).count() + owners.within("team-a").count(), 0);
        let other = owner("team-b", "shop");
        owners.forget(&other, &key("t"), [&a]);
        assert!(owners.by_hash.is_empty() && owners.by_namespace.is_empty());
    }
}
