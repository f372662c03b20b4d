//! Shows what stored revisions take, and what they may.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::stores::StoredBytes;

pub(super) struct Stored {
    pub bytes: Arc<StoredBytes>,
    pub most: u64,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stored")
    }
}

impl Collector for Stored {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for (name, help, bytes) in [
            ("stored", "What the stored revisions of all deployments take together", self.bytes.all()),
            ("stored_limit", "What they may take", self.most),
        ] {
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(name, help, Some(&Unit::Bytes), kind)?)?;
        }
        Ok(())
    }
}
