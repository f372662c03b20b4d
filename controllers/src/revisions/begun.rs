//! Revisions that were just targeted in; so long their owner is left alone, and what is told of them then, out.
//!
//! What people read (statuses, Events, explanations) and what only tidies up is no part of the way to the clusters. It waits
//! until they had their turn: whoever writes it takes processor time from those who apply. All of it follows from what is
//! stored; what is remembered here only puts it off, and a process that begins remembers nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Owner, stored_shards};
use crate::context::Context;

/// What was targeted and not told of yet, by owner hash.
#[derive(Default)]
pub struct Begun(Mutex<BTreeMap<String, Entry>>);

struct Entry {
    /// The owner's generation that was planned.
    generation: i64,
    until: Instant,
    /// Revisions that clusters were to have, with what is new in them.
    revisions: BTreeMap<i64, News>,
}

/// What is told of a revision once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// What differs from the one before; empty where the process that knew it is gone.
    pub summary: String,
    /// Sentences for people.
    pub warnings: Vec<String>,
}

/// Clusters are to have this revision from now on.
pub fn begin(ctx: &Context, owner: &Owner, generation: i64, revision: i64, news: News) {
    let until = Instant::now() + ctx.revisions.settings.quiet;
    let mut all = ctx.revisions.begun.0.lock();
    let mut revisions = all.remove(&owner.hash).map(|entry| entry.revisions).unwrap_or_default();
    revisions.insert(revision, news);
    all.insert(owner.hash.clone(), Entry { generation, until, revisions });
}

/// So long the owner is left alone: clusters are at work on what was targeted, and the owner was not changed since.
pub fn quiet(ctx: &Context, owner: &Owner, generation: i64) -> Option<Duration> {
    let until = {
        let all = ctx.revisions.begun.0.lock();
        all.get(&owner.hash).filter(|entry| entry.generation == generation)?.until
    };
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
    let told = stored_shards(ctx, owner).iter().all(|shard| {
        let status = shard.status.as_ref();
        status.and_then(|status| status.observed_generation) == shard.metadata.generation
    });
    (!told).then_some(left)
}

/// Whether clusters were to have this revision, as far as this process knows.
pub(super) fn was_targeted(ctx: &Context, owner: &Owner, revision: i64) -> bool {
    ctx.revisions.begun.0.lock().get(&owner.hash).is_some_and(|entry| entry.revisions.contains_key(&revision))
}

/// What is new in a revision that is told of now.
pub fn news(ctx: &Context, owner: &Owner, revision: i64) -> News {
    let mut all = ctx.revisions.begun.0.lock();
    let Some(entry) = all.get_mut(&owner.hash) else { return News::default() };
    let news = entry.revisions.remove(&revision).unwrap_or_default();
    if entry.revisions.is_empty() {
        all.remove(&owner.hash);
    }
    news
}

/// Nothing is to be told of an owner that ended.
pub(super) fn forget(ctx: &Context, owner: &Owner) {
    ctx.revisions.begun.0.lock().remove(&owner.hash);
}
