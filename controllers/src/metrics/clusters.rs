//! What the pool observed of its clusters goes out as counts by state and reason, read at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::remote::{Connections, Pool, State};

pub(super) struct Clusters(Weak<Pool>);

impl Clusters {
    /// The pool is not kept alive by its metrics.
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self(Arc::downgrade(pool))
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clusters")
    }
}

impl Collector for Clusters {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(pool) = self.0.upgrade() else { return Ok(()) };
        let mut states: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut oldest: Option<i64> = None;
        for cluster in pool.clusters() {
            let Some(observation) = pool.observation(&cluster) else { continue };
            let state = match &observation.state {
                State::Connecting => ("connecting", ""),
                State::Connected => ("connected", ""),
                State::Failed { reason, .. } => ("failed", *reason),
            };
            *states.entry(state).or_default() += 1;
            if state.0 != "connected" {
                oldest = Some(oldest.map_or(observation.since_ms, |oldest| oldest.min(observation.since_ms)));
            }
        }
        let mut family = encoder.encode_descriptor(
            "clusters",
            "Registered clusters, by state and reason",
            None,
            MetricType::Gauge,
        )?;
        for ((state, reason), count) in &states {
            let labels = [("state", *state), ("reason", *reason)];
            ConstGauge::new(f64::from(*count)).encode(family.encode_family(&labels)?)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let seconds = oldest.map_or(0, |since| now.saturating_sub(since).max(0) / 1000);
        let gauge = ConstGauge::new(f64::from(u32::try_from(seconds).unwrap_or(u32::MAX)));
        let help = "Longest time that a registered cluster has not been connected; 0: all are";
        let encoder = encoder.encode_descriptor(
            "cluster_disconnected_longest",
            help,
            Some(&Unit::Seconds),
            gauge.metric_type(),
        )?;
        gauge.encode(encoder)
    }
}
