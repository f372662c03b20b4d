//! Counts and measures the shards of the hub.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use emco_crds::SyncShard;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use crate::stores::Objects;

/// Bounds of sizes. A shard is split when it passes 96 KiB; an API server refuses 1.5 MiB.
const SIZES: [f64; 8] = [4_096.0, 16_384.0, 32_768.0, 65_536.0, 98_304.0, 196_608.0, 524_288.0, 1_048_576.0];

/// Version and size of a shard, by its UID.
type Known = BTreeMap<String, (String, u32)>;

pub(super) struct Shards {
    store: Objects<SyncShard>,
    // A shard is measured once for each of its versions.
    known: Mutex<Known>,
}

impl Shards {
    pub fn new(store: Objects<SyncShard>) -> Self {
        Self { store, known: Mutex::default() }
    }

    fn sizes(&self) -> Vec<u32> {
        let mut before = self.known.lock();
        let mut now = Known::new();
        for shard in self.store.state() {
            let uid = shard.metadata.uid.clone().unwrap_or_default();
            let version = shard.metadata.resource_version.clone().unwrap_or_default();
            let size = match before.get(&uid) {
                Some((measured, size)) if *measured == version => *size,
                _ => size(&shard),
            };
            now.insert(uid, (version, size));
        }
        *before = now;
        before.values().map(|(_, size)| *size).collect()
    }
}

/// As the API server gets it, without the field managers.
fn size(shard: &SyncShard) -> u32 {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // What was read can be written.
    let _ = serde_json::to_writer(&mut counter, shard);
    u32::try_from(counter.0).unwrap_or(u32::MAX)
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shards")
    }
}

impl Collector for Shards {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let sizes = self.sizes();
        let histogram = Histogram::new(SIZES);
        for size in &sizes {
            histogram.observe(f64::from(*size));
        }
        let help = "Sizes of the shards on the hub, as JSON";
        let kind = histogram.metric_type();
        histogram.encode(encoder.encode_descriptor("shard_size", help, Some(&Unit::Bytes), kind)?)?;
        let largest = ConstGauge::new(f64::from(sizes.into_iter().max().unwrap_or_default()));
        let kind = largest.metric_type();
        let help = "Size of the largest shard";
        largest.encode(encoder.encode_descriptor("shard_size_largest", help, Some(&Unit::Bytes), kind)?)
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::SyncShardSpec;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::stores::objects;

    fn shard(uid: &str, version: &str, text: &str) -> SyncShard {
        let mut shard = SyncShard::new(text, SyncShardSpec::default());
        shard.metadata.uid = Some(uid.to_owned());
        shard.metadata.resource_version = Some(version.to_owned());
        shard
    }

    #[test]
    fn a_shard_is_measured_anew_when_its_version_changes_and_forgotten_when_it_goes() {
        let (reader, mut writer) = objects();
        let shards = Shards::new(reader);
        writer.apply_watcher_event(&Event::Apply(shard("a", "1", "x")));
        writer.apply_watcher_event(&Event::Apply(shard("b", "1", "y")));
        let first = shards.sizes();
        assert_eq!(first.len(), 2);
        assert!(first[0] > 50, "{first:?}");
        // The same object under its old version is not measured again, whatever it says.
        let mut longer = shard("a", "1", "x");
        longer.metadata.annotations = Some(BTreeMap::from([("note".to_owned(), "n".repeat(1000))]));
        writer.apply_watcher_event(&Event::Apply(longer.clone()));
        assert_eq!(shards.sizes(), first);
        longer.metadata.resource_version = Some("2".to_owned());
        writer.apply_watcher_event(&Event::Apply(longer.clone()));
        assert!(shards.sizes()[0] > first[0] + 1000);
        writer.apply_watcher_event(&Event::Delete(longer));
        assert_eq!(shards.sizes(), first[1..]);
    }
}
