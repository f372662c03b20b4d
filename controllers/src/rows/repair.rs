//! Repairs revisions whose packs are not all there: stores the missing ones again, or points rows at another revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::SyncShard;
use emco_engine::identity::SetDigest;
use emco_engine::pack;
use emco_engine::set::ManifestSet;
use emco_engine::shard;

use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::store::{StoreContext, Stored, contexts, load, read_pack, replace, store_pack, stored_shards};

/// What a row says whose content cannot be read.
const LOST: &str = "ContentLost";

/// Lets go of what was read before where a row says that its content cannot be read: it is read again, and then known to be
/// missing.
pub fn invalidate_lost(ctx: &StoreContext, owner: &Owner) {
    if !stored_shards(ctx, owner).iter().any(|stored| reports_loss(stored)) {
        return;
    }
    let mut contents = ctx.revisions.contents.lock();
    for context in contexts(ctx, owner) {
        contents.forget(meta::uid(context.as_ref()));
    }
}

fn reports_loss(stored: &SyncShard) -> bool {
    let rows = stored.status.iter().flat_map(|status| &status.clusters);
    rows.filter_map(|row| row.error.as_ref()).any(|error| error.reason == LOST)
}

/// Stores what a revision names and the hub does not have: a write that was lost while the others arrived, or a pack that
/// somebody deleted or replaced. Nothing is asked or written where everything could be read. The names of packs are digests
/// of their content, so only the very same content is ever put back. False where that cannot be made again: then the
/// content needs a new revision.
pub async fn repair_packs(
    ctx: &StoreContext,
    owner: &Owner,
    stored: &Stored,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Result<bool, Failure> {
    let running = &stored.running;
    let assigned = running.assignment.values().flat_map(BTreeMap::values);
    let missing: BTreeSet<&SetDigest> =
        assigned.map(|assigned| &assigned.set).filter(|set| !running.sets.contains_key(*set)).collect();
    if missing.is_empty() {
        return Ok(true);
    }
    // What cannot be made now, because its cluster was not heard of yet, waits: a new revision would not have it either.
    if missing.iter().any(|set| !sets.contains_key(*set)) {
        return Ok(true);
    }
    let all: Vec<Arc<ManifestSet>> = sets.values().cloned().collect();
    let packs = pack::write_sets(&owner.uid, &all)
        .map_err(|error| Failure::Stored(format!("the packs cannot be made again: {error}")))?;
    let mut whole = true;
    for named in &stored.spec.packs {
        if read_pack(ctx, named).await?.is_ok() {
            continue;
        }
        match packs.iter().find(|made| made.name == named.name) {
            Some(made) => store_pack(ctx, owner, made).await?,
            None => whole = false,
        }
    }
    if whole {
        let (revision, LogFields { project, deployment, object }) =
            (stored.spec.revision, owner.log_fields(ctx));
        tracing::info!(project, deployment, object, revision, "packs that were missing are stored again");
    }
    Ok(whole)
}

/// Where combinations name a revision that is gone or cannot be read, and another one has the same sets, they name that one
/// from now on: what a row may have is the same, and can be read again. Nothing is read where nothing is missing.
pub async fn repoint(ctx: &StoreContext, owner: &Owner, all: &mut [SyncShard]) -> Result<bool, Failure> {
    let known = contexts(ctx, owner);
    let gone = |stored: &SyncShard| {
        let named = stored.spec.combinations.iter();
        named
            .map(|c| c.revision)
            .any(|revision| !known.iter().any(|context| context.spec.revision == revision))
    };
    if !all.iter().any(|stored| gone(stored) || reports_loss(stored)) {
        return Ok(false);
    }
    let mut readable: BTreeMap<i64, BTreeSet<SetDigest>> = BTreeMap::new();
    for context in &known {
        if let Ok(running) = load(ctx, context).await? {
            readable.insert(context.spec.revision, running.sets.keys().cloned().collect());
        }
    }
    let mut wrote = false;
    for stored in all {
        if let Some(spec) = shard::restamp(&stored.spec, &readable) {
            let (shard, LogFields { project, deployment, object }) =
                (meta::name(stored), owner.log_fields(ctx));
            tracing::info!(
                project,
                deployment,
                object,
                shard,
                "content that was lost is read from another revision"
            );
            *stored = replace(ctx, stored, spec).await?;
            wrote = true;
        }
    }
    Ok(wrote)
}
