//! Counts the writes of a shard. `metadata.generation` cannot: a tool that restores objects creates them anew, with generation 1.

use emco_crds::{SyncShardSpec, SyncShardStatus};

/// Number of the write that made a shard what it is. It only grows in the life of a shard, also when the object is copied to
/// another hub, with its status or without. The next write has the number after it.
///
/// It is the counter of the spec, but at least everything that was ever taken from it: shards of before the counter have none, and
/// then `generation` (`metadata.generation`) stands for it, unless that began anew.
pub fn writes(spec: &SyncShardSpec, status: Option<&SyncShardStatus>, generation: i64) -> i64 {
    let since = spec.clusters.iter().flat_map(|row| &row.held).map(|held| held.since);
    let named = spec.combinations.iter().filter_map(|combination| number(&combination.name));
    let ranges = status.into_iter().flat_map(|status| &status.as_wanted).map(|range| range.generation);
    let rows = status.into_iter().flat_map(|status| &status.clusters);
    let applied = rows.filter_map(|row| row.applied.as_ref()).map(|applied| applied.generation);
    since.chain(named).chain(ranges).chain(applied).fold(spec.writes.max(generation), i64::max)
}

/// The write that gave a combination its name: 12 of `t12` and `t12.3`.
fn number(name: &str) -> Option<i64> {
    name.strip_prefix('t')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_write_they_come_from() {
        let all = ["t1", "t12.3", "found", "t", "u4", "t-4x"].map(number);
        assert_eq!(all, [Some(1), Some(12), None, None, None, None]);
    }
}
