//! Reads the shards of an owner, and writes single ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::app_context::{FORMAT, OwnerRef};
use emco_crds::names::label;
use emco_crds::{SyncShard, SyncShardSpec};
use emco_engine::identity::ClusterId;
use emco_engine::shard;

use super::collect::{each_of, later};
use super::context::StoreContext;
use crate::api::{ApiServerExt, parse};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::stores::indexes;

/// Shards of an owner as they are to be read: each cluster is in one of them, also while its row moves from one to another.
pub fn shards(ctx: &StoreContext, owner: &Owner) -> Vec<Arc<SyncShard>> {
    let all = stored_shards(ctx, owner);
    let parts: Vec<_> = all.iter().map(|stored| (&stored.spec, stored.status.as_ref())).collect();
    let quiet = shard::superseded(&parts);
    let speaking = |(stored, quiet): (&Arc<SyncShard>, &BTreeSet<ClusterId>)| {
        if quiet.is_empty() {
            return Arc::clone(stored);
        }
        let mut part = stored.as_ref().clone();
        part.spec.clusters.retain(|row| ClusterId::parse(&row.cluster).is_none_or(|id| !quiet.contains(&id)));
        Arc::new(part)
    };
    all.iter().zip(&quiet).map(speaking).collect()
}

/// Shards of an owner as they are stored, by name.
pub(crate) fn stored_shards(ctx: &StoreContext, owner: &Owner) -> Vec<Arc<SyncShard>> {
    let mut shown = ctx.stores.shards.indexed(indexes::OWNER, &owner.hash);
    shown.retain(|shard| {
        meta::namespace(shard.as_ref()) == owner.namespace
            && shard.metadata.labels.as_ref().and_then(|l| l.get(label::OWNER)) == Some(&owner.hash)
    });
    shown.into_iter().map(|shown| ctx.revisions.write_cache.newest(shown)).collect()
}

/// Revisions that shards of an owner name.
pub fn named_by_shards(ctx: &StoreContext, owner: &Owner) -> BTreeSet<i64> {
    let all = stored_shards(ctx, owner);
    all.iter().flat_map(|shard| shard.spec.combinations.iter().map(|one| one.revision)).collect()
}

/// All shards of the hub as they were stored last, as far as this process knows.
pub(crate) fn all_shards(ctx: &StoreContext) -> Vec<Arc<SyncShard>> {
    let shown = ctx.stores.shards.sorted();
    shown.into_iter().map(|shown| ctx.revisions.write_cache.newest(shown)).collect()
}

/// Those with a row of a cluster, as the watch shows them; each as it was stored last. One that got its first row of the cluster a moment ago
/// is among them when the watch shows it, which has the Cluster look again.
pub(crate) fn shards_with_row(ctx: &StoreContext, cluster: &ClusterId) -> Vec<Arc<SyncShard>> {
    let shown = ctx.stores.shards.indexed(indexes::ROW, cluster.as_str());
    shown.into_iter().map(|shown| ctx.revisions.write_cache.newest(shown)).collect()
}

/// Those of a namespace.
pub(crate) fn shards_within(ctx: &StoreContext, namespace: &str) -> Vec<Arc<SyncShard>> {
    let shown = ctx.stores.shards.within(namespace);
    shown.into_iter().map(|shown| ctx.revisions.write_cache.newest(shown)).collect()
}

/// All shards as the hub has them now, of one namespace or of all.
pub(crate) async fn live_shards(
    ctx: &StoreContext,
    namespace: Option<&str>,
) -> Result<Vec<Arc<SyncShard>>, Failure> {
    let mut all = Vec::new();
    each_of::<SyncShard>(ctx, namespace, None, |shard| {
        if shard.spec.format > FORMAT {
            return Err(later(shard.spec.format));
        }
        all.push(Arc::new(shard));
        Ok(())
    })
    .await?;
    Ok(all)
}

/// Writes a spec in place of the one that was read.
pub(crate) async fn replace(
    ctx: &StoreContext,
    stored: &SyncShard,
    spec: SyncShardSpec,
) -> Result<SyncShard, Failure> {
    let mut object = stored.clone();
    object.metadata.labels.get_or_insert_default().insert(label::SLOT.to_owned(), spec.slot.to_string());
    let writes = meta::writes(stored) + 1;
    object.spec = SyncShardSpec { epoch: ctx.epoch.max(spec.epoch), writes, ..spec };
    let path = meta::path(stored);
    match ctx.hub().replace(&path, &body(&object)?).await {
        Ok(answer) => {
            let written = parse(&path, answer)?;
            ctx.revisions.write_cache.took(&written);
            Ok(written)
        }
        Err(error) => {
            ctx.revisions.write_cache.forget(stored);
            Err(error.into())
        }
    }
}

/// A shard as it is sent.
fn body(object: &SyncShard) -> Result<serde_json::Value, Failure> {
    let mut body = serde_json::to_value(object).map_err(|error| Failure::Stored(error.to_string()))?;
    if let Some(metadata) = body.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(body)
}

/// An owner's shard without rows.
pub(crate) fn empty(owner: &Owner, epoch: i64, (slot, bits): (i64, i32)) -> SyncShardSpec {
    SyncShardSpec {
        format: FORMAT,
        owner: OwnerRef { kind: owner.kind.clone(), name: owner.name.clone(), uid: owner.uid.clone() },
        slot,
        bits,
        part: 0,
        epoch,
        writes: 0,
        next_id: 1,
        abandoned: None,
        combinations: Vec::new(),
        order: None,
        clusters: Vec::new(),
    }
}
