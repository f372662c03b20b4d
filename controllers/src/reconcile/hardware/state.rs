//! Remembers what deployments need of nodes, and what was read of clusters for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_engine::hardware::{Demands, NodeFacts, Read, Requested};
use emco_engine::identity::ClusterId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::claims::Claims;
use crate::api::key_queue::Key;

/// So long what was given is deducted, if its Pods are not seen before.
pub(super) const RESERVED: Duration = Duration::from_mins(10);

/// An app of a deployment.
pub(super) type App = (Key, String);

/// All that is known.
#[derive(Default)]
pub struct Hardware {
    /// By deployment.
    pub(super) interests: Mutex<BTreeMap<Key, Interest>>,
    /// Requests of Pods, by cluster.
    pub(super) pods: Mutex<BTreeMap<ClusterId, PodsRead>>,
    /// Hardware that this process gives, until the watches show it.
    pub claims: Claims,
    /// Rings when somebody needs something else than before.
    pub(super) changed: Notify,
}

/// The needs of one deployment.
pub(super) struct Interest {
    pub demands: Demands,
    /// Keys of labels.
    pub keys: BTreeSet<String>,
    /// Clusters that its apps may go to, and what it was planned with.
    pub clusters: BTreeMap<ClusterId, Concern>,
}

/// A cluster that a deployment may go to.
pub(super) struct Concern {
    /// True where requests of Pods count.
    pub counts: bool,
    /// It answers, and did not say yet what its nodes have: since then that is waited for.
    pub awaited_since: Option<i64>,
    pub facts: Arc<NodeFacts>,
}

/// The last reading of the Pods of a cluster.
#[derive(Clone, Default)]
pub(super) struct PodsRead {
    pub requested: Read<Arc<Requested>>,
    /// The time of the reading.
    pub at_ms: i64,
    /// Of which state of the cluster.
    pub epoch: u64,
    /// Apps whose Pods are among them.
    pub counted: BTreeSet<App>,
}

impl Interest {
    /// Since when a cluster is waited for that was asked for the same before.
    pub fn awaited_since(&self, cluster: &ClusterId, keys: &BTreeSet<String>, counts: bool) -> Option<i64> {
        let known = self.clusters.get(cluster)?;
        known.awaited_since.filter(|_| known.counts == counts && self.keys == *keys)
    }
}

impl Hardware {
    /// A deployment needs nothing more.
    pub(super) fn forget(&self, key: &Key) {
        if self.interests.lock().remove(key).is_some() {
            self.changed.notify_one();
        }
    }

    /// The wishes about a cluster: nodes with the labels of these keys, and, if true, the requests of Pods.
    pub fn asks(&self, cluster: &ClusterId) -> (BTreeSet<String>, bool) {
        let interests = self.interests.lock();
        let concerned = interests.values().filter_map(|one| Some((&one.keys, one.clusters.get(cluster)?)));
        let (mut keys, mut pods) = (BTreeSet::new(), false);
        for (own, concern) in concerned {
            keys.extend(own.iter().cloned());
            pods |= concern.counts;
        }
        (keys, pods)
    }

    /// Takes in the requests of the Pods of a cluster, as somebody read them.
    pub fn set_pods(&self, cluster: &ClusterId, requested: Read<Arc<Requested>>, epoch: u64) {
        let read = PodsRead { requested, epoch, ..PodsRead::default() };
        self.pods.lock().insert(cluster.clone(), read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_waited_for_since_it_was_asked_whatever_others_come() {
        let id = |name: &str| ClusterId::new("acme", name);
        let concern = |awaited_since| Concern { counts: true, awaited_since, facts: Arc::default() };
        let keys = BTreeSet::from(["gpu".to_owned()]);
        let interest = Interest {
            demands: Demands::default(),
            keys: keys.clone(),
            clusters: [(id("a"), concern(Some(5))), (id("b"), concern(None))].into(),
        };
        let since = |name: &str, counts: bool| interest.awaited_since(&id(name), &keys, counts);
        assert_eq!((since("a", true), since("b", true), since("new", true)), (Some(5), None, None));
        assert_eq!(since("a", false), None, "asked for something else");
        assert_eq!(interest.awaited_since(&id("a"), &BTreeSet::new(), true), None);
    }
}
