//! Proves that nothing was ever sent to the cluster of a row.
//!
//! A worker writes to a cluster only under a row that names the cluster's identity, and the identity is recorded by a write of
//! the shard. So a row without one, as it is read here, was never worked off; and the write that follows is refused if somebody
//! recorded it meanwhile.

use emco_crds::RowStatus;
use emco_crds::sync_shard::ShardRow;
use emco_crds::sync_shard::status::Connectivity;

use super::FOUND_NAME;

/// Whether nothing of this row can be on its cluster. What is held by identity, or is to be searched for, says that something was
/// there in the time of another row; a cluster that was reached may have been written to by an operator that needed no identity.
pub(super) fn is_untouched(row: &ShardRow, status: Option<&RowStatus>) -> bool {
    let from_before = |name: &str| name == FOUND_NAME;
    let own = row.held.iter().all(|held| held.combination.as_deref().is_some_and(|name| !from_before(name)))
        && !row.target.as_deref().is_some_and(from_before);
    // Such a cluster answers, and nothing is sent to it.
    let refused = |status: &RowStatus| {
        let reason = status.error.as_ref().map(|error| error.reason.as_str());
        matches!(reason, Some("ClaimedByAnotherHub" | "SameClusterTwice"))
    };
    let unreached = |status: &RowStatus| {
        status.applied.is_none()
            && status.hooks.is_empty()
            && status.applied_count == 0
            && status.counts.is_none_or(|counts| counts.applied == 0)
            && (status.connectivity != Connectivity::Reachable || refused(status))
    };
    row.uid.is_none() && own && status.is_none_or(unreached)
}
