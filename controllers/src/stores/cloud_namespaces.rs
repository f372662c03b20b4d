//! Finds logical clouds by their namespace on clusters, across all projects, without a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::LogicalCloud;
use parking_lot::Mutex;

use crate::api::key_queue::Key;
use crate::object::meta;

/// What was seen of one cloud last.
type Seen = (String, Option<String>, i64, bool);

#[derive(Default)]
struct Inner {
    clouds: BTreeMap<Key, Seen>,
    by_namespace: BTreeMap<String, BTreeSet<Key>>,
}

/// The index. The watch of logical clouds keeps it.
#[derive(Default)]
pub struct CloudNamespaces(Mutex<Inner>);

impl CloudNamespaces {
    /// Takes in what the watch shows; whether others with the same namespace have to look again.
    pub fn note(&self, cloud: &LogicalCloud, gone: bool) -> bool {
        let key = (meta::namespace(cloud).to_owned(), meta::name(cloud).to_owned());
        let namespace = cloud.cluster_namespace().to_owned();
        let mut inner = self.0.lock();
        if gone {
            inner.clouds.remove(&key);
            inner.forget(&namespace, &key);
            return true;
        }
        let seen =
            (namespace.clone(), cloud.metadata.uid.clone(), meta::generation(cloud), meta::deleting(cloud));
        let before = inner.clouds.insert(key.clone(), seen.clone());
        if let Some((earlier, ..)) = before.as_ref().filter(|(earlier, ..)| *earlier != namespace) {
            inner.forget(earlier, &key);
        }
        inner.by_namespace.entry(namespace).or_default().insert(key);
        before.as_ref() != Some(&seen)
    }

    /// Begins anew with these.
    #[cfg(test)]
    pub fn rebuild(&self, clouds: &[std::sync::Arc<LogicalCloud>]) {
        *self.0.lock() = Inner::default();
        for cloud in clouds {
            self.note(cloud, false);
        }
    }

    /// Clouds that name this namespace, sorted.
    pub fn sharing(&self, namespace: &str) -> Vec<Key> {
        self.0.lock().by_namespace.get(namespace).into_iter().flatten().cloned().collect()
    }
}

impl Inner {
    fn forget(&mut self, namespace: &str, key: &Key) {
        if let Some(keys) = self.by_namespace.get_mut(namespace) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_namespace.remove(namespace);
            }
        }
    }
}
