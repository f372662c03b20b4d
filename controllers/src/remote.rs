//! Connects to remote clusters and observes them. One task per cluster connects and probes; everybody else only asks
//! what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::apis::ApiList;
use emco_engine::hardware::Read;
use emco_engine::identity::ClusterId;
use futures::stream::BoxStream;

use crate::api::world::Edges;

pub use claim::Claim;
pub use discovery::served;
pub use kubeconfig::{Credentials, KubeconfigError};
pub use nodes::{DetailedNodes, Nodes};
pub use pods::requested;
pub use pool::{Pool, PoolSettings, Target};
pub use transport::{Edge, EdgeSettings, Executed};

pub mod claim;
pub mod dialer;
mod discovery;
pub mod kubeconfig;
mod nodes;
mod pods;
pub mod pool;
mod probe;
mod ready;
#[cfg(test)]
pub(crate) mod testing;
pub mod transport;
pub mod wire;

/// Whether a cluster answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not tried to the end yet.
    #[default]
    Connecting,
    /// The last probe succeeded.
    Connected,
    /// The last probe failed.
    Failed {
        /// `Unauthorized`, `Forbidden`, `TLSFailed`, `DNSFailed`, `Timeout`, `ConnectionRefused`, `AddressNotAllowed`,
        /// `ServerError`: reasons of a Cluster.
        reason: &'static str,
        /// A sentence of at most 256 bytes, without secrets.
        message: String,
    },
}

/// Whether work may be done on a cluster that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It is who it should be, and ours.
    #[default]
    Admitted,
    /// Who it is was not judged yet.
    Awaited,
    /// It is another cluster, or another hub's.
    Refused {
        /// `ClusterReplaced`, `SameClusterTwice`, `ClaimedByAnotherHub`, `HubRestored`.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
}

/// What is known of one cluster. All but `state` is kept while the cluster is unreachable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Whether it answers.
    pub state: State,
    /// UID of its kube-system namespace: who the cluster is.
    pub uid: Option<String>,
    /// Which hub it says it belongs to.
    pub claim: Claim,
    /// Whether work may be done there.
    pub admission: Admission,
    /// It was this installation's before it was registered as it is now: there may be what no inventory names.
    pub returned: bool,
    /// Kubernetes version, such as `v1.36.3`.
    pub version: Option<String>,
    /// Nodes that are ready; `None` while unknown, also where the credential may not list nodes.
    pub nodes_ready: Option<u32>,
    /// Nodes there are.
    pub nodes_total: Option<u32>,
    /// Sums over ready nodes, at most 16 resources.
    pub allocatable: BTreeMap<String, String>,
    /// Resources beyond those, by name only.
    pub other_resources: Vec<String>,
    /// Its nodes in detail, where somebody asked for them ([`Connections::want_nodes`]).
    pub nodes: Read<DetailedNodes>,
    /// What the API server serves.
    pub apis: Option<Arc<ApiList>>,
    /// `sha256:` and 64 hexadecimal digits over `apis`.
    pub api_digest: Option<String>,
    /// Grows when everything must be listed afresh: another store answers behind the address, or an older state of it.
    pub epoch: u64,
    /// When `state` became what it is, Unix milliseconds.
    pub since_ms: i64,
}

impl Observation {
    /// The last probe succeeded.
    pub const fn connected(&self) -> bool {
        matches!(self.state, State::Connected)
    }
}

/// Remote clusters with what is known of them.
pub trait Connections: Edges {
    /// What is known; `None` for a cluster that nobody asked to be connected.
    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>>;

    /// Clusters behind which a kube-system with this UID was seen last, in their order.
    fn seen_as(&self, uid: &str) -> Vec<ClusterId>;

    /// What an API server serves whose list has this digest, where a cluster of this process serves the same.
    fn api_list(&self, _: &str) -> Option<Arc<ApiList>> {
        None
    }

    /// Clusters whose observation changed since the last time the stream named them. Bounded: one entry per cluster.
    fn changes(&self) -> BoxStream<'static, ClusterId>;

    /// How far the cluster's store had come at the last probe; `None` where that is not known.
    fn revision(&self, _: &ClusterId) -> Option<u64> {
        None
    }

    /// The hub's mark there was written, at this resourceVersion. A store with an older one has lost it.
    fn marked(&self, _: &ClusterId, _: u64) {}

    /// The cluster's store is known to have gone back, though no probe may show it: between two of them it was further.
    fn went_back(&self, _: &ClusterId) {}

    /// Wants the nodes of a cluster in detail, with the labels of these keys; or not any more.
    fn want_nodes(&self, _: &ClusterId, _: Option<&Arc<BTreeSet<String>>>) {}

    /// Asks the cluster what it serves, soon; for when a CRD came.
    fn refresh_apis(&self, cluster: &ClusterId);
}
