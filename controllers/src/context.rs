//! What all reconcilers share: handles of the process, no state of any object.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::identity::ClusterId;
use emco_engine::snapshot::Installation;

use crate::api::{ApiError, ApiServer};
use crate::chart::ChartStore;
use crate::cluster::Away;
use crate::metrics::Planning;
use crate::namespace_access::Account;
use crate::objects::Told;
use crate::remote::{Admission, Connections, Pool, Target};
use crate::revisions::Revisions;
use crate::stores::Stores;
use crate::world::World;

/// Connections that can also be asked for.
pub trait Connector: Connections {
    /// Wants a cluster reached so.
    fn want(&self, cluster: ClusterId, target: Target);
    /// Forgets a cluster.
    fn forget(&self, cluster: &ClusterId);
    /// Probes now.
    fn poke(&self, cluster: &ClusterId);
    /// Says whether work may be done on the cluster while its identity is this.
    fn judge(&self, cluster: &ClusterId, uid: &str, admission: Admission);
}

impl Connector for Pool {
    fn want(&self, cluster: ClusterId, target: Target) {
        Self::want(self, cluster, target);
    }

    fn forget(&self, cluster: &ClusterId) {
        Self::forget(self, cluster);
    }

    fn poke(&self, cluster: &ClusterId) {
        Self::poke(self, cluster);
    }

    fn judge(&self, cluster: &ClusterId, uid: &str, admission: Admission) {
        Self::judge(self, cluster, uid, admission);
    }
}

/// Handles of the process.
pub struct Context {
    /// The hub, edges, clock and randomness.
    pub world: World,
    /// What the hub's watches saw.
    pub stores: Stores,
    /// Remote clusters.
    pub connector: Arc<dyn Connector>,
    /// Charts.
    pub charts: Arc<ChartStore>,
    /// Keys of this installation.
    pub installation: Arc<Installation>,
    /// Who we are on the hub, where rights in owned namespaces have to be given; `None` for users who have them.
    pub account: Option<Account>,
    /// The operator's namespace: packs live there.
    pub namespace: String,
    /// Of our Lease; written into shards.
    pub epoch: i64,
    /// Revisions written by this process, which the watches may not have seen yet, and their contents.
    pub revisions: Revisions,
    /// Times that planning takes.
    pub planning: Arc<Planning>,
    /// Events of this second.
    pub told: Told,
    /// How long clusters do not answer.
    pub away: Away,
}

impl Context {
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
