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
    pub since_ms: i64,
    /// Clusters that its apps may go to, and what it was planned with.
    pub clusters: BTreeMap<ClusterId, Concern>,
}

/// A cluster that a deployment may go to.
pub(super) struct Concern {
    /// True where requests of Pods count.
    pub counts: bool,
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
