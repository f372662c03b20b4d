//! Wanted combinations in, shard rows out: one write that sets new targets and keeps the old ones, read back by whoever acts.

use std::collections::BTreeMap;

use emco_crds::app_context::{FORMAT, OwnerRef};
use emco_crds::names::{label, owner_short};
use emco_crds::{SyncShard, SyncShardSpec};
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::shard;
use kube::Resource;
use serde_json::json;

use super::{Owner, shards};
use crate::api::ApiServerExt;
use crate::context::{Context, Failure};
use crate::objects;

/// Makes the owner's shards want this and nothing else. `uids` are the identities of clusters known now: a row keeps the first
/// it learns. Returns whether anything was written.
pub async fn retarget(
    ctx: &Context,
    owner: &Owner,
    revision: i64,
    wanted: &BTreeMap<ClusterId, Combination>,
    uids: &BTreeMap<ClusterId, String>,
) -> Result<bool, Failure> {
    let existing = shards(ctx, owner);
    let mut wrote = false;
    // Every cluster belongs to the shard that has its row already; new ones to the first.
    let mut rest = wanted.clone();
    let mut shares: Vec<BTreeMap<ClusterId, Combination>> = Vec::new();
    for stored in &existing {
        let rows = stored.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster));
        shares.push(rows.filter_map(|id| rest.remove_entry(&id)).collect());
    }
    if let Some(first) = shares.first_mut() {
        first.append(&mut rest);
    }
    for (stored, share) in existing.iter().zip(&shares) {
        wrote |= update(ctx, owner, stored, revision, share, uids).await?;
    }
    if existing.is_empty() && !wanted.is_empty() {
        create(ctx, owner, revision, wanted, uids).await?;
        wrote = true;
    }
    Ok(wrote)
}

fn with_uids(spec: SyncShardSpec, uids: &BTreeMap<ClusterId, String>) -> SyncShardSpec {
    shard::record_uids(&spec, uids).unwrap_or(spec)
}

async fn update(
    ctx: &Context,
    owner: &Owner,
    stored: &SyncShard,
    revision: i64,
    share: &BTreeMap<ClusterId, Combination>,
    uids: &BTreeMap<ClusterId, String>,
) -> Result<bool, Failure> {
    let next = objects::generation(stored) + 1;
    // Rows of clusters that others took the place of begin anew, in the same write.
    let replaced = shard::replaced(&stored.spec, stored.status.as_ref(), next, uids);
    let base = replaced.as_ref().unwrap_or(&stored.spec);
    let fresh = shard::retarget(base, stored.status.as_ref(), next, revision, share);
    let fresh = match fresh {
        Some(spec) => with_uids(spec, uids),
        None => match shard::record_uids(base, uids).or(replaced) {
            Some(spec) => spec,
            None => return Ok(false),
        },
    };
    let fresh = shortened(ctx, owner, fresh).await?;
    let mut object = stored.clone();
    object.spec = SyncShardSpec { epoch: ctx.epoch.max(fresh.epoch), ..fresh };
    let mut body = serde_json::to_value(&object).map_err(|error| Failure::Stored(error.to_string()))?;
    if let Some(metadata) = body.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    ctx.hub().replace(&objects::path(stored), &body).await?;
    Ok(true)
}

/// Replaces what long rows hold by identity sets, stored before the spec names them. Where a content cannot be read the row
/// stays long: an inventory with a hole is none.
async fn shortened(ctx: &Context, owner: &Owner, spec: SyncShardSpec) -> Result<SyncShardSpec, Failure> {
    if shard::overlong(&spec).is_empty() {
        return Ok(spec);
    }
    let contents = super::contents(ctx, owner, &spec).await?;
    match shard::collapse_held(spec.clone(), |content| contents.identities(content)) {
        Ok(collapsed) => {
            for pack in &collapsed.packs {
                super::commit::store_pack(ctx, owner, pack).await?;
            }
            Ok(collapsed.spec)
        }
        Err(why) => {
            tracing::warn!(owner = owner.name, %why, "what a row holds cannot be shortened");
            Ok(spec)
        }
    }
}

async fn create(
    ctx: &Context,
    owner: &Owner,
    revision: i64,
    wanted: &BTreeMap<ClusterId, Combination>,
    uids: &BTreeMap<ClusterId, String>,
) -> Result<(), Failure> {
    let empty = SyncShardSpec {
        format: FORMAT,
        owner: OwnerRef { kind: owner.kind.to_owned(), name: owner.name.clone(), uid: owner.uid.clone() },
        slot: 0,
        bits: 0,
        part: 0,
        epoch: ctx.epoch,
        next_id: 1,
        combinations: Vec::new(),
        clusters: Vec::new(),
    };
    let Some(spec) = shard::retarget(&empty, None, 1, revision, wanted) else { return Ok(()) };
    let spec = with_uids(spec, uids);
    // A shard deleted by hand stays until its rows are done; a successor has another number.
    let name = format!("{}-{}-s0-{revision}", owner_short(owner.kind), owner.name);
    let mut labels = owner.labels();
    labels.insert(label::SLOT, "0".to_owned());
    let object = json!({
        "apiVersion": SyncShard::api_version(&()), "kind": SyncShard::kind(&()),
        "metadata": {
            "name": name, "namespace": owner.namespace, "labels": labels, "finalizers": [super::INVENTORY],
        },
        "spec": spec,
    });
    ctx.hub().create(&objects::collection::<SyncShard>(Some(&owner.namespace)), &object).await?;
    Ok(())
}
