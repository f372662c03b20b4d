//! Writes targets of clusters as rows of shards, and reads from rows and results what a worker has to do. The
//! write-ahead of everything that is done to edges.
//!
//! One write of a shard's spec sets a new target and keeps the old one in `held`, with the number of the write that added it
//! ([`writes`]). Workers act on what they read back from the hub, never on what is about to be written. So at any moment, and
//! after any crash: **whatever an owner has on a cluster is in `applied ∪ held ∪ target` of its row.** When a worker that read
//! write W finds the target applied and everything else gone, it reports `applied = {target, W}`: entries of `held` that were
//! there at W (`since <= W`) say nothing any more.
//!
//! A row needs no status to be safe: what was applied last is its target, or was put into `held` when the target changed. So a
//! hub that was restored without statuses forgets nothing; its workers look again at what they had completed.
//!
//! Spec and status passed here must be of one and the same version of the object, and be written back with its
//! resourceVersion: that makes each function an atomic step.

mod collapse;
mod found;
mod ledger;
mod replace;
mod retarget;
mod split;
mod status;
mod untouched;
mod writes;

use std::collections::BTreeMap;

use emco_crds::sync_shard::status::{Applied, RowHooks};
use emco_crds::sync_shard::{Held, IdentitiesRef, ShardCombination, ShardRow};
use emco_crds::{RowStatus, SyncShardSpec, SyncShardStatus};
use sha2::{Digest, Sha256};

use crate::identity::{ClusterId, Combination, SetDigest};

pub use collapse::{Collapsed, Named, collapse_held, overlong};
pub use found::{adopt, search};
pub use ledger::{GivenUp, leaving, note, take_back, taken};
pub use replace::replaced;
pub use retarget::{record_uids, retarget, wanted};
pub use split::{Half, carried, divide, dividing_bit, home, restamp, superseded, vacant, without};
pub use status::{
    MOST_RESTORED, MOST_STRIPPED, decode_status, encode_status, failed, is_failure, is_ready, ready_condition,
};
pub use writes::writes;

/// Largest shard, in bytes of its JSON: above it, a shard is split. (Soft: a namespace that terminates takes no new shards.)
pub const LARGEST: usize = 96 * 1024;
/// Above this number, the entries of `held` become one identity set.
pub const MOST_HELD: usize = 4;
/// Most leading bits of a slot.
pub const MOST_BITS: i32 = 30;
/// Longest message of a row's error, in bytes.
pub const LONGEST_ERROR: usize = 256;

/// Revision of a combination that names nothing: whatever carries the owner's label on the cluster. It is held where an
/// inventory may know too little, and then a scan of all kinds takes its place.
pub const FOUND: i64 = 0;
/// Its name in every shard.
const FOUND_NAME: &str = "found";

/// A combination, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name in the shard.
    pub name: String,
    /// The revision that made it: its `AppContext` names the packs.
    pub revision: i64,
    /// App to set.
    pub apps: Combination,
}

impl Target {
    /// Whether it stands for whatever carries the owner's label.
    pub const fn is_found(&self) -> bool {
        self.revision == FOUND
    }
}

/// Something that may be on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All objects of these sets.
    Sets(Target),
    /// The identities in this pack.
    Identities(IdentitiesRef),
}

/// One cluster of a shard, for a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Never used again in this shard.
    pub id: i64,
    /// The cluster.
    pub cluster: ClusterId,
    /// The identity the cluster had when work began; another one now means another cluster behind the name.
    pub uid: Option<String>,
    /// What it shall have; `None` = nothing of this owner.
    pub target: Option<Target>,
    /// What may be there besides the target: pruned once the target is there.
    pub may_have: Vec<Content>,
    /// The write of the shard since which the oldest of that may be there, without what is searched; 0 = none.
    pub held_since: i64,
    /// The last write of the shard that gave it another target; 0 = none is known of.
    pub retargeted: i64,
    /// The last complete one.
    pub applied: Option<Applied>,
    /// The set of each app that was completely applied last; `None` before the first.
    pub applied_apps: Option<Combination>,
    /// Hooks that ran.
    pub hooks: Vec<RowHooks>,
    /// Whether the status says that nothing is left to be done. (Drift and health are not in it.)
    pub complete: bool,
    /// Combinations that the row names and the shard does not have. While there is one, nothing may be pruned.
    pub lost: Vec<String>,
}

/// The rows of a shard, in its order.
pub fn rows(spec: &SyncShardSpec, status: Option<&SyncShardStatus>) -> Vec<Row> {
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    let combinations = by_name(spec);
    spec.clusters.iter().map(|row| resolve(row, known.get(&row.id), &combinations)).collect()
}

fn resolve(
    row: &ShardRow,
    status: Option<&RowStatus>,
    combinations: &BTreeMap<&str, &ShardCombination>,
) -> Row {
    let find = |name: &str| combinations.get(name).map(|c| target(c));
    let applied = status.and_then(|s| s.applied.clone());
    let lost = lost(row, applied.as_ref(), |name| combinations.contains_key(name));
    let wanted = row.target.as_deref().and_then(find);
    let before = applied.as_ref().and_then(|a| a.combination.as_deref()).and_then(find);
    let applied_apps = before.as_ref().map(|t| t.apps.clone());
    let mut may_have: Vec<Content> = before.into_iter().map(Content::Sets).collect();
    let mut held_since = 0;
    for held in row.held.iter().filter(|held| is_live(held, applied.as_ref())) {
        let searched = held.combination.as_deref() == Some(FOUND_NAME);
        if !searched && (held_since == 0 || held.since < held_since) {
            held_since = held.since;
        }
        may_have.extend(held.combination.as_deref().and_then(find).map(Content::Sets));
        may_have.extend(held.identities.clone().map(Content::Identities));
    }
    let mut distinct: Vec<Content> = Vec::new();
    for content in may_have {
        let is_target = matches!(&content, Content::Sets(t) if Some(&t.name) == row.target.as_ref());
        if !is_target && !distinct.contains(&content) {
            distinct.push(content);
        }
    }
    Row {
        id: row.id,
        cluster: cluster_id(&row.cluster),
        uid: row.uid.clone(),
        complete: is_complete(row, applied.as_ref()) && lost.is_empty(),
        target: wanted,
        may_have: distinct,
        held_since,
        retargeted: retargeted(row),
        applied,
        applied_apps,
        hooks: status.map(|s| s.hooks.clone()).unwrap_or_default(),
        lost,
    }
}

/// Combinations that a row names, as far as that still says something, and its shard does not have.
pub fn lost(row: &ShardRow, applied: Option<&Applied>, has: impl Fn(&str) -> bool) -> Vec<String> {
    let before = applied.and_then(|applied| applied.combination.as_deref());
    let held = row.held.iter().filter(|held| is_live(held, applied));
    let held = held.filter_map(|held| held.combination.as_deref());
    let mut lost: Vec<String> = Vec::new();
    for name in row.target.as_deref().into_iter().chain(before).chain(held).filter(|name| !has(name)) {
        if !lost.iter().any(|known| known == name) {
            lost.push(name.to_owned());
        }
    }
    lost
}

/// The last write of the shard that gave a row another target, as far as that is not worked off; 0 = none.
pub fn retargeted(row: &ShardRow) -> i64 {
    row.held.iter().map(|held| held.since).max().unwrap_or_default()
}

/// Whether nothing is left to be done for a row: the last complete one is the target, and everything that was held was held
/// already when it was completed.
pub fn is_complete(row: &ShardRow, applied: Option<&Applied>) -> bool {
    applied.is_some_and(|a| a.combination == row.target)
        && !row.held.iter().any(|held| is_live(held, applied))
}

/// Whether an entry still says something: it came after the write that was worked off last.
fn is_live(held: &Held, applied: Option<&Applied>) -> bool {
    applied.is_none_or(|a| held.since > a.generation)
}

/// The slot of a cluster: leading bits of SHA-256 of `provider/cluster`; 0 bits = one slot for all.
pub fn slot(cluster: &ClusterId, bits: i32) -> i64 {
    let digest: [u8; 32] = Sha256::digest(cluster.as_str()).into();
    let [a, b, c, d, ..] = digest;
    let leading = i64::from(u32::from_be_bytes([a, b, c, d]));
    leading >> (32 - bits.clamp(0, MOST_BITS))
}

/// Bytes of the JSON of a shard's spec and status.
pub fn size(spec: &SyncShardSpec, status: Option<&SyncShardStatus>) -> usize {
    let length = |json: Result<Vec<u8>, _>| json.map_or(0, |json: Vec<u8>| json.len());
    let status = status.map_or(0, |status| length(serde_json::to_vec(status)));
    length(serde_json::to_vec(spec)) + status
}

fn by_name(spec: &SyncShardSpec) -> BTreeMap<&str, &ShardCombination> {
    spec.combinations.iter().map(|c| (c.name.as_str(), c)).collect()
}

fn target(combination: &ShardCombination) -> Target {
    Target { name: combination.name.clone(), revision: combination.revision, apps: apps(combination) }
}

fn apps(combination: &ShardCombination) -> Combination {
    combination.apps.iter().map(|a| (a.app.clone(), SetDigest(a.set.clone()))).collect()
}

/// The cluster of a row. Rows are written from cluster ids; a text that is none names no cluster that anybody serves.
pub fn cluster_id(text: &str) -> ClusterId {
    ClusterId::parse(text).unwrap_or_else(|| ClusterId::new("", text))
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
