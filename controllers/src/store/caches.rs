//! Remembers what this process wrote and read of revisions. Harmless if lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::AppContext;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::cache::{Contents, Placements};
use super::pending_report::PendingReports;
use super::plan_details::Answers;
use super::release_proofs::ReleaseProofs;
use super::turns::Turns;
use super::write_cache::WriteCache;
use crate::sync::Sync;

/// How revisions are kept.
#[derive(Clone, Debug)]
pub struct RevisionSettings {
    /// How long a pack is unreferenced before it is deleted.
    pub unreferenced_for: Duration,
    /// Bytes of a shard above which it gives rows to another one.
    pub largest_shard: usize,
    /// For how long, at most, statuses and Events about a revision that was just targeted wait.
    pub report_delay: Duration,
    /// What revisions of all deployments may take together.
    pub stored_bytes: u64,
}

impl Default for RevisionSettings {
    fn default() -> Self {
        Self {
            unreferenced_for: Duration::from_mins(15),
            largest_shard: emco_engine::shard::LARGEST,
            report_delay: Duration::from_millis(250),
            // Three quarters of what etcd has where nobody says more.
            stored_bytes: 1536 * 1024 * 1024,
        }
    }
}

/// Revisions written by this process, and contents read before. Harmless if lost.
#[derive(Default)]
pub struct Revisions {
    pub(crate) settings: RevisionSettings,
    /// Who works on it in the same process.
    pub(crate) workers: Option<Arc<Sync>>,
    /// Newest AppContext by owner hash, while the watch may not have seen it.
    pub(crate) written: Mutex<BTreeMap<String, Arc<AppContext>>>,
    pub(crate) contents: Mutex<Contents>,
    pub(crate) placements: Mutex<Placements>,
    /// Notified when packs may have lost their last reference.
    pub(crate) gc_requested: Notify,
    /// Notified when a revision or a CompositeApp ended.
    pub(crate) gone: Notify,
    pub(crate) write_cache: WriteCache,
    pub(crate) pending_reports: PendingReports,
    /// Names of shards made by this process, by owner hash, until the watch shows them.
    pub(crate) made: Mutex<BTreeMap<String, BTreeSet<String>>>,
    pub(crate) releases: ReleaseProofs,
    /// Digests of what was written down of plans that wait, by owner hash.
    pub(crate) plan_details: Mutex<BTreeMap<String, String>>,
    /// What clusters answered to plans that wait, by owner hash.
    pub(crate) answers: Mutex<BTreeMap<String, Answers>>,
    /// Who asks clusters about plans now.
    pub(crate) askers: Turns,
}

impl Revisions {
    /// With other settings than usual.
    pub fn new(settings: RevisionSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Leaves what it stores to workers of the same process, too: contents that the hub has, and shards as it answered.
    #[must_use]
    pub fn beside(self, workers: Arc<Sync>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// How many revisions' contents are in memory.
    #[cfg(test)]
    pub(crate) fn cached(&self) -> usize {
        self.contents.lock().len()
    }

    /// How long what is at rest is still left alone, since the process just began.
    pub fn calm(&self) -> Option<Duration> {
        self.workers.as_ref()?.calm()
    }

    /// How long a change may still wait for the first answers of clusters, since the process just began.
    pub fn first_answers(&self) -> Option<Duration> {
        self.workers.as_ref()?.first_answers()
    }
}
