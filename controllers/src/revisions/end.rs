//! The end of revisions: old ones beyond the history, and all of an owner that terminates, once nothing is left on clusters.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::app_context::PackKind;
use emco_crds::{AppContext, SyncShard};

use super::{INVENTORY, Owner, contexts, explain, pack_collection, retarget, shards};
use crate::api::ApiServerExt;
use crate::context::{Context, Failure};
use crate::objects;

/// How far an owner's removal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Clusters still have rows.
    Waiting,
    /// Nothing is left on any cluster, nor stored.
    Done,
}

/// Removes everything of an owner: from clusters first, then what was stored. `keep_history` keeps the AppContexts and packs,
/// for an owner that only terminates and may come back.
pub async fn end(ctx: &Context, owner: &Owner, keep_history: bool) -> Result<Ending, Failure> {
    let revision = contexts(ctx, owner).first().map_or(1, |context| context.spec.revision);
    retarget(ctx, owner, revision, &BTreeMap::new(), &BTreeMap::new()).await?;
    let shards = shards(ctx, owner);
    if shards.iter().any(|shard| !shard.spec.clusters.is_empty()) {
        return Ok(Ending::Waiting);
    }
    for shard in &shards {
        remove_shard(ctx, shard).await?;
    }
    if !shards.is_empty() {
        return Ok(Ending::Waiting);
    }
    if !keep_history {
        let all: Vec<_> = contexts(ctx, owner);
        let none = BTreeSet::new();
        for context in &all {
            remove_context(ctx, context, &none).await?;
        }
        explain::sweep(ctx, owner).await?;
        ctx.revisions.written.lock().remove(&owner.hash);
    }
    Ok(Ending::Done)
}

async fn remove_shard(ctx: &Context, shard: &SyncShard) -> Result<(), Failure> {
    if !objects::deleting(shard) {
        ctx.hub()
            .delete(
                &objects::path(shard),
                Some(objects::uid(shard)),
                shard.metadata.resource_version.as_deref(),
            )
            .await?;
        return Ok(());
    }
    objects::remove_finalizer(ctx, shard, INVENTORY).await?;
    Ok(())
}

/// Deletes revisions beyond the limit that no shard names, and their packs that no other revision names. The newest stays.
pub async fn trim(ctx: &Context, owner: &Owner, limit: usize) -> Result<(), Failure> {
    let all = contexts(ctx, owner);
    let named: BTreeSet<i64> = shards(ctx, owner)
        .iter()
        .flat_map(|shard| shard.spec.combinations.iter().map(|combination| combination.revision))
        .collect();
    let (old, kept): (Vec<_>, Vec<_>) = all
        .iter()
        .enumerate()
        .partition(|(at, context)| *at >= limit.max(1) && !named.contains(&context.spec.revision));
    let packs: BTreeSet<String> = kept
        .iter()
        .flat_map(|(_, context)| context.spec.packs.iter().map(|pack| pack.name.clone()))
        .collect();
    for (_, context) in old {
        remove_context(ctx, context, &packs).await?;
    }
    Ok(())
}

/// Packs first: an AppContext without packs is complete nonsense to nobody, a pack without AppContext is litter.
async fn remove_context(ctx: &Context, context: &AppContext, keep: &BTreeSet<String>) -> Result<(), Failure> {
    for pack in context.spec.packs.iter().filter(|pack| !keep.contains(&pack.name)) {
        let kind = if pack.kind == PackKind::Secret { PackKind::Secret } else { PackKind::ConfigMap };
        ctx.hub()
            .delete(&format!("{}/{}", pack_collection(&ctx.namespace, kind), pack.name), None, None)
            .await?;
    }
    explain::remove(ctx, context).await?;
    let path = objects::path(context);
    if !objects::deleting(context) {
        ctx.hub().delete(&path, Some(objects::uid(context)), None).await?;
    }
    let Some(live) = ctx.hub().get_as::<AppContext>(&path).await? else { return Ok(()) };
    objects::remove_finalizer(ctx, &live, INVENTORY).await?;
    Ok(())
}
