//! Shards and revisions whose owner is not there in; what proves the owner's end is carried out, everything else is kept and
//! told. What is merely missing may come back: a hub restored from a backup, an object deleted from Git by mistake.
//!
//! Proof of an end: the namespace is being deleted; or nothing is wanted on any cluster any more, which is written down before
//! the first object is removed anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::reasons::SyncShardReason;
use emco_crds::{AppContext, SyncShard};
use emco_engine::{conditions, marks};
use tokio::time::sleep;

use crate::api::ApiServerExt;
use crate::context::{Context, Failure};
use crate::metrics::Metrics;
use crate::objects;
use crate::revisions::{self, Owner};
use crate::stores::StoreExt;
use crate::wakes::Wakes;

/// Condition of a shard that nobody owns; absent from all others.
pub const ORPHANED: &str = "Orphaned";
/// Before the same owner is looked at again after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// Looks at every owner that is named by what is stored, then at those that may have gone.
pub async fn follow(ctx: Arc<Context>, wakes: Arc<Wakes>, metrics: Arc<Metrics>) {
    ctx.stores.loaded().await;
    for shard in ctx.stores.shards.sorted() {
        wakes.stored(&shard);
    }
    for context in ctx.stores.contexts.sorted() {
        wakes.owner(objects::namespace(context.as_ref()), &context.spec.owner.kind, &context.spec.owner.name);
    }
    let mut orphaned: BTreeMap<(String, String), usize> = BTreeMap::new();
    loop {
        let key = wakes.owners.next().await;
        let (kind, name) = key.1.split_once('/').unwrap_or(("", key.1.as_str()));
        match reconcile(&ctx, &key.0, kind, name).await {
            Ok(0) => drop(orphaned.remove(&key)),
            Ok(shards) => drop(orphaned.insert(key.clone(), shards)),
            Err(error) => {
                tracing::warn!(namespace = key.0, owner = key.1, %error, "what a missing owner left could not be looked at");
                let wakes = Arc::clone(&wakes);
                tokio::spawn(async move {
                    sleep(AGAIN).await;
                    wakes.owners.wake(&key.0, &key.1);
                });
            }
        }
        metrics.orphaned(orphaned.values().sum());
    }
}

/// Looks at every ledger of what was given up, whenever something may have become of it.
pub async fn follow_ledgers(ctx: Arc<Context>, wakes: Arc<Wakes>) {
    ctx.stores.loaded().await;
    loop {
        let (namespace, name) = wakes.ledgers.next().await;
        if let Err(error) = revisions::reconcile_ledger(&ctx, &namespace, &name).await {
            tracing::debug!(namespace, ledger = name, %error, "a ledger could not be brought up to date; it is tried again");
            let wakes = Arc::clone(&wakes);
            tokio::spawn(async move {
                sleep(AGAIN).await;
                wakes.ledgers.wake(&namespace, &name);
            });
        }
    }
}

/// One owner; the number of shards that are orphaned.
pub async fn reconcile(ctx: &Context, namespace: &str, kind: &str, name: &str) -> Result<usize, Failure> {
    let kind = if kind == "LogicalCloud" { "LogicalCloud" } else { "DeploymentIntentGroup" };
    let hash = marks::owner_hash(&ctx.installation.id, kind, namespace, name);
    let owner =
        Owner { kind, namespace: namespace.to_owned(), name: name.to_owned(), uid: String::new(), hash };
    let shards = revisions::shards(ctx, &owner);
    let contexts = revisions::contexts(ctx, &owner);
    if shards.is_empty() && contexts.is_empty() {
        return Ok(0);
    }
    if exists(ctx, &owner) {
        for shard in &shards {
            adopted(ctx, shard).await?;
        }
        return Ok(0);
    }
    let uid =
        shards.first().map(|s| &s.spec.owner.uid).or_else(|| contexts.first().map(|c| &c.spec.owner.uid));
    let owner = Owner { uid: uid.cloned().unwrap_or_default(), ..owner };
    if ended(ctx, &owner, &shards, &contexts).await? {
        // The deletion of the revisions is the proof that outlives the shards.
        for context in contexts.iter().filter(|context| !objects::deleting(context.as_ref())) {
            ctx.hub()
                .delete(&objects::path(context.as_ref()), Some(objects::uid(context.as_ref())), None)
                .await?;
        }
        revisions::end(ctx, &owner, false).await?;
        return Ok(0);
    }
    for shard in &shards {
        tell(ctx, &owner, shard).await?;
    }
    Ok(shards.len())
}

/// Whether the owner is there, as the watch saw it: an owner was seen before anything of it was stored.
fn exists(ctx: &Context, owner: &Owner) -> bool {
    let (namespace, name) = (owner.namespace.as_str(), owner.name.as_str());
    match owner.kind {
        "LogicalCloud" => ctx.stores.clouds.named(namespace, name).is_some(),
        _ => ctx.stores.digs.named(namespace, name).is_some(),
    }
}

/// Whether the end of a missing owner is proved.
async fn ended(
    ctx: &Context,
    owner: &Owner,
    shards: &[Arc<SyncShard>],
    contexts: &[Arc<AppContext>],
) -> Result<bool, Failure> {
    let all_leave = |shard: &Arc<SyncShard>| shard.spec.clusters.iter().all(|row| row.target.is_none());
    if !shards.is_empty() && shards.iter().all(all_leave) {
        return Ok(true);
    }
    if shards.is_empty() && contexts.iter().all(|context| objects::deleting(context.as_ref())) {
        return Ok(true);
    }
    let space = ctx.hub().get_opt(&format!("/api/v1/namespaces/{}", owner.namespace)).await?;
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
    let generation = objects::generation(shard);
    conditions::set(&mut status.conditions, ORPHANED, "True", reason, &message, generation, ctx.now());
    if status == before {
        return Ok(());
    }
    objects::replace_status(ctx, shard, &status).await?;
    objects::event(ctx, shard, true, reason, &message).await;
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
    objects::replace_status(ctx, shard, &status).await?;
    Ok(())
}
