//! Exports the lease as this process sees it.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::driver::lease::LeaseFence;

pub(super) struct LeaseLeft(pub Arc<LeaseFence>);

impl fmt::Debug for LeaseLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseLeft")
    }
}

impl Collector for LeaseLeft {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let left = ConstGauge::new(self.0.left().as_secs_f64());
        let help = "Time for which this process still holds the lease if it cannot renew it; 0: it does not";
        left.encode(encoder.encode_descriptor(
            "lease_left",
            help,
            Some(&Unit::Seconds),
            left.metric_type(),
        )?)
    }
}
