//! Writes wanted combinations as shard rows: one write that sets new targets and keeps the old ones, read back by the
//! workers.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::app_context::FORMAT;
use emco_crds::sync_shard::ShardOrder;
use emco_crds::{SyncShard, SyncShardSpec};
use emco_engine::depends;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::shard::{self, GivenUp};
use futures::future::join_all;

use super::grow::{self, Share};
use super::repair::repoint;
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::store::{StoreContext, contents_of, empty, own_shards, replace, request_collection, store_pack};

/// Shards written at once. Where one of them cannot be written, the others are: a request that is given up may have been done.
const AT_ONCE: usize = 8;

/// What a new target came to.
pub struct Retargeted {
    /// Whether anything was written.
    pub wrote: bool,
    /// The shards that have rows for what is wanted.
    pub specs: Vec<SyncShardSpec>,
    /// Whether something was abandoned on a cluster that is wanted.
    pub took_back: bool,
}

/// Makes the owner's shards want this and nothing else. `uids` are the identities of clusters known now: a row keeps the first
/// it learns, `order` says which apps wait for which, and `given` what clusters have that had their turn in a rollout.
///
/// What was given up on a cluster that is wanted again is taken back by its row: `abandoned` reads it once all rows are where they go.
///
/// Rows that are on their way to another shard arrive before anything is retargeted, and a shard that would outgrow its
/// limit gives rows away before.
pub async fn retarget(
    ctx: &StoreContext,
    owner: &Owner,
    revision: i64,
    wanted: &Share,
    uids: &BTreeMap<ClusterId, String>,
    (order, given): (Option<&ShardOrder>, Option<&BTreeSet<Combination>>),
    abandoned: impl Fn() -> BTreeMap<ClusterId, Vec<GivenUp>>,
) -> Result<Retargeted, Failure> {
    let (mut all, mut wrote) = stored(ctx, owner).await?;
    let (shares, rest) = grow::split(ctx, owner, revision, &mut all, (wanted, order), &mut wrote).await?;
    let slots: Vec<(i64, i32)> = all.iter().map(|stored| (stored.spec.slot, stored.spec.bits)).collect();
    let pairs: Vec<(&SyncShard, Option<&Share>)> = all.iter().zip(shares.iter().map(Some)).collect();
    let noted = &abandoned();
    let facts = Facts { revision, uids, noted, order, given };
    let mut specs = Vec::new();
    for some in pairs.chunks(AT_ONCE) {
        let writes = some.iter().map(|(stored, share)| update(ctx, owner, stored, *share, &facts));
        for done in join_all(writes).await {
            let (written, spec) = done?;
            wrote |= written;
            specs.push(spec);
        }
    }
    for (slot, share) in grow::layout(ctx, owner, revision, &slots, rest, order) {
        specs.extend(create(ctx, owner, slot, &share, &facts).await?);
        wrote = true;
    }
    Ok(Retargeted { wrote, specs, took_back: !noted.is_empty() })
}

/// Leaves every row what it is to have, and writes what became known since: identities of clusters, which clusters were replaced, and
/// where the content is. Rows that are worked off leave. Returns whether anything was written.
pub async fn keep(
    ctx: &StoreContext,
    owner: &Owner,
    uids: &BTreeMap<ClusterId, String>,
) -> Result<bool, Failure> {
    let (all, mut wrote) = stored(ctx, owner).await?;
    let noted = &BTreeMap::new();
    for some in all.chunks(AT_ONCE) {
        let writes = some.iter().map(|stored| async move {
            let wanted = shard::wanted(&stored.spec);
            let revision = stored.spec.combinations.iter().map(|one| one.revision).max().unwrap_or_default();
            let facts = Facts { revision, uids, noted, order: stored.spec.order.as_ref(), given: None };
            update(ctx, owner, stored, wanted.as_ref(), &facts).await
        });
        for done in join_all(writes).await {
            wrote |= done?.0;
        }
    }
    Ok(wrote)
}

/// The owner's shards with all rows where they go, and whether anything was written for that.
async fn stored(ctx: &StoreContext, owner: &Owner) -> Result<(Vec<SyncShard>, bool), Failure> {
    let mut all = own_shards::stored(ctx, owner).await?;
    if let Some(later) = all.iter().find(|stored| stored.spec.format > FORMAT) {
        return Err(Failure::Stored(format!(
            "SyncShard {} has format {} and this version reads format {FORMAT}: nothing is changed; upgrade the operator",
            meta::name(later),
            later.spec.format
        )));
    }
    let mut wrote = grow::arrive(ctx, &mut all).await?;
    wrote |= repoint(ctx, owner, &mut all).await?;
    Ok((all, wrote))
}

/// What rows are written with.
struct Facts<'a> {
    revision: i64,
    /// Identities of clusters known now.
    uids: &'a BTreeMap<ClusterId, String>,
    /// What was given up on clusters that are wanted.
    noted: &'a BTreeMap<ClusterId, Vec<GivenUp>>,
    /// Which apps wait for which.
    order: Option<&'a ShardOrder>,
    /// What clusters have that had their turn in a rollout; absent where all have.
    given: Option<&'a BTreeSet<Combination>>,
}

fn with_uids(spec: SyncShardSpec, uids: &BTreeMap<ClusterId, String>) -> SyncShardSpec {
    shard::record_uids(&spec, uids).unwrap_or(spec)
}

/// Without a share, rows are to have what they are to have already.
async fn update(
    ctx: &StoreContext,
    owner: &Owner,
    stored: &SyncShard,
    share: Option<&Share>,
    facts: &Facts<'_>,
) -> Result<(bool, SyncShardSpec), Failure> {
    let Facts { revision, uids, noted, order, given } = *facts;
    let next = meta::writes(stored) + 1;
    // Rows of clusters that others took the place of begin anew, in the same write.
    let replaced = shard::replaced(&stored.spec, stored.status.as_ref(), next, uids);
    let base = replaced.as_ref().unwrap_or(&stored.spec);
    let fresh = share.and_then(|share| shard::retarget(base, stored.status.as_ref(), next, revision, share));
    let fresh = match fresh {
        Some(spec) => Some(with_uids(spec, uids)),
        None => shard::record_uids(base, uids).or(replaced),
    };
    let back = shard::take_back(fresh.as_ref().unwrap_or(&stored.spec), next, noted);
    let fresh = back.or(fresh);
    let ordered = match &fresh {
        Some(fresh) => depends::ordered(fresh, order, given),
        None => depends::ordered_alone(&stored.spec, order, given),
    };
    // The shards of an owner that was made again, as by a restore, are those of its namesake: they follow.
    let uid = Some(&owner.uid).filter(|uid| !uid.is_empty() && **uid != stored.spec.owner.uid);
    let fresh = match (ordered.or(fresh), uid) {
        (None, None) => return Ok((false, stored.spec.clone())),
        (fresh, None) => fresh.unwrap_or_else(|| stored.spec.clone()),
        (fresh, Some(uid)) => {
            let mut fresh = fresh.unwrap_or_else(|| stored.spec.clone());
            fresh.owner.uid.clone_from(uid);
            fresh
        }
    };
    let fresh = shortened(ctx, owner, fresh).await?;
    if identity_sets(&stored.spec) > identity_sets(&fresh) {
        request_collection(ctx);
    }
    let targeted = replace(ctx, stored, fresh).await?;
    hand_over(ctx, &targeted);
    Ok((true, targeted.spec))
}

/// Workers act on what the hub has: its answer says that as well as the watch, and sooner.
fn hand_over(ctx: &StoreContext, targeted: &SyncShard) {
    if let Some(workers) = &ctx.revisions.workers {
        workers.targeted(targeted.clone());
    }
}

fn identity_sets(spec: &SyncShardSpec) -> usize {
    spec.clusters.iter().flat_map(|row| &row.held).filter(|held| held.identities.is_some()).count()
}

/// Replaces what long rows hold by identity sets, stored before the spec names them. Where a content cannot be read the row
/// stays long: an inventory with a hole is none.
async fn shortened(ctx: &StoreContext, owner: &Owner, spec: SyncShardSpec) -> Result<SyncShardSpec, Failure> {
    if shard::overlong(&spec).is_empty() {
        return Ok(spec);
    }
    let contents = contents_of(ctx, owner, &spec).await?;
    match shard::collapse_held(spec.clone(), |content| contents.identities(content)) {
        Ok(collapsed) => {
            for pack in &collapsed.packs {
                store_pack(ctx, owner, pack).await?;
            }
            Ok(collapsed.spec)
        }
        Err(why) => {
            let LogFields { project, deployment, object } = owner.log_fields(ctx);
            tracing::warn!(project, deployment, object, %why, "what a row holds cannot be shortened");
            Ok(spec)
        }
    }
}

async fn create(
    ctx: &StoreContext,
    owner: &Owner,
    slot: (i64, i32),
    share: &Share,
    facts: &Facts<'_>,
) -> Result<Option<SyncShardSpec>, Failure> {
    let Facts { revision, uids, noted, order, given } = *facts;
    let empty = empty(owner, ctx.epoch, slot);
    let Some(spec) = shard::retarget(&empty, None, 1, revision, share) else { return Ok(None) };
    let spec = with_uids(spec, uids);
    let spec = shard::take_back(&spec, 1, noted).unwrap_or(spec);
    let spec = depends::ordered(&spec, order, given).unwrap_or(spec);
    Ok(Some(grow::make(ctx, owner, revision, spec).await?.spec))
}
