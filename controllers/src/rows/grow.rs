//! Divides shards that outgrow one object. Every row is in a stored shard at every moment: it is copied, the copy
//! learns its status, and only then it leaves the shard it was in.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::SyncShard;
use emco_crds::SyncShardSpec;
use emco_crds::names::{finalizer, label};
use emco_crds::sync_shard::ShardOrder;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::shard;
use kube::Resource;
use serde_json::json;

use crate::api::{ApiServerExt, parse};
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{meta, status};
use crate::store::{StoreContext, empty, replace};
use crate::tenancy::owned_namespace;

/// What the clusters of one shard are to have.
pub(super) type Share = BTreeMap<ClusterId, Combination>;

/// About how long the status of a row gets that is being worked on.
const ROW: usize = 400;
/// About how much longer it gets for each app that waits for others: what it waits for, its gate and its delays.
const WAITS: usize = 400;

/// Brings rows that are on their way to where they go.
pub async fn arrive(ctx: &StoreContext, all: &mut [SyncShard]) -> Result<bool, Failure> {
    let mut wrote = false;
    while let Some((from, to)) = under_way(all) {
        let [Some(old), Some(new)] = [all.get(from), all.get(to)] else { break };
        let fresh = if new.status.is_none() {
            let status = shard::carried(&old.spec, old.status.as_ref(), &new.spec);
            (to, write_status(ctx, new, status).await?)
        } else {
            let theirs: BTreeSet<ClusterId> =
                new.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster)).collect();
            let taken = (new.spec.slot, new.spec.bits);
            let spec = shard::without(&old.spec, old.status.as_ref(), &theirs, taken);
            (from, replace(ctx, old, spec).await?)
        };
        if let Some(place) = all.get_mut(fresh.0) {
            *place = fresh.1;
        }
        wrote = true;
    }
    Ok(wrote)
}

/// A shard with rows that a deeper one has too, and that one.
fn under_way(all: &[SyncShard]) -> Option<(usize, usize)> {
    let mut at_home: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, stored) in all.iter().enumerate() {
        for row in &stored.spec.clusters {
            let Some(other) = at_home.insert(&row.cluster, at).filter(|other| *other != at) else { continue };
            let bits = |at: usize| all.get(at).map_or(0, |stored| stored.spec.bits);
            match bits(other).cmp(&bits(at)) {
                std::cmp::Ordering::Less => return Some((other, at)),
                std::cmp::Ordering::Greater => return Some((at, other)),
                // Not our doing, and not ours to judge: one of them speaks, the other one is kept as it is.
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    None
}

/// Who gets what: for each shard its share, and what no shard has a place for. Shards that would become too large give rows
/// away first. In a namespace that terminates nothing can be made: there the limit is soft, as it is for what only leaves.
pub async fn split(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    all: &mut Vec<SyncShard>,
    (wanted, order): (&Share, Option<&ShardOrder>),
    wrote: &mut bool,
) -> Result<(Vec<Share>, Share), Failure> {
    loop {
        let (shares, rest) = shares(all, wanted);
        if wanted.is_empty() || owned_namespace::ends(ctx, &owner.namespace) {
            return Ok((shares, rest));
        }
        let limit = ctx.revisions.settings.largest_shard;
        let outgrown = all.iter().zip(&shares).position(|(stored, share)| {
            outgrows(stored, (share, row(order)), revision, limit) && can_divide(stored)
        });
        let Some(at) = outgrown else { return Ok((shares, rest)) };
        let Some((old, half)) =
            all.get(at).and_then(|old| Some((old, shard::divide(&old.spec, old.status.as_ref())?)))
        else {
            return Ok((shares, rest));
        };
        let LogFields { project, deployment, object } = owner.log_fields(ctx);
        tracing::info!(
            project,
            deployment,
            object,
            shard = meta::name(old),
            bits = half.spec.bits,
            "a shard outgrew its limit: rows move"
        );
        let made = make(ctx, owner, revision, half.spec).await?;
        all.push(made);
        arrive(ctx, all).await?;
        all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        *wrote = true;
    }
}

fn can_divide(stored: &SyncShard) -> bool {
    let ids: Vec<ClusterId> =
        stored.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster)).collect();
    shard::dividing_bit(&ids, stored.spec.bits).is_some()
}

/// Every cluster belongs to the shard that has its row already, new ones to the shard of their slot.
fn shares(all: &[SyncShard], wanted: &Share) -> (Vec<Share>, Share) {
    let parts: Vec<_> = all.iter().map(|stored| (&stored.spec, stored.status.as_ref())).collect();
    let quiet = shard::superseded(&parts);
    let mut rest = wanted.clone();
    let mut shares: Vec<Share> = Vec::new();
    for (stored, quiet) in all.iter().zip(&quiet) {
        let rows = stored.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster));
        shares.push(rows.filter(|id| !quiet.contains(id)).filter_map(|id| rest.remove_entry(&id)).collect());
    }
    let slots: Vec<(i64, i32)> = all.iter().map(|stored| (stored.spec.slot, stored.spec.bits)).collect();
    let mut homeless = Share::new();
    for (id, apps) in rest {
        match shard::home(&id, &slots).and_then(|at| shares.get_mut(at)) {
            Some(share) => share.insert(id, apps),
            None => homeless.insert(id, apps),
        };
    }
    (shares, homeless)
}

/// About how long the status of a row gets whose apps have this order.
fn row(order: Option<&ShardOrder>) -> usize {
    let apps = order.iter().flat_map(|order| &order.apps);
    ROW + WAITS * apps.filter(|app| !app.depends_on.is_empty()).count()
}

/// Whether a shard is too large as it is, or would be with this share and the results of the work on it, with rows of this length.
fn outgrows(stored: &SyncShard, (share, row): (&Share, usize), revision: i64, limit: usize) -> bool {
    let (spec, status) = (&stored.spec, stored.status.as_ref());
    if shard::size(spec, status) > limit {
        return true;
    }
    let next = meta::writes(stored) + 1;
    let fresh = shard::retarget(spec, status, next, revision, share);
    fresh.is_some_and(|fresh| shard::size(&fresh, None) + row * fresh.clusters.len() > limit)
}

/// New shards for clusters that have no place: as few as hold them.
pub fn layout(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    slots: &[(i64, i32)],
    rest: Share,
    order: Option<&ShardOrder>,
) -> Vec<((i64, i32), Share)> {
    let mut groups: BTreeMap<(i64, i32), Share> = BTreeMap::new();
    for (id, apps) in rest {
        groups.entry(shard::vacant(&id, slots)).or_default().insert(id, apps);
    }
    let mut open: Vec<((i64, i32), Share)> = groups.into_iter().collect();
    let mut done = Vec::new();
    while let Some((slot, share)) = open.pop() {
        let spec = shard::retarget(&empty(owner, 0, slot), None, 1, revision, &share);
        let bytes = spec.map_or(0, |spec| shard::size(&spec, None) + row(order) * spec.clusters.len());
        let ids: Vec<ClusterId> = share.keys().cloned().collect();
        let bits = shard::dividing_bit(&ids, slot.1);
        let (true, Some(bits)) = (bytes > ctx.revisions.settings.largest_shard, bits) else {
            done.push((slot, share));
            continue;
        };
        let mut halves: BTreeMap<i64, Share> = BTreeMap::new();
        for (id, apps) in share {
            halves.entry(shard::slot(&id, bits)).or_default().insert(id, apps);
        }
        open.extend(halves.into_iter().map(|(value, share)| ((value, bits), share)));
    }
    done.sort_by_key(|(slot, _)| *slot);
    done
}

/// Makes a shard. One that this process, or one before it, made already is taken as it is.
pub async fn make(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    spec: SyncShardSpec,
) -> Result<SyncShard, Failure> {
    // A shard deleted by hand stays until its rows are done; a successor has another number.
    let slot = match spec.bits {
        0 => "0".to_owned(),
        bits => format!("{}of{}", spec.slot, 1_i64 << bits),
    };
    let name = format!("{}-{}-s{slot}-{revision}", owner.kind.short(), owner.name);
    let mut labels = owner.labels();
    labels.insert(label::SLOT, spec.slot.to_string());
    let spec = SyncShardSpec { epoch: ctx.epoch.max(spec.epoch), writes: 1, ..spec };
    let object = json!({
        "apiVersion": SyncShard::api_version(&()), "kind": SyncShard::kind(&()),
        "metadata": {
            "name": name, "namespace": owner.namespace, "labels": labels, "finalizers": [finalizer::INVENTORY],
        },
        "spec": spec,
    });
    let collection = meta::collection::<SyncShard>(Some(&owner.namespace));
    let path = collection.clone().then(&name);
    ctx.revisions.made.lock().entry(owner.hash.clone()).or_default().insert(name);
    let made = parse(&path, ctx.hub().create(&collection, &object).await?)?;
    ctx.revisions.write_cache.took(&made);
    Ok(made)
}

async fn write_status(
    ctx: &StoreContext,
    stored: &SyncShard,
    status: emco_crds::SyncShardStatus,
) -> Result<SyncShard, Failure> {
    let object = SyncShard { status: Some(status), ..stored.clone() };
    let answer = ctx.hub().send(status::patch(&object, &object.status)?.metadata()).await?;
    let written = status::written(object, answer)?;
    // The watch may show it as it was made, without what its rows have.
    ctx.revisions.write_cache.took(&written);
    Ok(written)
}
