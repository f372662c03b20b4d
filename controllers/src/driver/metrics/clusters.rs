//! What the pool observed of its clusters goes out as counts by state and reason, read at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
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

/// Bounds of the ages: a probe is due every minute.
const AGES: [f64; 8] = [15.0, 30.0, 60.0, 90.0, 180.0, 600.0, 3600.0, 86_400.0];

/// Seconds since each of these times, as a histogram, and the most of them.
fn ages(now_ms: i64, answered_ms: impl Iterator<Item = i64>) -> (Histogram, f64) {
    let ages = Histogram::new(AGES);
    let mut longest = 0.0_f64;
    for at in answered_ms {
        let seconds = now_ms.saturating_sub(at).max(0) / 1000;
        let seconds = f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        ages.observe(seconds);
        longest = longest.max(seconds);
    }
    (ages, longest)
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
        let answered = pool.clusters().into_iter().filter_map(|cluster| pool.answered_ms(&cluster));
        let (ages, longest) = ages(now, answered);
        let help = "Age of the last probe that a registered cluster answered; before the first, since it was registered";
        let family =
            encoder.encode_descriptor("cluster_probe_age", help, Some(&Unit::Seconds), ages.metric_type())?;
        ages.encode(family)?;
        let help = "The oldest of these ages";
        let oldest = ConstGauge::new(longest);
        oldest.encode(encoder.encode_descriptor(
            "cluster_probe_age_longest",
            help,
            Some(&Unit::Seconds),
            oldest.metric_type(),
        )?)?;
        let now = Timestamp::from_millisecond(now).unwrap_or_default();
        let ending = u32::try_from(pool.ending(now)).unwrap_or(u32::MAX);
        let help = "Clusters whose credentials end soon or have ended";
        let ending = ConstGauge::new(f64::from(ending));
        ending.encode(encoder.encode_descriptor(
            "clusters_credentials_ending",
            help,
            None,
            ending.metric_type(),
        )?)?;
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

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn ages_of_probes_are_counted_by_size_and_the_longest_is_told() {
        let now = 1_000_000_000;
        let (ages, longest) =
            ages(now, [now - 1_000, now - 70_000, now - 7_200_000, now + 5_000].into_iter());
        assert!((longest - 7200.0).abs() < f64::EPSILON);
        let mut registry = Registry::default();
        registry.register("age", "Ages", ages);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            "age_bucket{le=\"15.0\"} 2",
            "age_bucket{le=\"90.0\"} 3",
            "age_bucket{le=\"3600.0\"} 3",
            "age_count 4",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
