//! A revision whose packs are not all there, and the sets that a plan made of it again, in; the missing packs, stored, out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::SetDigest;
use emco_engine::pack;
use emco_engine::set::ManifestSet;

use super::commit::store_pack;
use super::{Owner, Stored};
use crate::context::{Context, Failure};

/// Stores what a revision names and the hub does not have: a write that was lost while the others arrived, or a pack that
/// somebody deleted. Nothing is asked or written where everything could be read. The names of packs are digests of their
/// content, so only the very same content is ever put back.
pub async fn mend(
    ctx: &Context,
    owner: &Owner,
    stored: &Stored,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Result<(), Failure> {
    let running = &stored.running;
    let assigned = running.assignment.values().flat_map(BTreeMap::values);
    let missing: BTreeSet<&SetDigest> =
        assigned.map(|assigned| &assigned.set).filter(|set| !running.sets.contains_key(*set)).collect();
    if missing.is_empty() || missing.iter().any(|set| !sets.contains_key(*set)) {
        return Ok(());
    }
    let all: Vec<Arc<ManifestSet>> = sets.values().cloned().collect();
    let packs = pack::write_sets(&owner.uid, &all)
        .map_err(|error| Failure::Stored(format!("the packs cannot be made again: {error}")))?;
    for object in &packs {
        if stored.spec.packs.iter().any(|named| named.name == object.name) {
            store_pack(ctx, owner, object).await?;
        }
    }
    tracing::info!(context = stored.name, "packs that were missing are stored again");
    Ok(())
}
