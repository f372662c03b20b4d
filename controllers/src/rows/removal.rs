//! Removes everything of an owner: from the clusters first, then what is stored.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::names::finalizer;
use emco_crds::{AppContext, SyncShard};
use emco_engine::snapshot::uids;

use super::retarget;
use crate::api::ApiServerExt;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{finalizers, meta};
use crate::store::{StoreContext, contexts, own_shards, remove_context, sweep_explanations};
use crate::tenancy::facts;

/// How far an owner's removal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Clusters still have rows.
    Waiting,
    /// The hub has shards of the owner that the watch did not show yet: to be looked at again soon.
    Unseen,
    /// Nothing is left on any cluster, nor stored.
    Done,
}

/// Removes everything of an owner: from clusters first, then what was stored. `keep_history` keeps the AppContexts and packs,
/// for an owner that only terminates and may come back.
///
/// That nothing is left is believed when the hub says so: the watch may be behind what this process, or the one before it, made.
pub async fn remove_all(ctx: &StoreContext, owner: &Owner, keep_history: bool) -> Result<Removal, Failure> {
    let revision = contexts(ctx, owner).first().map_or(1, |context| context.spec.revision);
    let uids = uids(&facts::clusters(ctx));
    retarget(ctx, owner, revision, &BTreeMap::new(), &uids, (None, None), BTreeMap::new).await?;
    let shards = own_shards::stored(ctx, owner).await?;
    let waiting = if own_shards::unseen(ctx, owner) { Removal::Unseen } else { Removal::Waiting };
    if shards.iter().any(|shard| !shard.spec.clusters.is_empty()) {
        return Ok(waiting);
    }
    for shard in &shards {
        remove_shard(ctx, shard).await?;
    }
    if !shards.is_empty() {
        return Ok(waiting);
    }
    let left: Vec<SyncShard> = own_shards::live(ctx, owner).await?;
    if !left.is_empty() {
        // From now on they are read from the hub, until the watch shows them.
        let names = left.iter().map(|shard| meta::name(shard).to_owned());
        ctx.revisions.made.lock().entry(owner.hash.clone()).or_default().extend(names);
        return Ok(Removal::Unseen);
    }
    if !keep_history {
        for context in &own_shards::live::<AppContext>(ctx, owner).await? {
            remove_context(ctx, context).await?;
        }
        sweep_explanations(ctx, owner, &BTreeSet::new()).await?;
        ctx.revisions.placements.lock().keep(&owner.hash, &BTreeSet::new());
        ctx.revisions.written.lock().remove(&owner.hash);
        ctx.revisions.pending_reports.forget(&owner.hash);
    }
    Ok(Removal::Done)
}

/// Whether a shard of an owner still has rows: something of it may be on a cluster.
pub async fn has_rows(ctx: &StoreContext, owner: &Owner) -> Result<bool, Failure> {
    Ok(own_shards::stored(ctx, owner).await?.iter().any(|shard| !shard.spec.clusters.is_empty()))
}

pub(crate) async fn remove_shard(ctx: &StoreContext, shard: &SyncShard) -> Result<(), Failure> {
    if !meta::deleting(shard) {
        ctx.hub()
            .delete(meta::path(shard), Some(meta::uid(shard)), shard.metadata.resource_version.as_deref())
            .await?;
        return Ok(());
    }
    finalizers::remove(ctx, shard, finalizer::INVENTORY).await?;
    Ok(())
}
