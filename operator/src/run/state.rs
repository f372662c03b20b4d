//! Parts of the process come in as they are made; what they are doing goes out as JSON, without secrets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use emco_controllers::driver::lease::{Keeper, LeaseFence};
use emco_controllers::remote::{Connections, Pool, State};
use emco_controllers::sync::{Fence, SyncMetrics};
use serde_json::{Map, Value, json};

use crate::readiness::Readiness;
use crate::version::VERSION;

/// Clusters listed; more are only counted.
const CLUSTERS: usize = 1000;

/// What `/debug/state` shows.
pub struct Shown {
    readiness: Readiness,
    lease: OnceLock<(String, Arc<LeaseFence>)>,
    epoch: OnceLock<i64>,
    work: OnceLock<(Arc<Pool>, Arc<SyncMetrics>)>,
}

impl Shown {
    /// Nothing but readiness is known yet.
    pub const fn new(readiness: Readiness) -> Self {
        Self { readiness, lease: OnceLock::new(), epoch: OnceLock::new(), work: OnceLock::new() }
    }

    /// Takes part in the election.
    pub fn candidate(&self, keeper: &Keeper) {
        let _ = self.lease.set((keeper.identity().to_owned(), keeper.fence()));
    }

    /// Holds the lease.
    pub fn leading(&self, epoch: i64) {
        let _ = self.epoch.set(epoch);
    }

    /// Works.
    pub fn working(&self, pool: Arc<Pool>, sync: Arc<SyncMetrics>) {
        let _ = self.work.set((pool, sync));
    }

    /// Everything, now.
    pub fn show(&self) -> Value {
        let lease = self.lease.get().map(|(identity, fence)| {
            json!({
                "identity": identity,
                "epoch": self.epoch.get(),
                "secondsLeft": fence.left().as_secs(),
                "mayWrite": fence.may_write(),
            })
        });
        json!({
            "version": VERSION.as_str(),
            "missing": self.readiness.missing(),
            "lease": lease,
            "clusters": self.work.get().map(|(pool, _)| clusters(pool)),
            "sync": self.work.get().map(|(_, sync)| counters(sync)),
        })
    }
}

fn clusters(pool: &Pool) -> Value {
    let all = pool.clusters();
    let mut shown = Map::new();
    for cluster in all.iter().take(CLUSTERS) {
        let Some(observation) = pool.observation(cluster) else { continue };
        let (state, reason, message) = match &observation.state {
            State::Connecting => ("connecting", None, None),
            State::Connected => ("connected", None, None),
            State::Failed { reason, message } => ("failed", Some(*reason), Some(message.clone())),
        };
        let value = json!({
            "state": state, "reason": reason, "message": message, "since": observation.since_ms,
            "uid": observation.uid, "admission": format!("{:?}", observation.admission), "version": observation.version, "epoch": observation.epoch,
            "nodesReady": observation.nodes_ready, "nodes": observation.nodes_total, "apis": observation.api_digest,
        });
        shown.insert(cluster.as_str().to_owned(), value);
    }
    json!({"count": all.len(), "byName": shown})
}

fn counters(sync: &SyncMetrics) -> Value {
    json!({
        "applied": sync.applied_objects(),
        "deleted": sync.deleted.load(Ordering::Relaxed),
        "fenced": sync.fenced.load(Ordering::Relaxed),
        "rowsActive": sync.jobs.load(Ordering::Relaxed),
        "failures": sync.refusals(),
    })
}
