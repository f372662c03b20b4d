//! Elects one leader by a Lease, and says how long it may write. Whether a lease has run out is judged by how long it
//! was seen unchanged on our own clock, which goes on while the machine sleeps; no two machines' clocks are ever
//! compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::api::boot_clock::BootClock;
use crate::api::world::Clock;
use crate::api::{ApiError, ApiServer};
use crate::sync::Fence;
use emco_engine::path::ApiPath;

mod acquire;
pub mod identity;
mod keep;
mod keeper;
mod record;

pub use crate::api::pulse::{self, Pulse};
pub use identity::Identity;
pub use keeper::{Keeper, Keeping};

/// Times and names of the election.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Where the Lease is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// A lease that was not renewed for so long may be taken by others. Whole seconds.
    pub duration: Duration,
    /// The holder tries to renew for so long before it ends: a lease that nobody took meanwhile is still its own. Not less than
    /// `duration`.
    pub patience: Duration,
    /// Between two renewals, and between two reads of a candidate whose watch fails.
    pub renew: Duration,
    /// Between two tries after a renewal that failed.
    pub retry: Duration,
    /// The last part of the lease, in which nothing is sent. A write that was sent before has ended a second before the lease.
    pub margin: Duration,
}

impl LeaseSettings {
    /// The Lease `emco-operator` in a namespace: 13 s, renewed every 2 s, given up after 30 s.
    pub fn of(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: emco_crds::names::object::LEASE.to_owned(),
            duration: Duration::from_secs(13),
            patience: Duration::from_secs(30),
            renew: Duration::from_secs(2),
            retry: Duration::from_secs(1),
            margin: Duration::from_secs(3),
        }
    }

    fn collection(&self) -> ApiPath {
        ApiPath::new("/apis/coordination.k8s.io/v1/namespaces").then(&self.namespace).then("leases")
    }

    fn path(&self) -> ApiPath {
        self.collection().then(&self.name)
    }
}

/// Takes part in the election.
pub struct Elector {
    hub: Arc<dyn ApiServer>,
    boot: Arc<dyn BootClock>,
    wall: Arc<dyn Clock>,
    identity: Identity,
    settings: LeaseSettings,
    fence: Arc<LeaseFence>,
}

impl Elector {
    /// A candidate. The identity must be nobody else's: see [`Identity::claim`].
    pub fn new(
        hub: Arc<dyn ApiServer>,
        boot: Arc<dyn BootClock>,
        wall: Arc<dyn Clock>,
        identity: Identity,
        settings: LeaseSettings,
    ) -> Self {
        let fence = Arc::new(LeaseFence {
            boot: Arc::clone(&boot),
            until: AtomicU64::new(0),
            margin: settings.margin,
        });
        Self { hub, boot, wall, identity, settings, fence }
    }

    /// Open while the lease is ours for longer than its margin. Closed before the lease was acquired.
    pub fn fence(&self) -> Arc<LeaseFence> {
        Arc::clone(&self.fence)
    }

    /// Who we are in the Lease.
    pub fn identity(&self) -> &str {
        self.identity.as_str()
    }
}

/// The lease, held.
pub struct Leading<'a> {
    elector: &'a Elector,
    record: record::Record,
    epoch: i64,
    /// On the boot clock.
    until: Duration,
    /// The last `renewTime` that was sent.
    said_ms: i64,
}

impl Leading<'_> {
    /// Grows with every takeover, also by a restart of the same process. Writers of a lower one have lost.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }
}

/// Until the end of the lease, when the last write has ended.
const SPARE: Duration = Duration::from_secs(1);

/// Says whether clusters may be written to, and how long that may take.
pub struct LeaseFence {
    boot: Arc<dyn BootClock>,
    /// Milliseconds on the boot clock; 0: not ours.
    until: AtomicU64,
    margin: Duration,
}

impl LeaseFence {
    /// Of a lease that nobody ever held.
    #[cfg(test)]
    pub(crate) fn closed() -> Self {
        Self {
            boot: Arc::new(crate::api::boot_clock::SystemBootClock),
            until: AtomicU64::new(0),
            margin: Duration::ZERO,
        }
    }

    /// How long the lease is still ours.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.until.load(Ordering::Acquire)).saturating_sub(self.boot.now())
    }

    fn set(&self, until: Duration) {
        self.until.store(u64::try_from(until.as_millis()).unwrap_or_default(), Ordering::Release);
    }
}

impl Fence for LeaseFence {
    fn may_write(&self) -> bool {
        self.grant().is_some()
    }

    fn grant(&self) -> Option<Duration> {
        let left = self.left();
        (left > self.margin).then(|| left.saturating_sub(SPARE))
    }
}

/// Why the lease is not ours any more. Whoever held it ends: what is in memory may be of the past.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Somebody else holds it.
    #[error("the lease {lease} was taken by {holder}")]
    Taken {
        /// `namespace/name`
        lease: String,
        /// Identity of the new holder.
        holder: String,
    },
    /// It names nobody: somebody emptied it.
    #[error("the lease {0} was taken from this process: its holderIdentity was emptied by somebody else")]
    Emptied(String),
    /// The object is gone.
    #[error("the lease {0} was deleted")]
    Deleted(String),
    /// It is older than it was: the hub's store went back in time.
    #[error("the lease {0} is older than it was: the hub was restored from a backup")]
    Restored(String),
    /// It could not be renewed in time.
    #[error("the lease {lease} could not be renewed for {seconds} s: {cause}")]
    Expired {
        /// `namespace/name`
        lease: String,
        /// How long it lasts.
        seconds: u64,
        /// Of the first failure since the last renewal.
        cause: String,
    },
    /// Whoever holds it does nothing: for so many seconds the runtime ran no task.
    #[error(
        "the operator's work did not answer for {0} s: the process ends, so that it or another one begins anew"
    )]
    Stuck(u64),
    /// Nobody renews it any more.
    #[error("the thread that keeps the lease ended")]
    Ended,
}

/// A refusal that trying again does not cure, until somebody changes rights: it is worth a sentence in the log.
fn explain(settings: &LeaseSettings, error: &ApiError) -> String {
    match error.code() {
        403 => format!(
            "the operator may not use the lease {}/{}: grant get, list, watch, create and update on leases in that namespace ({error})",
            settings.namespace, settings.name
        ),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
