//! Events of the sync engine in, numbers for a metrics registry out. No labels by object: the number of series is fixed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct SyncMetrics {
    /// Server-side applies that were answered with an object.
    pub applied: AtomicU64,
    /// Objects deleted on clusters.
    pub deleted: AtomicU64,
    /// Objects let go of without being deleted.
    pub released: AtomicU64,
    /// Hooks that ran to their end, well or not.
    pub hooks: AtomicU64,
    /// Shard statuses written.
    pub status_writes: AtomicU64,
    /// Bytes of them.
    pub status_bytes: AtomicU64,
    /// Lists of a kind read from a cluster.
    pub lists: AtomicU64,
    /// Objects of ours that others changed, found so far.
    pub drifts: AtomicU64,
    /// Writes not sent because the lease was not ours.
    pub fenced: AtomicU64,
    /// Rows worked on now.
    pub jobs: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl SyncMetrics {
    /// Counts one refused or failed request by its reason (a closed set).
    pub fn refused(&self, reason: &'static str) {
        *self.refused.lock().entry(reason).or_default() += 1;
    }

    /// Refusals by reason.
    pub fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().clone()
    }
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
