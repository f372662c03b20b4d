//! Divides a shard that outgrew one object, and says which row is valid while rows move.
//!
//! A move is three writes, and nothing is retargeted on the way:
//!
//! 1. The new shard is created with the rows that leave: each with its target and with all that it may have.
//! 2. Its status is written: what was complete stays complete. Up to here the old row speaks for a cluster, from here on the
//!    new one ([`superseded`]).
//! 3. The old shard is written without these rows ([`without`]).
//!
//! Where a move stopped is seen from the two objects alone: the new one has deeper bits, and clusters of the old one.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::status::{Applied, RowGates};
use emco_crds::sync_shard::{Held, ShardCombination, ShardRow};
use emco_crds::{RowStatus, SyncShardSpec, SyncShardStatus};

use super::{
    MOST_BITS, apps, by_name, cluster_id, decode_status, encode_status, is_complete, is_live, retargeted,
    slot,
};
use crate::identity::{ClusterId, Combination};

/// A shard with rows of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Half {
    /// To be created; complete in itself: without the status, work is done again, and nothing is forgotten.
    pub spec: SyncShardSpec,
    /// To be written after the creation, as of write 1, that of a new object.
    pub status: SyncShardStatus,
}

/// The rows of a shard that leave it when it grows by the next leading bit of its clusters' slots (or by the first later bit
/// that divides them at all): those whose bit is 1. `None` where no bit does.
pub fn divide(spec: &SyncShardSpec, status: Option<&SyncShardStatus>) -> Option<Half> {
    let ids: Vec<ClusterId> = spec.clusters.iter().map(|row| cluster_id(&row.cluster)).collect();
    let bits = dividing_bit(&ids, spec.bits)?;
    let leaves = |row: &&ShardRow| slot(&cluster_id(&row.cluster), bits) & 1 == 1;
    let rows: Vec<&ShardRow> = spec.clusters.iter().filter(leaves).collect();
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    let mut names = BTreeMap::new();
    let mut clusters = Vec::new();
    for (id, row) in (1..).zip(&rows) {
        let applied = known.get(&row.id).and_then(|status| status.applied.as_ref());
        clusters.push(moved(row, applied, id, &mut names));
    }
    let rename =
        |c: &ShardCombination| Some(ShardCombination { name: names.get(&c.name)?.clone(), ..c.clone() });
    let combinations = spec.combinations.iter().filter_map(rename).collect();
    let next_id = i64::try_from(clusters.len()).ok()?.checked_add(1)?;
    let slot = slot(&cluster_id(&clusters.first()?.cluster), bits);
    let half =
        SyncShardSpec { slot, bits, part: 0, writes: 1, next_id, combinations, clusters, ..spec.clone() };
    let status = carried(spec, status, &half);
    Some(Half { spec: half, status })
}

/// The first bit after these leading ones in which slots differ.
pub fn dividing_bit(clusters: &[ClusterId], after: i32) -> Option<i32> {
    (after + 1..=MOST_BITS).find(|bits| {
        let ones = clusters.iter().filter(|id| slot(id, *bits) & 1 == 1).count();
        ones > 0 && ones < clusters.len()
    })
}

/// A row in a new shard, whose first write is 1. What was applied joins what is held, because the new object begins
/// without status; a complete row needs nothing but its target.
fn moved(
    row: &ShardRow,
    applied: Option<&Applied>,
    id: i64,
    names: &mut BTreeMap<String, String>,
) -> ShardRow {
    let mut renamed = |name: &String| {
        let next = names.len();
        let fresh = || if next == 0 { "t1".to_owned() } else { format!("t1.{next}") };
        names.entry(name.clone()).or_insert_with(fresh).clone()
    };
    let target = row.target.as_ref().map(&mut renamed);
    let mut held: Vec<Held> = Vec::new();
    if !is_complete(row, applied) {
        let last = applied.and_then(|a| a.combination.as_ref()).map(&mut renamed);
        held.extend(last.map(|name| Held { combination: Some(name), identities: None, since: 1 }));
        for entry in row.held.iter().filter(|held| is_live(held, applied)) {
            let combination = entry.combination.as_ref().map(&mut renamed);
            let entry = Held { combination, identities: entry.identities.clone(), since: 1 };
            if !held.contains(&entry) {
                held.push(entry);
            }
        }
    }
    ShardRow { id, cluster: row.cluster.clone(), uid: row.uid.clone(), target, held }
}

/// The first status of a shard that took rows over, from what the old one says now. A row that was not complete when it was
/// copied is not taken for complete, whatever became of it since.
pub fn carried(
    from: &SyncShardSpec,
    status: Option<&SyncShardStatus>,
    to: &SyncShardSpec,
) -> SyncShardStatus {
    let known = status.map(|status| decode_status(from, status)).unwrap_or_default();
    let old: BTreeMap<&str, &ShardRow> =
        from.clusters.iter().map(|row| (row.cluster.as_str(), row)).collect();
    let before = by_name(from);
    let names: BTreeMap<Combination, &str> =
        to.combinations.iter().map(|c| (apps(c), c.name.as_str())).collect();
    let mut statuses = BTreeMap::new();
    for row in &to.clusters {
        let Some(old) = old.get(row.cluster.as_str()) else { continue };
        let Some(was) = known.get(&old.id) else { continue };
        let complete = row.held.is_empty() && is_complete(old, was.applied.as_ref());
        let renamed = |applied: &Applied| {
            let content = applied.combination.as_deref().and_then(|name| before.get(name)).map(|c| apps(c));
            let combination = content.and_then(|content| names.get(&content)).map(|name| (*name).to_owned());
            // Before the first write: everything held is still to be worked off.
            Applied { combination, generation: i64::from(complete) }
        };
        let applied = was.applied.as_ref().map(renamed);
        // What was decided of dependencies is of one content too. Where nobody has that any more, it is decided anew.
        let gates = was.gates.as_ref().and_then(|gates| {
            let content = before.get(gates.combination.as_str()).map(|c| apps(c))?;
            Some(RowGates { combination: (*names.get(&content)?).to_owned(), ..gates.clone() })
        });
        // What failed of a content that nobody has any more stays that of another one.
        let of = |name: &String| {
            let content = before.get(name.as_str()).map(|c| apps(c));
            content.and_then(|content| names.get(&content)).map(|name| (*name).to_owned()).unwrap_or_default()
        };
        let target = was.target.as_ref().map(of);
        // A failure from before the last target stays that of an earlier try.
        let is_of_now = |at: i64| at >= retargeted(old);
        let failed_at = was.failed_at.map(|at| if is_of_now(at) { retargeted(row) } else { -1 });
        statuses.insert(row.id, RowStatus { id: row.id, target, failed_at, applied, gates, ..was.clone() });
    }
    encode_status(to, 1, &statuses)
}

/// A shard without rows that another one has. It keeps the part of its slot that did not leave: that beside `taken`, the slot
/// and the bits of the other one.
pub fn without(
    spec: &SyncShardSpec,
    status: Option<&SyncShardStatus>,
    clusters: &BTreeSet<ClusterId>,
    taken: (i64, i32),
) -> SyncShardSpec {
    let applied = status
        .map(|status| decode_status(spec, status))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(id, row)| Some((id, row.applied?)))
        .collect();
    let mut fresh = spec.clone();
    fresh.clusters.retain(|row| !clusters.contains(&cluster_id(&row.cluster)));
    if taken.1 > fresh.bits {
        (fresh.slot, fresh.bits) = (taken.0 ^ 1, taken.1);
    }
    super::retarget::drop_unused(&mut fresh, &applied);
    fresh
}

/// For each of an owner's shards, in the order of their names, the clusters that another of them speaks for: one with a
/// status before one without, the deeper one before the other.
pub fn superseded(shards: &[(&SyncShardSpec, Option<&SyncShardStatus>)]) -> Vec<BTreeSet<ClusterId>> {
    let mut quiet: Vec<BTreeSet<ClusterId>> = vec![BTreeSet::new(); shards.len()];
    if shards.len() < 2 {
        return quiet;
    }
    let rank = |at: usize| {
        let (spec, status) = shards.get(at)?;
        Some((status.is_some(), spec.bits, std::cmp::Reverse(at)))
    };
    let mut speaks: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, (spec, _)) in shards.iter().enumerate() {
        for row in &spec.clusters {
            // A second row of the cluster in one shard is no other shard.
            let Some(other) = speaks.insert(&row.cluster, at).filter(|other| *other != at) else { continue };
            let mut silent = other;
            if rank(other) > rank(at) {
                speaks.insert(&row.cluster, other);
                silent = at;
            }
            if let Some(set) = quiet.get_mut(silent) {
                set.insert(cluster_id(&row.cluster));
            }
        }
    }
    quiet
}

/// The shard whose slot has a cluster, by place: the deepest of several.
pub fn home(cluster: &ClusterId, slots: &[(i64, i32)]) -> Option<usize> {
    let has = |(_, (value, bits)): &(usize, &(i64, i32))| slot(cluster, *bits) == *value;
    let found =
        slots.iter().enumerate().filter(has).max_by_key(|(at, (_, bits))| (*bits, std::cmp::Reverse(*at)));
    found.map(|(at, _)| at)
}

/// Slot and bits of a new shard for a cluster that is in no shard's slot: the widest that overlaps none of them.
pub fn vacant(cluster: &ClusterId, slots: &[(i64, i32)]) -> (i64, i32) {
    let free = |bits: &i32| {
        let value = slot(cluster, *bits);
        !slots.iter().any(|(other, deep)| deep >= bits && other >> (deep - bits) == value)
    };
    let bits = (0..=MOST_BITS).find(free).unwrap_or(MOST_BITS);
    (slot(cluster, bits), bits)
}

/// Combinations whose revision cannot be read, and all of whose sets another one has, name that other one from now on: the
/// content is the same, only where it is read from changes. `readable` are the sets that revisions have. `None`: nothing to
/// write.
pub fn restamp(
    spec: &SyncShardSpec,
    readable: &BTreeMap<i64, BTreeSet<crate::identity::SetDigest>>,
) -> Option<SyncShardSpec> {
    let mut fresh = spec.clone();
    for combination in fresh.combinations.iter_mut().filter(|c| c.revision != super::FOUND) {
        let wanted = apps(combination);
        let holds = |revision: &i64| {
            readable.get(revision).is_some_and(|sets| wanted.values().all(|set| sets.contains(set)))
        };
        if !holds(&combination.revision)
            && let Some(other) = readable.keys().rev().find(|revision| holds(revision))
        {
            combination.revision = *other;
        }
    }
    (fresh != *spec).then_some(fresh)
}
