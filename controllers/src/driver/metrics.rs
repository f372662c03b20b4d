//! Serves the metrics of the process as a Prometheus page. No label names an object: the number of series is fixed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::api::planning::Planning;
use crate::api::requests::Requests;
use crate::driver::lease::LeaseFence;
use crate::remote::Pool;
use crate::stores::Stores;
use crate::sync::SyncMetrics;

mod clusters;
mod deployments;
mod lease;
mod process;
mod queue;
mod shards;
mod stored;
mod sync;
mod waiting;

pub use queue::Queue;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReconcileResult {
    /// Nothing left to do.
    Settled,
    /// Looks again by itself.
    Again,
    /// Lost a race with another write, and looks again at once.
    Conflict,
    /// Failed, and is tried again.
    Failed,
}

impl EncodeLabelValue for ReconcileResult {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        let text = match self {
            Self::Settled => "settled",
            Self::Again => "again",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindAndResult {
    kind: &'static str,
    result: ReconcileResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

type Seconds = Family<Kind, Histogram, fn() -> Histogram>;

/// All metrics of the process.
pub struct Metrics {
    registry: RwLock<Registry>,
    /// What every process has, under the usual names.
    process: Registry,
    reconciles: Family<KindAndResult, Counter>,
    seconds: Seconds,
    leader: Gauge,
    epoch: Gauge,
    planning: Arc<Planning>,
    requests: Arc<Requests>,
    queue: Arc<Queue>,
    orphaned: Gauge,
}

impl Metrics {
    /// The registry, with what is known of the build: `version` of the operator.
    pub fn new(version: &'static str, commit: &'static str) -> Arc<Self> {
        let mut registry = Registry::with_prefix("emco");
        registry.register(
            "build",
            "The operator's build",
            Info::new(vec![("version", version), ("commit", commit)]),
        );
        let reconciles = Family::default();
        registry.register("reconciles", "Reconciles that ended, by kind and result", reconciles.clone());
        let seconds = Seconds::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_5, 4.0, 9)));
        let help = "Time of one reconcile, by kind";
        registry.register_with_unit("reconcile_duration", help, Unit::Seconds, seconds.clone());
        let leader = Gauge::default();
        registry.register("leader", "1 while this process holds the lease", leader.clone());
        let epoch = Gauge::default();
        registry.register(
            "lease_epoch",
            "Epoch of the lease this process holds; 0 while it holds none",
            epoch.clone(),
        );
        let orphaned = Gauge::default();
        registry.register(
            "shards_orphaned",
            "Shards whose owner is missing, kept as they are",
            orphaned.clone(),
        );
        let planning = Arc::new(Planning::default());
        planning.register(&mut registry);
        let requests = Arc::new(Requests::default());
        requests.register(&mut registry);
        let queue = Arc::new(Queue::default());
        registry.register_collector(Box::new(queue::Queues(Arc::clone(&queue))));
        let registry = RwLock::new(registry);
        let mut process = Registry::with_prefix("process");
        process.register_collector(Box::new(process::Process::new()));
        Arc::new(Self {
            registry,
            process,
            reconciles,
            seconds,
            leader,
            epoch,
            planning,
            requests,
            queue,
            orphaned,
        })
    }

    /// One reconcile of a kind ended.
    pub fn reconciled(&self, kind: &'static str, result: ReconcileResult, took: Duration) {
        self.reconciles.get_or_create(&KindAndResult { kind, result }).inc();
        self.seconds.get_or_create(&Kind { kind }).observe(took.as_secs_f64());
    }

    /// Whether this process leads, and in which epoch.
    pub fn leading(&self, epoch: Option<i64>) {
        self.leader.set(i64::from(epoch.is_some()));
        self.epoch.set(epoch.unwrap_or_default());
    }

    /// Where plans and renderings are measured.
    pub fn planning(&self) -> Arc<Planning> {
        Arc::clone(&self.planning)
    }

    /// Where requests to the hub and to clusters are measured.
    pub fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.requests)
    }

    /// The queues of the controllers.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Shows how long the lease still holds from now on.
    pub fn watch_lease(&self, fence: Arc<LeaseFence>) {
        self.registry.write().register_collector(Box::new(lease::LeaseLeft(fence)));
    }

    /// Shows the shards and deployments of the hub from now on.
    /// `most` bytes may be stored of revisions.
    pub fn watch_stores(&self, stores: &Stores, most: u64) {
        let mut registry = self.registry.write();
        registry.register_collector(Box::new(shards::Shards::new(stores.shards.clone())));
        registry.register_collector(Box::new(deployments::Deployments(stores.digs.clone())));
        registry.register_collector(Box::new(waiting::Waiting::new(stores.digs.clone())));
        registry
            .register_collector(Box::new(stored::Stored { bytes: Arc::clone(&stores.stored_bytes), most }));
    }

    /// So many shards have no owner.
    pub fn orphaned(&self, shards: usize) {
        self.orphaned.set(i64::try_from(shards).unwrap_or(i64::MAX));
    }

    /// Shows the remote clusters of a pool from now on.
    pub fn watch_pool(&self, pool: &Arc<Pool>) {
        self.registry.write().register_collector(Box::new(clusters::Clusters::new(pool)));
    }

    /// Shows the sync engine's counters from now on.
    pub fn watch_sync(&self, counters: Arc<SyncMetrics>) {
        self.registry.write().register_collector(Box::new(sync::SyncCounters(counters)));
    }

    /// The page, in the `OpenMetrics` text format.
    pub fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        encode_registry(&mut page, &self.process)?;
        encode(&mut page, &self.registry.read())?;
        Ok(page)
    }
}

/// Content type of [`Metrics::page`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[cfg(test)]
mod tests {
    use emco_engine::refusal::Refusal;

    use super::*;
    use crate::api::requests::Target;
    use crate::remote::PoolSettings;
    use crate::remote::dialer::{Dialer, DialerSettings, SystemResolver};
    use crate::remote::testing::Steady;
    use crate::sync::metrics::{Applied, count};

    #[test]
    fn the_page_shows_what_was_counted_with_units_and_fixed_labels() {
        let metrics = Metrics::new("1.2.3", "abc");
        metrics.reconciled("Cluster", ReconcileResult::Settled, Duration::from_millis(3));
        metrics.reconciled("Cluster", ReconcileResult::Failed, Duration::from_millis(5));
        metrics.leading(Some(4));
        let sync = Arc::new(SyncMetrics::default());
        metrics.watch_sync(Arc::clone(&sync));
        sync.applied(Applied::Made);
        sync.applied(Applied::Failed("Forbidden"));
        count(&sync.drifts);
        sync.refused("Conflict");
        sync.refused("Conflict");
        let page = metrics.page().unwrap();
        for line in [
            "emco_build_info{version=\"1.2.3\",commit=\"abc\"} 1",
            "emco_reconciles_total{kind=\"Cluster\",result=\"settled\"} 1",
            "emco_reconciles_total{kind=\"Cluster\",result=\"failed\"} 1",
            "emco_reconcile_duration_seconds_count{kind=\"Cluster\"} 2",
            "emco_leader 1",
            "emco_lease_epoch 4",
            "emco_edge_applies_total{result=\"applied\",reason=\"Made\"} 1",
            "emco_edge_applies_total{result=\"failed\",reason=\"Forbidden\"} 1",
            "emco_edge_drifts_total 1",
            "emco_edge_failures_total{reason=\"Conflict\"} 2",
            "# TYPE process_resident_memory_bytes gauge",
            "# EOF",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        metrics.leading(None);
        assert!(metrics.page().unwrap().contains("emco_leader 0\n"));
    }

    #[tokio::test]
    async fn the_book_has_every_metric_and_no_other() {
        let metrics = Metrics::new("1", "abc");
        metrics.reconciled("Cluster", ReconcileResult::Settled, Duration::from_millis(1));
        let dialer = Dialer::new(DialerSettings::default(), Arc::new(SystemResolver::new().unwrap()));
        let pool = Pool::new(
            PoolSettings::default(),
            dialer,
            Arc::new(Steady::default()),
            Arc::new(Steady::default()),
        );
        metrics.watch_pool(&pool);
        metrics.watch_sync(Arc::new(SyncMetrics::default()));
        metrics.watch_stores(&crate::stores::stores().0, 7);
        metrics.watch_lease(Arc::new(LeaseFence::closed()));
        let refusal = Refusal::of("Resolved", "NoProject", false, "no".to_owned());
        assert!(metrics.planning().plan(|| Err(refusal)).is_err());
        metrics.requests().ended(Target::Hub, "get", Some(200), std::time::Instant::now());
        let page = metrics.page().unwrap();
        // The exposition's TYPE lines have the names without the suffixes of counters and infos; the book has those, too.
        let mut names: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
            .map(|(name, kind)| match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            })
            .collect();
        let book = include_str!("../../../docs/metrics.md");
        let mut written: Vec<String> = book
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(name, _)| name.to_owned())
            .collect();
        names.sort();
        written.sort();
        assert_eq!(written, names);
    }
}
