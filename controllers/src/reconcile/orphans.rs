//! Handles shards and revisions without an owner: finishes removal when deletion is proven, otherwise keeps and reports
//! them. What is merely missing may come back: a hub restored from a backup, an object deleted from Git by mistake.
//!
//! Proof of an end: the namespace is being deleted; or nothing is wanted on any cluster any more, which is written down before
//! the first object is removed anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::reasons::SyncShardReason;
use emco_crds::{AppContext, DeploymentIntentGroup, LogicalCloud, SyncShard};
use emco_engine::path::ApiPath;
use emco_engine::{conditions, marks};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::abandon;
use crate::object::events;
use crate::object::meta;
use crate::object::status;
use crate::reconcile::context::Context;
use crate::runtime::api::ApiServerExt;
use crate::runtime::context::Failure;
use crate::runtime::each_key::each_key;
use crate::runtime::key_queue::Key;
use crate::runtime::metrics::Metrics;
use crate::runtime::triggers::Triggers;
use crate::store::{self, Owner, own_shards, plan_details};
use crate::target;

/// Condition of a shard that nobody owns; absent from all others.
pub const ORPHANED: &str = "Orphaned";
/// Before the same owner is looked at again after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// Owners, and ledgers, looked at at once.
const AT_ONCE: u16 = 8;

/// Looks at every owner that is named by what is stored, then at those that may have gone.
pub async fn follow(ctx: Arc<Context>, triggers: Arc<Triggers>, metrics: Arc<Metrics>) {
    ctx.stores.loaded().await;
    for shard in ctx.stores.shards.sorted() {
        triggers.stored(&shard);
    }
    for context in ctx.stores.contexts.sorted() {
        triggers.owner(meta::namespace(context.as_ref()), &context.spec.owner.kind, &context.spec.owner.name);
    }
    let orphaned: Mutex<BTreeMap<Key, usize>> = Mutex::default();
    each_key(&triggers.owners, AT_ONCE, async |key| {
        let (kind, name) = key.1.split_once('/').unwrap_or(("", key.1.as_str()));
        let looked = reconcile(&ctx, &key.0, kind, name).await;
        let mut orphaned = orphaned.lock();
        match looked {
            Ok(0) => drop(orphaned.remove(&key)),
            Ok(shards) => drop(orphaned.insert(key, shards)),
            Err(error) => {
                tracing::warn!(namespace = key.0, owner = key.1, %error, "what a missing owner left could not be looked at");
                let triggers = Arc::clone(&triggers);
                tokio::spawn(async move {
                    sleep(AGAIN).await;
                    triggers.owners.enqueue(&key.0, &key.1);
                });
            }
        }
        metrics.orphaned(orphaned.values().sum());
    })
    .await;
}

/// Looks at every ledger of what was given up, whenever something may have become of it.
pub async fn follow_ledgers(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    ctx.stores.loaded().await;
    each_key(&triggers.ledgers, AT_ONCE, async |(namespace, name)| {
        if let Err(error) = abandon::reconcile_ledger(&ctx, &namespace, &name).await {
            tracing::debug!(namespace, ledger = name, %error, "a ledger could not be brought up to date; it is tried again");
            let triggers = Arc::clone(&triggers);
            tokio::spawn(async move {
                sleep(AGAIN).await;
                triggers.ledgers.enqueue(&namespace, &name);
            });
        }
    })
    .await;
}

/// One owner; the number of shards that are orphaned.
pub async fn reconcile(ctx: &Context, namespace: &str, kind: &str, name: &str) -> Result<usize, Failure> {
    let kind = if kind == "LogicalCloud" { "LogicalCloud" } else { "DeploymentIntentGroup" };
    let hash = marks::owner_hash(&ctx.installation.id, kind, namespace, name);
    let owner =
        Owner { kind, namespace: namespace.to_owned(), name: name.to_owned(), uid: String::new(), hash };
    let shards = store::shards(ctx, &owner);
    let contexts = store::contexts(ctx, &owner);
    if !exists(ctx, &owner) && plan_details::forget(ctx, &owner.hash) {
        store::request_collection(ctx);
    }
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
        for context in contexts.iter().filter(|context| !meta::deleting(context.as_ref())) {
            ctx.hub().delete(meta::path(context.as_ref()), Some(meta::uid(context.as_ref())), None).await?;
        }
        target::remove_all(ctx, &owner, false).await?;
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

/// The same, asked of the hub.
async fn exists_on_hub(ctx: &Context, owner: &Owner) -> Result<bool, Failure> {
    let (space, name) = (Some(owner.namespace.as_str()), owner.name.as_str());
    let collection = match owner.kind {
        "LogicalCloud" => meta::collection::<LogicalCloud>(space),
        _ => meta::collection::<DeploymentIntentGroup>(space),
    };
    Ok(ctx.hub().get_opt(collection.then(name)).await?.is_some())
}

/// Whether the end of a missing owner is proved.
async fn ended(
    ctx: &Context,
    owner: &Owner,
    shards: &[Arc<SyncShard>],
    contexts: &[Arc<AppContext>],
) -> Result<bool, Failure> {
    let leaves = |shard: &SyncShard| shard.spec.clusters.iter().all(|row| row.target.is_none());
    let proved = if shards.is_empty() {
        contexts.iter().all(|context| meta::deleting(context.as_ref()))
    } else {
        shards.iter().all(|shard| leaves(shard))
    };
    // Watches may be behind each other: an owner that is there ends by itself, and a shard that was not shown may want something.
    if proved && !exists_on_hub(ctx, owner).await? {
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
