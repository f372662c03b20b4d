//! Names objects that stay on clusters, because others took the owner label off them before they were removed.

use std::collections::BTreeSet;

use emco_crds::SyncShardStatus;
use emco_crds::deployment_intent_group::status::NotRemoved;

use super::Shard;
use crate::conditions::truncate;
use crate::shard::decode_status;

/// Objects that a status names.
const MOST: usize = 10;
/// Objects that a sentence names.
const SHOWN: usize = 3;
/// Longest name of one with its cluster, in bytes.
const LONGEST: usize = 730;

/// Those that a status named of this generation, and those that rows name now. The same for the same rows, however often it is asked.
pub fn not_removed(shards: &[Shard<'_>], known: Option<&NotRemoved>, generation: i64) -> Option<NotRemoved> {
    let known = known.filter(|known| known.generation == generation);
    let mut all: BTreeSet<String> = known.into_iter().flat_map(|known| known.objects.clone()).collect();
    for (spec, status) in shards {
        // Each row that names some is written out: most shards need not be read.
        let names = |status: &&SyncShardStatus| status.clusters.iter().any(|row| row.stripped.is_some());
        let Some(status) = status.filter(names) else { continue };
        for row in decode_status(spec, status).into_values() {
            let first = row.stripped.into_iter().flat_map(|stripped| stripped.first);
            all.extend(first.map(|object| truncate(&format!("{}: {object}", row.cluster), LONGEST)));
        }
    }
    (!all.is_empty()).then(|| NotRemoved { generation, objects: all.into_iter().take(MOST).collect() })
}

/// A sentence about them. Those that stay for a reason have it in parentheses; others took the label off the rest.
pub fn said(not_removed: &NotRemoved) -> String {
    let (kept, stripped): (Vec<&str>, Vec<&str>) =
        not_removed.objects.iter().map(String::as_str).partition(|object| object.ends_with(')'));
    let named = |all: &[&str], why: &str| {
        let more = if all.len() > SHOWN { " and others" } else { "" };
        let first: Vec<&str> = all.iter().take(SHOWN).copied().collect();
        (!all.is_empty()).then(|| format!("{why}{}{more}", first.join(", ")))
    };
    let parts = [
        named(&stripped, "not removed, for others took the label emco.io/owner off: "),
        named(&kept, "left there, without its owner: "),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_told_with_why() {
        let of = |objects: &[&str]| {
            let objects = objects.iter().map(|object| (*object).to_owned()).collect();
            said(&NotRemoved { generation: 1, objects })
        };
        let label = "not removed, for others took the label emco.io/owner off: a/b: ConfigMap/s/c";
        assert_eq!(of(&["a/b: ConfigMap/s/c"]), label);
        let kept = "a/b: Secret/s/k (helm.sh/resource-policy: keep)";
        assert_eq!(
            of(&["a/b: ConfigMap/s/c", kept]),
            format!("{label}; left there, without its owner: {kept}")
        );
        assert!(of(&[kept, kept, kept, kept]).ends_with(" and others"));
    }
}
