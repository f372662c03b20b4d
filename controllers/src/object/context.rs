//! Reaches the hub and the clusters: what all that reads and writes objects of the hub shares, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::identity::ClusterId;
use emco_engine::snapshot::Installation;

use crate::api::account::Account;
use crate::api::pulse::Pulse;
use crate::api::unreachable::UnreachableSince;
use crate::api::world::World;
use crate::api::{ApiError, ApiServer};
use crate::object::events::{EventBudget, EventDedup};
use crate::object::failing::Failing;
use crate::object::newborn::Newborn;
use crate::object::refusals::Refusals;
use crate::publish::Publishers;
use crate::remote::{Admission, Connections, Credentials, Pool, Target};
use crate::stores::Stores;

/// Connections that can also be asked for.
pub trait Connector: Connections {
    /// Wants a cluster reached so.
    fn set_target(&self, cluster: ClusterId, target: Target);
    /// Forgets a cluster.
    fn forget(&self, cluster: &ClusterId);
    /// Probes now.
    fn probe_now(&self, cluster: &ClusterId);
    /// Says whether work may be done on the cluster while its identity is this.
    fn admit(&self, cluster: &ClusterId, uid: &str, admission: Admission);
    /// The cluster as it is reached with credentials that are not in use yet; `None` where they cannot be tried here. What there is goes on
    /// as it is.
    fn try_with(&self, _: &ClusterId, _: Credentials) -> Option<Arc<dyn ApiServer>> {
        None
    }
}

impl Connector for Pool {
    fn set_target(&self, cluster: ClusterId, target: Target) {
        Self::set_target(self, cluster, target);
    }

    fn forget(&self, cluster: &ClusterId) {
        Self::forget(self, cluster);
    }

    fn probe_now(&self, cluster: &ClusterId) {
        Self::probe_now(self, cluster);
    }

    fn admit(&self, cluster: &ClusterId, uid: &str, admission: Admission) {
        Self::admit(self, cluster, uid, admission);
    }

    fn try_with(&self, cluster: &ClusterId, credentials: Credentials) -> Option<Arc<dyn ApiServer>> {
        Some(Self::edge_with(self, cluster, credentials) as Arc<dyn ApiServer>)
    }
}

/// The hub and the clusters, as this process reaches them.
pub struct HubContext {
    /// The hub, edges, clock and randomness.
    pub world: World,
    /// What the hub's watches saw.
    pub stores: Stores,
    /// Remote clusters.
    pub connector: Arc<dyn Connector>,
    /// Branches of clusters that are written through Git.
    pub publishers: Arc<Publishers>,
    /// Keys of this installation.
    pub installation: Arc<Installation>,
    /// Who we are on the hub, where rights in owned namespaces have to be given; `None` for users who have them.
    pub account: Option<Account>,
    /// The operator's namespace: packs live there.
    pub namespace: String,
    /// Of our Lease; written into shards. 0 of a process that writes none.
    pub epoch: i64,
    /// Events of this second.
    pub events: EventDedup,
    /// Events of this hour.
    pub event_budget: EventBudget,
    /// Reconciles that failed when they ran last.
    pub failing: Failing,
    /// What new objects warn of, and is not told yet.
    pub newborn: Newborn,
    /// Whole words of what clusters refuse.
    pub refusals: Arc<Refusals>,
    /// How long clusters do not answer.
    pub unreachable: UnreachableSince,
    /// Shows that this process makes steps, also in long loops.
    pub pulse: Arc<Pulse>,
}

impl HubContext {
    /// As a user reaches the hub, without a Lease.
    pub fn new(
        world: World,
        stores: Stores,
        connector: Arc<dyn Connector>,
        installation: Arc<Installation>,
        namespace: &str,
    ) -> Self {
        Self {
            world,
            stores,
            connector,
            publishers: Arc::default(),
            installation,
            account: None,
            namespace: namespace.to_owned(),
            epoch: 0,
            events: EventDedup::default(),
            event_budget: EventBudget::default(),
            failing: Failing::default(),
            newborn: Newborn::default(),
            refusals: Arc::default(),
            unreachable: UnreachableSince::default(),
            pulse: Arc::default(),
        }
    }

    /// The hub's API server.
    pub fn hub(&self) -> &dyn ApiServer {
        self.world.hub.as_ref()
    }

    /// Now, as conditions have it: whole seconds.
    pub fn now(&self) -> k8s_openapi::jiff::Timestamp {
        k8s_openapi::jiff::Timestamp::from_second(self.world.clock.now_ms() / 1000).unwrap_or_default()
    }
}

/// When to look again without being woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// When something changes.
    Settled,
    /// After this time at the latest.
    After(Duration),
}

impl Outcome {
    /// The same, or after this time if that is sooner.
    #[must_use]
    pub fn at_latest(self, after: Option<Duration>) -> Self {
        match (self, after) {
            (Self::Settled, Some(after)) => Self::After(after),
            (Self::After(before), Some(after)) => Self::After(before.min(after)),
            (same, None) => same,
        }
    }
}

/// Why a reconcile has to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A request to the hub failed.
    #[error("the hub answered: {0}")]
    Hub(#[from] ApiError),
    /// What is stored cannot be read or written.
    #[error("{0}")]
    Stored(String),
    /// Work on a thread ended without a result.
    #[error("planning ended without a result: {0}")]
    Planning(String),
}

/// Result of a reconcile.
pub type Reconciled = Result<Outcome, Failure>;
