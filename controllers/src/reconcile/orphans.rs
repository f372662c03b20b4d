//! Handles shards and revisions without an owner: finishes removal when deletion is proven, otherwise keeps and reports
//! them. What is merely missing may come back: a hub restored from a backup, an object deleted from Git by mistake.
//!
//! Proof of an end: the namespace is being deleted; or nothing is wanted on any cluster any more, which is written down before
//! the first object is removed anywhere.

use std::sync::Arc;

use emco_crds::reasons::SyncShardReason;
use emco_crds::{AppContext, OwnerKind, SyncShard};
use emco_engine::conditions;
use emco_engine::path::ApiPath;

use crate::api::ApiServerExt;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::events;
use crate::object::meta;
use crate::object::status;
use crate::producer::Producer;
use crate::reconcile::context::Context;
use crate::rows;
use crate::store::{self, own_shards, plan_details};

/// Condition of a shard that nobody owns; absent from all others.
pub const ORPHANED: &str = "Orphaned";

/// One owner; the number of shards that are orphaned.
pub async fn reconcile(
    ctx: &Context,
    namespace: &str,
    kind: &OwnerKind,
    name: &str,
) -> Result<usize, Failure> {
    // Whether an owner of another kind ended, a later version knows: what it has stays as it is.
    let Some(producer) = ctx.producers.of(kind) else { return Ok(0) };
    let owner = Owner::new(&ctx.installation, kind.clone(), namespace, name, "");
    // An owner was seen before anything of it was stored.
    let there = producer.exists(&ctx.stores, namespace, name);
    if there {
        // Its rows are looked at by the owner.
        for shard in &store::stored_shards(ctx, &owner) {
            adopted(ctx, shard).await?;
        }
        return Ok(0);
    }
    let shards = store::shards(ctx, &owner);
    let contexts = store::contexts(ctx, &owner);
    if plan_details::forget(ctx, &owner.hash) {
        store::request_collection(ctx);
    }
    if shards.is_empty() && contexts.is_empty() {
        return Ok(0);
    }
    let uid =
        shards.first().map(|s| &s.spec.owner.uid).or_else(|| contexts.first().map(|c| &c.spec.owner.uid));
    let owner = Owner { uid: uid.cloned().unwrap_or_default(), ..owner };
    if ended(ctx, producer, &owner, (&shards, &contexts)).await? {
        // The deletion of the revisions is the proof that outlives the shards.
        for context in contexts.iter().filter(|context| !meta::deleting(context.as_ref())) {
            ctx.hub().delete(meta::path(context.as_ref()), Some(meta::uid(context.as_ref())), None).await?;
        }
        rows::remove_all(ctx, &owner, false).await?;
        return Ok(0);
    }
    for shard in &shards {
        tell(ctx, &owner, shard).await?;
    }
    Ok(shards.len())
}

/// Whether the end of a missing owner is proved.
async fn ended(
    ctx: &Context,
    producer: &dyn Producer,
    owner: &Owner,
    (shards, contexts): (&[Arc<SyncShard>], &[Arc<AppContext>]),
) -> Result<bool, Failure> {
    let leaves = |shard: &SyncShard| shard.spec.clusters.iter().all(|row| row.target.is_none());
    let proved = if shards.is_empty() {
        contexts.iter().all(|context| meta::deleting(context.as_ref()))
    } else {
        shards.iter().all(|shard| leaves(shard))
    };
    // Watches may be behind each other: an owner that is there ends by itself, and a shard that was not shown may want something.
    let object = producer.collection(&owner.namespace).then(&owner.name);
    if proved && ctx.hub().get_opt(object).await?.is_none() {
        let stored: Vec<SyncShard> = own_shards::live(ctx, owner).await?;
        if stored.iter().all(leaves) {
            return Ok(true);
        }
    }
    let space = ctx.hub().get_opt(ApiPath::namespace(&owner.namespace)).await?;
    Ok(space.is_some_and(|space| space.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null())))
}

/// Says on the shard that nobody owns it, once.
async fn tell(ctx: &Context, owner: &Owner, shard: &SyncShard) -> Result<(), Failure> {
    let before = shard.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let clusters = shard.spec.clusters.len();
    let message = format!(
        "{} {} is not there, and nobody saw it end: what it has on {clusters} {} stays, and is kept as it is. Make it again to go on; or make it again with spec.desiredState: Terminated, or delete it then, to have all of it removed",
        owner.kind,
        owner.name,
        if clusters == 1 { "cluster" } else { "clusters" }
    );
    let reason = SyncShardReason::Orphaned.as_str();
    let generation = meta::generation(shard);
    conditions::set(&mut status.conditions, ORPHANED, "True", reason, &message, generation, ctx.now());
    if status == before {
        return Ok(());
    }
    status::replace(ctx, shard, &status).await?;
    events::emit(ctx, shard, true, reason, &message).await;
    Ok(())
}

/// Takes that back where the owner is there.
async fn adopted(ctx: &Context, shard: &SyncShard) -> Result<(), Failure> {
    let Some(before) = &shard.status else { return Ok(()) };
    if !before.conditions.iter().any(|condition| condition.type_ == ORPHANED) {
        return Ok(());
    }
    let mut status = before.clone();
    conditions::remove(&mut status.conditions, ORPHANED);
    status::replace(ctx, shard, &status).await?;
    Ok(())
}
