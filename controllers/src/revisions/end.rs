//! The end of revisions: old ones beyond the history, and all of an owner that terminates, once nothing is left on clusters.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::{AppContext, SyncShard};

use super::{INVENTORY, Owner, begun, contexts, explain, retarget, stored_shards};
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
    let uids = crate::logical_cloud::uids(&crate::facts::clusters(ctx));
    retarget(ctx, owner, revision, &BTreeMap::new(), &uids).await?;
    let shards = stored_shards(ctx, owner);
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
        for context in &contexts(ctx, owner) {
            remove_context(ctx, context).await?;
        }
        explain::sweep(ctx, owner, &BTreeSet::new()).await?;
        ctx.revisions.footprints.lock().keep(&owner.hash, &BTreeSet::new());
        ctx.revisions.written.lock().remove(&owner.hash);
        begun::forget(ctx, owner);
    }
    Ok(Ending::Done)
}

pub(super) async fn remove_shard(ctx: &Context, shard: &SyncShard) -> Result<(), Failure> {
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

/// Deletes revisions beyond the limit that no shard names, and those that somebody deleted and nobody needs. The newest stays.
/// Packs that no revision names any more are the collector's.
pub async fn trim(ctx: &Context, owner: &Owner, limit: usize) -> Result<(), Failure> {
    let all = contexts(ctx, owner);
    let named: BTreeSet<i64> = stored_shards(ctx, owner)
        .iter()
        .flat_map(|shard| shard.spec.combinations.iter().map(|combination| combination.revision))
        .collect();
    let mut gone = BTreeSet::new();
    for (at, context) in all.iter().enumerate() {
        let unwanted = at >= limit.max(1) || (at > 0 && objects::deleting(context.as_ref()));
        if unwanted && !named.contains(&context.spec.revision) {
            remove_context(ctx, context).await?;
            gone.insert(context.spec.revision);
        }
    }
    if !gone.is_empty() && all.iter().any(|context| context.spec.explain.is_some()) {
        let kept: BTreeSet<String> = all
            .iter()
            .filter(|context| !gone.contains(&context.spec.revision))
            .filter_map(|context| context.spec.explain.clone())
            .flat_map(|explain| explain.config_maps)
            .collect();
        explain::sweep(ctx, owner, &kept).await?;
    }
    Ok(())
}

/// What explained it goes with the next sweep.
async fn remove_context(ctx: &Context, context: &AppContext) -> Result<(), Failure> {
    let path = objects::path(context);
    let waits = if objects::deleting(context) {
        ctx.hub().get_opt(&path).await?
    } else {
        ctx.hub().delete(&path, Some(objects::uid(context)), None).await?
    };
    // The object as it waits for us; or a Status, where it waited for nobody.
    let waits = waits.and_then(|waits| serde_json::from_value::<AppContext>(waits).ok());
    if let Some(waits) = waits.filter(|waits| objects::uid(waits) == objects::uid(context)) {
        objects::remove_finalizer(ctx, &waits, INVENTORY).await?;
    }
    ctx.revisions.litter.notify_one();
    Ok(())
}
