//! Finds what apps still have on clusters that the newest revision takes them from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::set::ManifestSet;
use emco_engine::shard::{self, Content, Row};

use crate::object::Owner;
use crate::object::context::Failure;
use crate::store::{StoreContext, Stored, contexts, load, shards};

/// By cluster and app; `None` where it cannot be read.
pub type Leaving = BTreeMap<(ClusterId, String), Option<Arc<ManifestSet>>>;

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
    let mut sets: BTreeMap<SetDigest, Arc<ManifestSet>> = BTreeMap::new();
    for context in contexts(ctx, owner).iter().filter(|context| revisions.contains(&context.spec.revision)) {
        if let Ok(running) = load(ctx, context).await? {
            let wanted = applied.iter().filter_map(|(_, _, digest)| running.sets.get_key_value(digest));
            sets.extend(wanted.map(|(digest, set)| (digest.clone(), Arc::clone(set))));
        }
    }
    let known = |(cluster, app, digest)| ((cluster, app), sets.get(&digest).cloned());
    Ok(applied.into_iter().map(known).collect())
}

/// Revisions that a row names.
fn named(row: &Row) -> impl Iterator<Item = i64> + '_ {
    let held = row.may_have.iter().filter_map(|content| match content {
        Content::Sets(target) => Some(target),
        Content::Identities(_) => None,
    });
    row.target.iter().chain(held).map(|target| target.revision)
}
