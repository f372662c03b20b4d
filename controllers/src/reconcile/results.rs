//! Reads one result per cluster from an owner's shards, in the order of cluster names.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::{RowStatus, SyncShard};
use emco_engine::identity::ClusterId;
use emco_engine::shard;

/// What is wanted and known of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterResult {
    /// The row as a worker sees it.
    pub row: shard::Row,
    /// What was reported last.
    pub status: Option<RowStatus>,
}

/// Results of all clusters of an owner.
pub fn of(shards: &[Arc<SyncShard>]) -> BTreeMap<ClusterId, ClusterResult> {
    let mut all = BTreeMap::new();
    for stored in shards {
        let known = stored
            .status
            .as_ref()
            .map(|status| shard::decode_status(&stored.spec, status))
            .unwrap_or_default();
        for row in shard::rows(&stored.spec, stored.status.as_ref()) {
            let status = known.get(&row.id).cloned();
            all.insert(row.cluster.clone(), ClusterResult { row, status });
        }
    }
    all
}
