//! The sync engine's counters go out, read at each scrape.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::sync::SyncMetrics;

#[derive(Debug)]
pub(super) struct SyncCounters(pub Arc<SyncMetrics>);

impl Collector for SyncCounters {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let sync = &self.0;
        let mut counter = |name: &str, help: &str, unit: Option<&Unit>, value: &AtomicU64| {
            let counter = ConstCounter::new(value.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, unit, counter.metric_type())?)
        };
        counter("edge_deletes", "Objects deleted on clusters", None, &sync.deleted)?;
        counter("edge_releases", "Objects on clusters released without being deleted", None, &sync.released)?;
        counter("edge_hooks", "Hooks that ran to their end", None, &sync.hooks)?;
        counter("edge_lists", "Lists of a kind read from a cluster", None, &sync.lists)?;
        counter("edge_drifts", "Objects found changed by others", None, &sync.drifts)?;
        counter(
            "edge_fields_left_out",
            "Fields of manifests left out because a cluster does not know them",
            None,
            &sync.left_out,
        )?;
        counter(
            "edge_removals_beyond_account",
            "Removals with a Cluster's credentials, because the account that made the object may not do it any more",
            None,
            &sync.beyond_account,
        )?;
        counter("edge_fenced", "Writes not sent because the lease was not ours", None, &sync.fenced)?;
        counter("shard_status_writes", "Shard statuses written", None, &sync.status_writes)?;
        counter(
            "shard_status_written",
            "Size of shard statuses written",
            Some(&Unit::Bytes),
            &sync.status_bytes,
        )?;
        let jobs = i64::try_from(sync.jobs.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        let gauge = ConstGauge::new(jobs);
        let help = "Rows, pairs of an owner and a cluster, that are worked on";
        gauge.encode(encoder.encode_descriptor("rows_active", help, None, gauge.metric_type())?)?;
        let help = "Health rules of users, by state: kinds that are judged by one, and faults that keep others from it";
        let mut family = encoder.encode_descriptor("health_rules", help, None, MetricType::Gauge)?;
        for (state, value) in [("usable", &sync.rules_usable), ("faulty", &sync.rules_faulty)] {
            let value = i64::try_from(value.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
            ConstGauge::new(value).encode(family.encode_family(&[("state", state)])?)?;
        }
        let (count, longest) = sync.rows.waiting();
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
        };
        let waiting = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        gauge("rows_waiting", "Rows that are not as wanted", None, waiting)?;
        let help = "Time for which the first of them has not been as wanted";
        gauge("row_waiting_longest", help, Some(&Unit::Seconds), longest)?;
        let help = "Time from a new wish for a row to everything being applied and removed";
        let took = sync.rows.took();
        took.encode(encoder.encode_descriptor(
            "row_duration",
            help,
            Some(&Unit::Seconds),
            took.metric_type(),
        )?)?;
        let help = "Objects applied to clusters, by result and reason";
        let mut family = encoder.encode_descriptor("edge_applies", help, None, MetricType::Counter)?;
        for (applied, count) in sync.applies() {
            let (result, reason) = applied.labels();
            let labels = [("result", result), ("reason", reason)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        let help = "Requests that clusters refused or that failed, by reason";
        let mut family = encoder.encode_descriptor("edge_failures", help, None, MetricType::Counter)?;
        for (reason, count) in sync.refusals() {
            ConstCounter::new(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        let help = "Evaluations of health rules that gave no answer, by reason";
        let mut family =
            encoder.encode_descriptor("health_rule_failures", help, None, MetricType::Counter)?;
        for (reason, count) in sync.unanswered_rules() {
            ConstCounter::new(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        Ok(())
    }
}
