//! Retargets the rows of an owner, and takes back what was abandoned on clusters that it wants again.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::ShardOrder;
use emco_engine::identity::{ClusterId, Combination};

use super::ledger::{forget, noted};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::rows::{self, Retargeted};
use crate::store::StoreContext;

/// Makes the owner's shards want this and nothing else, as [`rows::retarget()`] does. What was abandoned on a cluster that is wanted again
/// is taken back by its row, and then forgotten by the ledger. Returns whether anything was written.
pub async fn retarget(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    wanted: &BTreeMap<ClusterId, Combination>,
    uids: &BTreeMap<ClusterId, String>,
    in_order: (Option<&ShardOrder>, Option<&BTreeSet<Combination>>),
) -> Result<bool, Failure> {
    let abandoned = || noted(ctx, owner, |id| wanted.contains_key(id));
    let Retargeted { wrote, specs, took_back } =
        rows::retarget(ctx, owner, revision, wanted, uids, in_order, abandoned).await?;
    Ok((took_back && forget(ctx, owner, &specs).await?) || wrote)
}
