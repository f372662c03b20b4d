//! Measures how many objects wait to be reconciled, and for how long.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

use crate::api::key_queue::Key;

/// Objects by kind, in the queues of the controllers.
#[derive(Default)]
pub struct Queue {
    kinds: Mutex<BTreeMap<&'static str, Waiting>>,
}

struct Waiting {
    since: BTreeMap<Key, Instant>,
    waited: Histogram,
}

impl Default for Waiting {
    fn default() -> Self {
        let waited = Histogram::new(exponential_buckets(0.000_5, 4.0, 9));
        Self { since: BTreeMap::new(), waited }
    }
}

impl Queue {
    /// An object is to be looked at. What waits already goes on waiting.
    pub fn woken(&self, kind: &'static str, key: Key) {
        self.kinds.lock().entry(kind).or_default().since.entry(key).or_insert_with(Instant::now);
    }

    /// It is being looked at.
    pub fn begun(&self, kind: &'static str, key: &Key) {
        let mut kinds = self.kinds.lock();
        let waiting = kinds.entry(kind).or_default();
        if let Some(since) = waiting.since.remove(key) {
            waiting.waited.observe(since.elapsed().as_secs_f64());
        }
    }

    /// It is no more.
    pub fn gone(&self, kind: &'static str, key: &Key) {
        if let Some(waiting) = self.kinds.lock().get_mut(kind) {
            waiting.since.remove(key);
        }
    }
}

pub(super) struct Queues(pub Arc<Queue>);

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queues")
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let kinds = self.0.kinds.lock();
        let help = "Objects that wait to be looked at, by kind";
        let mut family = encoder.encode_descriptor("reconciles_waiting", help, None, MetricType::Gauge)?;
        for (kind, waiting) in kinds.iter() {
            let count = u32::try_from(waiting.since.len()).unwrap_or(u32::MAX);
            ConstGauge::new(f64::from(count)).encode(family.encode_family(&[("kind", *kind)])?)?;
        }
        let help = "Time for which the longest waiting of them waits, by kind";
        let mut family = encoder.encode_descriptor(
            "reconcile_waiting_longest",
            help,
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (kind, waiting) in kinds.iter() {
            let longest = waiting.since.values().min().map_or(0.0, |since| since.elapsed().as_secs_f64());
            ConstGauge::new(longest).encode(family.encode_family(&[("kind", *kind)])?)?;
        }
        let help = "Time from a change that concerns an object to the begin of its reconcile, by kind";
        let mut family =
            encoder.encode_descriptor("reconcile_wait", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (kind, waiting) in kinds.iter() {
            waiting.waited.encode(family.encode_family(&[("kind", *kind)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn what_is_woken_twice_waits_once_and_what_is_gone_waits_no_more() {
        let queue = Arc::new(Queue::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Queues(Arc::clone(&queue))));
        let page = || {
            let mut page = String::new();
            prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
            page
        };
        let key = |name: &str| ("shop".to_owned(), name.to_owned());
        for name in ["a", "a", "b", "c"] {
            queue.woken("Cluster", key(name));
        }
        queue.gone("Cluster", &key("b"));
        queue.begun("Cluster", &key("a"));
        // Of its own accord, after a pause: nobody woke it.
        queue.begun("Cluster", &key("a"));
        let shown = page();
        for line in
            ["reconciles_waiting{kind=\"Cluster\"} 1.0", "reconcile_wait_seconds_count{kind=\"Cluster\"} 1"]
        {
            assert!(shown.lines().any(|found| found == line), "{line} is not in\n{shown}");
        }
        queue.begun("Cluster", &key("c"));
        assert!(page().contains("reconcile_waiting_longest_seconds{kind=\"Cluster\"} 0.0\n"));
    }
}
