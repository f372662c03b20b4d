//! Reads one result per cluster from an owner's shards, in the order of cluster names.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::sync_shard::status::Connectivity;
use emco_crds::{RowStatus, SyncShard};
use emco_engine::conditions::truncate;
use emco_engine::identity::ClusterId;
use emco_engine::shard;

/// Longest words of a row in a sentence about its owner, in bytes.
const LONGEST: usize = 256;

/// What is wanted and known of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterResult {
    /// The row as a worker sees it.
    pub row: shard::Row,
    /// What was reported last.
    pub status: Option<RowStatus>,
}

impl ClusterResult {
    /// The reason why it is not as wanted, after its name; empty where nothing is known to be wrong.
    pub fn why(&self) -> String {
        let Some(status) = &self.status else { return String::new() };
        match &status.error {
            _ if status.connectivity == Connectivity::Unreachable => ", which cannot be reached".to_owned(),
            Some(error) => format!(" ({}: {})", error.reason, truncate(&error.message, LONGEST)),
            None => String::new(),
        }
    }
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
