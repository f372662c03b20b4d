//! Events of the sync engine in, numbers for a metrics registry out. No labels by object: the number of series is fixed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct SyncMetrics {
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
    /// Fields that were left out because a cluster does not know them.
    pub left_out: AtomicU64,
    /// Rows worked on now.
    pub jobs: AtomicU64,
    applied: Mutex<BTreeMap<Applied, u64>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

/// Why an object was applied, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Applied {
    /// It was not there.
    Made,
    /// It had other content, or had lost our marks.
    Changed,
    /// Everything was there before, and somebody deleted or replaced it.
    Restored,
    /// It was refused or failed, for this reason (a closed set).
    Failed(&'static str),
}

impl Applied {
    /// Labels of the metric: result and reason.
    pub const fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::Made => ("applied", "Made"),
            Self::Changed => ("applied", "Changed"),
            Self::Restored => ("applied", "Restored"),
            Self::Failed(reason) => ("failed", reason),
        }
    }
}

impl SyncMetrics {
    /// Counts one server-side apply.
    pub fn applied(&self, applied: Applied) {
        *self.applied.lock().entry(applied).or_default() += 1;
    }

    /// Applies, by what they came to.
    pub fn applies(&self) -> BTreeMap<Applied, u64> {
        self.applied.lock().clone()
    }

    /// Objects that were applied, for whatever reason.
    pub fn applied_objects(&self) -> u64 {
        let failed = |applied: &Applied| matches!(applied, Applied::Failed(_));
        self.applied.lock().iter().filter(|(applied, _)| !failed(applied)).map(|(_, count)| count).sum()
    }

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
