//! A shard that outgrew one object in, two new shards with the same inventory out.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::status::Applied;
use emco_crds::sync_shard::{Held, ShardCombination, ShardRow};
use emco_crds::{RowStatus, SyncShardSpec, SyncShardStatus};

use super::{MOST_BITS, cluster_id, decode_status, encode_status, is_complete, is_live, slot};

/// One of the two new shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Half {
    /// To be created; complete in itself: without the status, work is done again, and nothing is forgotten.
    pub spec: SyncShardSpec,
    /// To be written after the creation. Its generation is 1, that of a new object.
    pub status: SyncShardStatus,
}

/// Divides a shard by the next leading bit of its clusters' slots (or by the first later bit that divides them at all).
/// `None` where no bit does.
///
/// The caller creates both, and only then removes the old one, without retargeting it in between. While all three exist the
/// new ones hold: what they may have includes all that the old one may have.
pub fn split(spec: &SyncShardSpec, status: Option<&SyncShardStatus>) -> Option<[Half; 2]> {
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    for bits in spec.bits + 1..=MOST_BITS {
        let (left, right): (Vec<&ShardRow>, Vec<&ShardRow>) =
            spec.clusters.iter().partition(|row| slot(&cluster_id(&row.cluster), bits) & 1 == 0);
        if !left.is_empty() && !right.is_empty() {
            return Some([half(spec, &known, &left, bits)?, half(spec, &known, &right, bits)?]);
        }
    }
    None
}

fn half(
    spec: &SyncShardSpec,
    known: &BTreeMap<i64, RowStatus>,
    rows: &[&ShardRow],
    bits: i32,
) -> Option<Half> {
    let mut names = BTreeMap::new();
    let mut clusters = Vec::new();
    let mut statuses = BTreeMap::new();
    for (id, row) in (1..).zip(rows) {
        let before = known.get(&row.id);
        let applied = before.and_then(|s| s.applied.as_ref());
        let (row, applied) = moved(row, applied, id, &mut names);
        if let Some(before) = before {
            statuses.insert(id, RowStatus { id, applied, ..before.clone() });
        }
        clusters.push(row);
    }
    let used: BTreeSet<&str> = names.keys().map(String::as_str).collect();
    let combinations = spec
        .combinations
        .iter()
        .filter(|c| used.contains(c.name.as_str()))
        .map(|c| ShardCombination { name: names.get(&c.name).cloned().unwrap_or_default(), ..c.clone() })
        .collect();
    let next_id = i64::try_from(clusters.len()).ok()?.checked_add(1)?;
    let slot = slot(&cluster_id(&clusters.first()?.cluster), bits);
    let spec = SyncShardSpec { slot, bits, part: 0, next_id, combinations, clusters, ..spec.clone() };
    let status = encode_status(&spec, 1, &statuses);
    Some(Half { spec, status })
}

/// A row in a new shard, whose first generation is 1. What was applied joins what is held, because the new object begins
/// without status; a complete row needs nothing but its target.
fn moved(
    row: &ShardRow,
    applied: Option<&Applied>,
    id: i64,
    names: &mut BTreeMap<String, String>,
) -> (ShardRow, Option<Applied>) {
    let mut renamed = |name: &String| {
        let next = names.len();
        let fresh = || if next == 0 { "t1".to_owned() } else { format!("t1.{next}") };
        names.entry(name.clone()).or_insert_with(fresh).clone()
    };
    let target = row.target.as_ref().map(&mut renamed);
    let complete = is_complete(row, applied);
    let mut held: Vec<Held> = Vec::new();
    let mut last = None;
    if !complete {
        last = applied.and_then(|a| a.combination.as_ref()).map(&mut renamed);
        held.extend(last.clone().map(|name| Held { combination: Some(name), identities: None, since: 1 }));
        for entry in row.held.iter().filter(|held| is_live(held, applied)) {
            let combination = entry.combination.as_ref().map(&mut renamed);
            let entry = Held { combination, identities: entry.identities.clone(), since: 1 };
            if !held.contains(&entry) {
                held.push(entry);
            }
        }
    }
    let applied = applied.map(|_| Applied {
        combination: if complete { target.clone() } else { last },
        // Before the first generation: everything held is still to be worked off.
        generation: i64::from(complete),
    });
    (ShardRow { id, cluster: row.cluster.clone(), uid: row.uid.clone(), target, held }, applied)
}
