//! Looks at owners of what is stored, and at ledgers, whenever something may have become of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::OwnerKind;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::abandon;
use crate::api::each_key::each_key;
use crate::api::key_queue::Key;
use crate::driver::metrics::Metrics;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::orphans;
use crate::triggers::Triggers;

/// Before the same owner is looked at again after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// Owners, and ledgers, looked at at once.
const AT_ONCE: u16 = 8;

/// Looks at every owner that is named by what is stored, then at those that may have gone.
pub async fn orphans(ctx: Arc<Context>, triggers: Arc<Triggers>, metrics: Arc<Metrics>) {
    ctx.stores.loaded().await;
    for (number, shard) in ctx.stores.shards.sorted().into_iter().enumerate() {
        triggers.stored(&shard);
        ctx.pulse.breathe(number).await;
    }
    for (number, context) in ctx.stores.contexts.sorted().into_iter().enumerate() {
        triggers.owner(meta::namespace(context.as_ref()), &context.spec.owner.kind, &context.spec.owner.name);
        ctx.pulse.breathe(number).await;
    }
    let orphaned: Mutex<BTreeMap<Key, usize>> = Mutex::default();
    each_key(&triggers.owners, AT_ONCE, async |key| {
        let (kind, name) = key.1.split_once('/').unwrap_or(("", key.1.as_str()));
        let looked = orphans::reconcile(&ctx, &key.0, &OwnerKind::from(kind), name).await;
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
pub async fn ledgers(ctx: Arc<Context>, triggers: Arc<Triggers>) {
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
