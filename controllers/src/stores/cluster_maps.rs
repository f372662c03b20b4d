//! Knows which clusters each ConfigMap for members of projects has, what was written into it last, and which ones to look at again.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::Cluster;
use emco_engine::cluster_maps::{SLOTS, name, slot, slot_of};
use parking_lot::Mutex;

use crate::api::key_queue::{Key, KeyQueue};
use crate::object::meta;

/// A ConfigMap as this process wrote or found it last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Of what it was to be then; `None` where it was not to be there.
    pub digest: Option<String>,
    /// Its `resourceVersion`; `None` where it was not there.
    pub version: Option<String>,
}

#[derive(Default)]
struct Inner {
    /// Clusters by the number of their ConfigMap, the same in all projects.
    clusters: BTreeMap<usize, BTreeSet<Key>>,
    known: BTreeMap<Key, Known>,
    /// ConfigMaps that others may have changed since they became known.
    touched: BTreeSet<Key>,
}

/// The index. The watches of clusters and of ConfigMaps keep it, and the only writer of these ConfigMaps.
#[derive(Default)]
pub struct ClusterMaps {
    inner: Mutex<Inner>,
    /// ConfigMaps to look at, by namespace and name.
    pub queue: KeyQueue,
}

impl ClusterMaps {
    /// Takes in what the watch of clusters shows; the number of the cluster's ConfigMap.
    pub fn note(&self, cluster: &Cluster, gone: bool) -> usize {
        let key = (meta::namespace(cluster).to_owned(), meta::name(cluster).to_owned());
        let slot = slot(&key.0, &key.1);
        let mut inner = self.inner.lock();
        let clusters = inner.clusters.entry(slot).or_default();
        if gone {
            clusters.remove(&key);
        } else {
            clusters.insert(key);
        }
        slot
    }

    /// Begins anew with these.
    #[cfg(test)]
    pub fn rebuild(&self, clusters: &[std::sync::Arc<Cluster>]) {
        self.inner.lock().clusters.clear();
        for cluster in clusters {
            self.note(cluster, false);
        }
    }

    /// Clusters of a number, by namespace and name.
    pub fn clusters(&self, slot: usize) -> Vec<Key> {
        self.inner.lock().clusters.get(&slot).into_iter().flatten().cloned().collect()
    }

    /// One ConfigMap of a project's namespace.
    pub fn enqueue(&self, namespace: &str, slot: usize) {
        self.queue.enqueue(namespace, &name(slot));
    }

    /// All of them.
    pub fn enqueue_all(&self, namespace: &str) {
        for slot in 0..SLOTS {
            self.enqueue(namespace, slot);
        }
    }

    /// The watch shows an object of a project's namespace, which may be one of these. `version`: none where it is gone.
    pub fn seen(&self, namespace: &str, map: &str, version: Option<&str>) {
        if slot_of(map).is_none() {
            return;
        }
        let key = (namespace.to_owned(), map.to_owned());
        let mut inner = self.inner.lock();
        if inner.known.get(&key).is_some_and(|known| known.version.as_deref() == version) {
            return;
        }
        inner.touched.insert(key);
        drop(inner);
        self.queue.enqueue(namespace, map);
    }

    /// The watch of a namespace begins anew: what was removed meanwhile is not shown.
    pub fn unseen(&self, namespace: &str) {
        let mut inner = self.inner.lock();
        inner.touched.extend((0..SLOTS).map(|slot| (namespace.to_owned(), name(slot))));
        drop(inner);
        self.enqueue_all(namespace);
    }

    /// What is known of a ConfigMap that is looked at now; `None` where the hub has to be asked.
    pub fn known(&self, key: &Key) -> Option<Known> {
        let mut inner = self.inner.lock();
        if inner.touched.remove(key) {
            inner.known.remove(key);
        }
        inner.known.get(key).cloned()
    }

    /// Remembers what a look came to.
    pub fn remember(&self, key: Key, known: Known) {
        self.inner.lock().known.insert(key, known);
    }

    /// The hub has to be asked the next time.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.inner.lock();
        inner.known.remove(key);
        inner.touched.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: &str) -> Known {
        Known { digest: Some("d".to_owned()), version: Some(number.to_owned()) }
    }

    #[test]
    fn what_was_written_is_not_looked_at_again_and_an_edit_is() {
        let maps = ClusterMaps::default();
        let key = ("team-a".to_owned(), "emco-clusters-3".to_owned());
        maps.remember(key.clone(), version("7"));
        maps.seen("team-a", "emco-clusters-3", Some("7"));
        maps.seen("team-a", "values", Some("8"));
        assert_eq!((maps.queue.take(), maps.known(&key)), (None, Some(version("7"))));
        maps.seen("team-a", "emco-clusters-3", Some("9"));
        assert_eq!(maps.queue.take(), Some(key.clone()));
        // It was edited while it was looked at, so what that look remembers does not count.
        maps.remember(key.clone(), version("7"));
        assert_eq!(maps.known(&key), None);
        maps.remember(key.clone(), version("10"));
        maps.seen("team-a", "emco-clusters-3", None);
        assert_eq!((maps.queue.take(), maps.known(&key)), (Some(key), None));
    }

    #[test]
    fn a_watch_that_begins_anew_has_all_maps_looked_at() {
        let maps = ClusterMaps::default();
        maps.remember(("team-a".to_owned(), name(0)), version("1"));
        maps.unseen("team-a");
        let queued: Vec<Key> = std::iter::from_fn(|| maps.queue.take()).collect();
        assert_eq!(queued.len(), SLOTS);
        assert!(queued.iter().all(|key| maps.known(key).is_none()));
    }
}
