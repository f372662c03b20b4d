//! Sets the targets of a shard's clusters: the write-ahead itself.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::status::Applied;
use emco_crds::sync_shard::{AppSet, Held, ShardCombination, ShardRow};
use emco_crds::{SyncShardSpec, SyncShardStatus};

use super::untouched::is_untouched;
use super::{apps, by_name, cluster_id, decode_status, is_complete, is_live};
use crate::identity::{ClusterId, Combination};

/// Sets the targets of a shard. `wanted` holds all clusters of this shard's slot (and part); a cluster that is not in it, or
/// is to have no app, loses everything; its row leaves at once where nothing was ever sent there. `next_write` is the number that this write has ([`super::writes`] of the shard + 1, or
/// 1 for a new one), `revision` the one that makes combinations the shard does not have yet.
///
/// `None`: nothing needs to be written. Otherwise the caller sets `epoch` and `writes` and writes with the resourceVersion that
/// `spec` and `status` were read with. Before that, [`super::collapse_held`] has to shorten rows that became [`super::overlong`].
pub fn retarget(
    spec: &SyncShardSpec,
    status: Option<&SyncShardStatus>,
    next_write: i64,
    revision: i64,
    wanted: &BTreeMap<ClusterId, Combination>,
) -> Option<SyncShardSpec> {
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    let applied: BTreeMap<i64, Applied> =
        known.iter().filter_map(|(id, row)| Some((*id, row.applied.clone()?))).collect();
    let mut names = Names::new(&spec.combinations, next_write, revision);
    let mut fresh = SyncShardSpec { clusters: Vec::new(), ..spec.clone() };
    let mut present = BTreeSet::new();
    let mut changed = false;
    for row in &spec.clusters {
        let cluster = cluster_id(&row.cluster);
        let want = wanted.get(&cluster).filter(|apps| !apps.is_empty());
        // A second row of one cluster is not ours to write; it is emptied, never dropped with what it knows.
        let want = if present.insert(cluster) { want } else { None };
        let target = want.map(|apps| names.of(apps));
        let untouched = is_untouched(row, known.get(&row.id));
        let is_over = untouched || row.target.is_none() && is_complete(row, applied.get(&row.id));
        if target.is_none() && is_over {
            changed = true;
            continue;
        }
        changed |= target != row.target;
        let mut row = aimed(row, target, next_write);
        if untouched {
            row.held.clear();
        }
        fresh.clusters.push(row);
    }
    for (cluster, apps) in
        wanted.iter().filter(|(cluster, apps)| !apps.is_empty() && !present.contains(*cluster))
    {
        let (id, target) = (fresh.next_id, Some(names.of(apps)));
        fresh.next_id += 1;
        changed = true;
        fresh.clusters.push(ShardRow {
            id,
            cluster: cluster.to_string(),
            uid: None,
            target,
            held: Vec::new(),
        });
    }
    if !changed {
        return None;
    }
    for row in &mut fresh.clusters {
        row.held.retain(|held| is_live(held, applied.get(&row.id)));
    }
    fresh.combinations = names.all;
    drop_unused(&mut fresh, &applied);
    Some(fresh)
}

/// What rows are to have, for a [`retarget`] that leaves each its target. `None` where that cannot be said so: a row names what the
/// shard does not have, or whatever carries the owner's label, or two rows are of one cluster.
pub fn wanted(spec: &SyncShardSpec) -> Option<BTreeMap<ClusterId, Combination>> {
    let clusters: BTreeSet<&str> = spec.clusters.iter().map(|row| row.cluster.as_str()).collect();
    if clusters.len() < spec.clusters.len() {
        return None;
    }
    let combinations = by_name(spec);
    let targeted = spec.clusters.iter().filter_map(|row| Some((row, row.target.as_deref()?)));
    let combination = |(row, name): (&ShardRow, &str)| {
        let apps = combinations.get(name).map(|combination| apps(combination))?;
        (!apps.is_empty()).then(|| (cluster_id(&row.cluster), apps))
    };
    targeted.map(combination).collect()
}

/// The row with another target; the old one joins what may be there.
fn aimed(row: &ShardRow, target: Option<String>, since: i64) -> ShardRow {
    let mut row = row.clone();
    if target == row.target {
        return row;
    }
    if let Some(old) = std::mem::replace(&mut row.target, target) {
        // Once is enough, with the later write: who worked that off has worked off the earlier one.
        row.held.retain(|held| held.combination.as_ref() != Some(&old));
        row.held.push(Held { combination: Some(old), identities: None, since });
    }
    row
}

/// Combinations that no row names any more, neither in the spec nor as applied, are dropped.
pub(super) fn drop_unused(spec: &mut SyncShardSpec, applied: &BTreeMap<i64, Applied>) {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for row in &spec.clusters {
        used.extend(row.target.as_deref());
        used.extend(row.held.iter().filter_map(|held| held.combination.as_deref()));
        used.extend(applied.get(&row.id).and_then(|a| a.combination.as_deref()));
    }
    let keep: Vec<bool> = spec.combinations.iter().map(|c| used.contains(c.name.as_str())).collect();
    let mut keep = keep.into_iter();
    spec.combinations.retain(|_| keep.next().unwrap_or(true));
}

/// Names of combinations: each content once, each name once in the life of a shard. A write has its number alone, so names
/// made of it never meet another meaning, not even in the memory of a worker that lags behind.
struct Names {
    all: Vec<ShardCombination>,
    known: BTreeMap<Combination, String>,
    write: i64,
    revision: i64,
    made: usize,
}

impl Names {
    fn new(combinations: &[ShardCombination], write: i64, revision: i64) -> Self {
        let known = combinations.iter().map(|c| (apps(c), c.name.clone())).collect();
        Self { all: combinations.to_vec(), known, write, revision, made: 0 }
    }

    fn of(&mut self, wanted: &Combination) -> String {
        if let Some(name) = self.known.get(wanted) {
            return name.clone();
        }
        let name = match self.made {
            0 => format!("t{}", self.write),
            n => format!("t{}.{n}", self.write),
        };
        self.made += 1;
        let apps = wanted.iter().map(|(app, set)| AppSet { app: app.clone(), set: set.0.clone() }).collect();
        self.all.push(ShardCombination { name: name.clone(), revision: self.revision, apps });
        self.known.insert(wanted.clone(), name.clone());
        name
    }
}

/// Records the identity of clusters in rows that have none yet, before the first apply. An identity that is there stays:
/// another one behind the same name is another cluster, and nothing of this row may be done to it. `None`: nothing to write.
pub fn record_uids(spec: &SyncShardSpec, uids: &BTreeMap<ClusterId, String>) -> Option<SyncShardSpec> {
    let mut fresh = spec.clone();
    for row in fresh.clusters.iter_mut().filter(|row| row.uid.is_none()) {
        row.uid = uids.get(&cluster_id(&row.cluster)).cloned();
    }
    (fresh != *spec).then_some(fresh)
}

#[cfg(test)]
mod tests {
    use super::super::adopt;
    use super::*;
    use crate::identity::SetDigest;

    fn combination(set: &str) -> Combination {
        Combination::from([("web".to_owned(), SetDigest(set.to_owned()))])
    }

    /// The clusters `a`, which is to have something else than `b`, and `c`, which has nothing any more.
    fn spec() -> SyncShardSpec {
        let id = |name: &str| ClusterId::new("acme", name);
        let uids = ["a", "b", "c"].map(|name| (id(name), format!("uid-{name}"))).into();
        let before = ["a", "b", "c"].map(|name| (id(name), combination("one"))).into();
        let spec = retarget(&SyncShardSpec::default(), None, 1, 1, &before).unwrap();
        let spec = record_uids(&spec, &uids).unwrap();
        let now = [(id("a"), combination("two")), (id("b"), combination("one"))].into();
        retarget(&spec, None, 2, 2, &now).unwrap()
    }

    #[test]
    fn rows_that_are_to_have_what_they_have_are_not_written() {
        let spec = spec();
        let wanted = wanted(&spec).unwrap();
        assert_eq!(wanted.len(), 2);
        assert_eq!(retarget(&spec, None, 3, 3, &wanted), None);
    }

    #[test]
    fn nothing_is_said_of_rows_whose_target_is_lost_found_or_doubled() {
        let mut lost = spec();
        lost.combinations.clear();
        assert_eq!(wanted(&lost), None);
        let found = [(ClusterId::new("acme", "d"), Some("uid-d".to_owned()))].into();
        assert_eq!(wanted(&adopt(&spec(), &found).unwrap()), None);
        let mut doubled = spec();
        doubled.clusters.extend(doubled.clusters.clone());
        assert_eq!(wanted(&doubled), None);
    }
}
