//! Finds what apps still have on clusters that the newest revision takes them from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::shard::{self, Content, Row};
use emco_engine::snapshot::{self, Running};

use crate::object::Owner;
use crate::object::context::Failure;
use crate::store::{StoreContext, Stored, contexts, load, shards};

/// By cluster and app; `None` where it cannot be read.
pub type Leaving = BTreeMap<(ClusterId, String), Option<snapshot::Leaving>>;

/// What was applied completely and is not part of the newest revision. Nothing is read where nothing leaves.
pub async fn leaving(ctx: &StoreContext, owner: &Owner, newest: Option<&Stored>) -> Result<Leaving, Failure> {
    let stays = |cluster: &ClusterId, app: &str| {
        let assignment = newest.and_then(|newest| newest.running.assignment.get(cluster));
        assignment.is_some_and(|apps| apps.contains_key(app))
    };
    let mut applied: Vec<(ClusterId, String, SetDigest)> = Vec::new();
    let mut revisions = BTreeSet::new();
    for stored in shards(ctx, owner) {
        for mut row in shard::rows(&stored.spec, stored.status.as_ref()) {
            let mut apps = row.applied_apps.take().unwrap_or_default();
            apps.retain(|app, _| !stays(&row.cluster, app));
            if !apps.is_empty() {
                revisions.extend(named(&row));
                applied.extend(apps.into_iter().map(|(app, set)| (row.cluster.clone(), app, set)));
            }
        }
    }
    let mut found: BTreeMap<SetDigest, snapshot::Leaving> = BTreeMap::new();
    let wanted: BTreeSet<&SetDigest> = applied.iter().map(|(_, _, digest)| digest).collect();
    for context in contexts(ctx, owner).iter().filter(|context| revisions.contains(&context.spec.revision)) {
        if let Ok(running) = load(ctx, context).await? {
            let bases = bases(&running);
            let stored = |digest: &SetDigest| {
                let set = Arc::clone(running.sets.get(digest)?);
                let base = bases.get(digest).and_then(|base| running.sets.get(*base)).cloned();
                Some((digest.clone(), snapshot::Leaving { set, base }))
            };
            found.extend(wanted.iter().copied().filter_map(stored));
        }
    }
    let known = |(cluster, app, digest)| ((cluster, app), found.get(&digest).cloned());
    Ok(applied.iter().cloned().map(known).collect())
}

/// What sets of a revision were edited from.
fn bases(running: &Running) -> BTreeMap<&SetDigest, &SetDigest> {
    let cells = running.assignment.values().flat_map(BTreeMap::values);
    cells.filter(|cell| cell.edits.is_some()).map(|cell| (&cell.set, cell.base())).collect()
}

/// Revisions that a row names.
fn named(row: &Row) -> impl Iterator<Item = i64> + '_ {
    let held = row.may_have.iter().filter_map(|content| match content {
        Content::Sets(target) => Some(target),
        Content::Identities(_) => None,
    });
    row.target.iter().chain(held).map(|target| target.revision)
}
