//! Counts the events of the sync engine. No labels by object: the number of series is fixed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use emco_engine::health::rules::RuleFailure;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct SyncMetrics {
    /// Objects deleted on clusters.
    pub deleted: AtomicU64,
    /// Objects released without being deleted.
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
    /// Removals with the Cluster's credentials, because the account that made the object may not do it any more.
    pub beyond_account: AtomicU64,
    /// Rows worked on now.
    pub jobs: AtomicU64,
    /// Looks at rows.
    pub passes: AtomicU64,
    /// Rows that are not as wanted, and how long those took that are.
    pub rows: RowTimes,
    /// Kinds whose health rule can be used.
    pub rules_usable: AtomicU64,
    /// Faults of health rules as they are written.
    pub rules_faulty: AtomicU64,
    applied: Mutex<BTreeMap<Applied, u64>>,
    unanswered: Mutex<BTreeMap<&'static str, u64>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

/// Why an object was applied, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Applied {
    /// It was not there.
    Made,
    /// It had other content, or had lost our marks.
    Changed,
    /// Others made it.
    TakenOver,
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
            Self::TakenOver => ("applied", "TakenOver"),
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

    /// Counts one evaluation of a health rule that gave no answer, by its reason (a closed set).
    pub fn unanswered(&self, reason: &'static str) {
        *self.unanswered.lock().entry(reason).or_default() += 1;
    }

    /// Evaluations of health rules without an answer, by reason.
    pub fn unanswered_rules(&self) -> BTreeMap<&'static str, u64> {
        let mut all: BTreeMap<_, _> = RuleFailure::REASONS.into_iter().map(|reason| (reason, 0)).collect();
        all.extend(self.unanswered.lock().iter());
        all
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

/// How long rows take from a wish to its fulfilment.
#[derive(Debug)]
pub struct RowTimes {
    waiting: Mutex<(u64, BTreeMap<u64, Instant>)>,
    took: Histogram,
}

impl Default for RowTimes {
    fn default() -> Self {
        let bounds = [0.05, 0.1, 0.25, 1.0, 4.0, 15.0, 60.0, 240.0, 900.0, 3600.0];
        Self { waiting: Mutex::default(), took: Histogram::new(bounds) }
    }
}

impl RowTimes {
    /// Rows that wait, and for how many seconds the first of them does.
    pub fn waiting(&self) -> (usize, f64) {
        let waiting = self.waiting.lock();
        let longest = waiting.1.values().min().map_or(0.0, |since| since.elapsed().as_secs_f64());
        (waiting.1.len(), longest)
    }

    /// How long rows took that are as wanted.
    pub const fn took(&self) -> &Histogram {
        &self.took
    }
}

/// One row in [`RowTimes`]; it waits no more when this is dropped.
pub struct RowTime {
    metrics: Arc<SyncMetrics>,
    id: Option<u64>,
}

impl RowTime {
    /// A row of which nothing is known.
    pub fn new(metrics: Arc<SyncMetrics>) -> Self {
        Self { metrics, id: None }
    }

    /// There is a new wish, which is fulfilled or not: it waits from now on.
    pub fn wish(&mut self, complete: bool) {
        self.end();
        if !complete {
            let mut waiting = self.metrics.rows.waiting.lock();
            waiting.0 += 1;
            let id = waiting.0;
            waiting.1.insert(id, Instant::now());
            self.id = Some(id);
        }
    }

    /// It is as wanted.
    pub fn complete(&mut self) {
        let Some(since) = self.end() else { return };
        self.metrics.rows.took.observe(since.elapsed().as_secs_f64());
    }

    fn end(&mut self) -> Option<Instant> {
        self.metrics.rows.waiting.lock().1.remove(&self.id.take()?)
    }
}

impl Drop for RowTime {
    fn drop(&mut self) {
        self.end();
    }
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_waits_from_its_wish_until_it_is_complete_or_gone() {
        let metrics = Arc::new(SyncMetrics::default());
        let mut fulfilled = RowTime::new(Arc::clone(&metrics));
        let mut dropped = RowTime::new(Arc::clone(&metrics));
        let mut quiet = RowTime::new(Arc::clone(&metrics));
        fulfilled.wish(false);
        tokio::time::advance(Duration::from_secs(3)).await;
        dropped.wish(false);
        quiet.wish(true);
        assert_eq!(metrics.rows.waiting(), (2, 3.0));
        fulfilled.complete();
        fulfilled.complete();
        quiet.complete();
        assert_eq!(metrics.rows.waiting(), (1, 0.0));
        drop(dropped);
        assert_eq!(metrics.rows.waiting(), (0, 0.0));
        let mut registry = Registry::default();
        registry.register("took", "", metrics.rows.took().clone());
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        assert!(page.contains("took_sum 3.0\ntook_count 1\n"), "{page}");
    }
}
