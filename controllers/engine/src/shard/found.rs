//! Makes rows whose inventory may know too little hold "whatever carries the owner's label". Such a row is complete
//! only after all kinds of its cluster were listed by that label.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::{Held, ShardCombination, ShardRow};
use emco_crds::{SyncShardSpec, SyncShardStatus};

use super::{FOUND, FOUND_NAME, decode_status, is_live};
use crate::identity::ClusterId;

/// The name of the combination, which the shard has from now on.
pub(super) fn name(spec: &mut SyncShardSpec) -> String {
    if !spec.combinations.iter().any(|combination| combination.revision == FOUND) {
        let name = FOUND_NAME.to_owned();
        spec.combinations.push(ShardCombination { name, revision: FOUND, apps: Vec::new() });
    }
    FOUND_NAME.to_owned()
}

/// An entry of what is held.
pub(super) fn held(since: i64) -> Held {
    Held { combination: Some(FOUND_NAME.to_owned()), identities: None, since }
}

/// Has these rows search their clusters. `None`: they do already.
pub fn search(
    spec: &SyncShardSpec,
    status: Option<&SyncShardStatus>,
    next_write: i64,
    rows: &BTreeSet<i64>,
) -> Option<SyncShardSpec> {
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    let mut fresh = spec.clone();
    name(&mut fresh);
    let mut changed = false;
    for row in fresh.clusters.iter_mut().filter(|row| rows.contains(&row.id)) {
        let applied = known.get(&row.id).and_then(|status| status.applied.as_ref());
        let searches =
            |held: &Held| held.combination.as_deref() == Some(FOUND_NAME) && is_live(held, applied);
        if row.held.iter().any(searches) {
            continue;
        }
        row.held.retain(|held| held.combination.as_deref() != Some(FOUND_NAME));
        row.held.push(held(next_write));
        changed = true;
    }
    changed.then_some(fresh)
}

/// Adds rows for clusters where objects of the owner were found and that no row speaks of. What they shall have nobody knows
/// yet: until a plan says so, nothing is done there. `None`: all of them have rows.
pub fn adopt(spec: &SyncShardSpec, found: &BTreeMap<ClusterId, Option<String>>) -> Option<SyncShardSpec> {
    let mut fresh = spec.clone();
    for (cluster, uid) in found {
        if fresh.clusters.iter().any(|row| row.cluster == cluster.as_str()) {
            continue;
        }
        let target = Some(name(&mut fresh));
        let (id, cluster) = (fresh.next_id, cluster.to_string());
        fresh.clusters.push(ShardRow { id, cluster, uid: uid.clone(), target, held: Vec::new() });
        fresh.next_id += 1;
    }
    (fresh != *spec).then_some(fresh)
}

#[cfg(test)]
mod tests {
    use emco_crds::RowStatus;
    use emco_crds::sync_shard::status::Applied;

    use super::super::{Content, encode_status, retarget, rows};
    use super::*;
    use crate::identity::{Combination, SetDigest};

    fn empty() -> SyncShardSpec {
        SyncShardSpec { format: 1, next_id: 1, ..SyncShardSpec::default() }
    }

    fn wanted(cluster: &str) -> BTreeMap<ClusterId, Combination> {
        let apps = [("web".to_owned(), SetDigest("s".to_owned()))].into();
        [(ClusterId::new("acme", cluster), apps)].into()
    }

    #[test]
    fn an_adopted_row_waits_for_a_plan_and_then_prunes_by_label() {
        let found: BTreeMap<_, _> =
            ["a", "b"].map(|name| (ClusterId::new("acme", name), Some("u".to_owned()))).into();
        let adopted = adopt(&empty(), &found).unwrap();
        assert_eq!(adopt(&adopted, &found), None);
        let before = rows(&adopted, None);
        assert!(before.iter().all(|row| row.target.as_ref().is_some_and(super::super::Target::is_found)));
        assert!(before.iter().all(|row| row.lost.is_empty() && !row.complete));
        let planned = retarget(&adopted, None, 2, 1, &wanted("a")).unwrap();
        let now = rows(&planned, None);
        assert_eq!(now.len(), 2, "what is not wanted is removed, not forgotten");
        for row in &now {
            assert!(
                matches!(&row.may_have[..], [Content::Sets(target)] if target.is_found()),
                "{:?}",
                row.may_have
            );
        }
        assert!(now[1].target.is_none());
    }

    #[test]
    fn a_row_searches_once_until_it_was_worked_off() {
        let spec = retarget(&empty(), None, 1, 1, &wanted("a")).unwrap();
        let one = BTreeSet::from([1]);
        let searching = search(&spec, None, 2, &one).unwrap();
        assert_eq!(search(&searching, None, 3, &one), None);
        let done = RowStatus {
            id: 1,
            applied: Some(Applied { combination: Some("t1".to_owned()), generation: 2 }),
            ..RowStatus::default()
        };
        let status = encode_status(&searching, 2, &BTreeMap::from([(1, done)]));
        assert!(rows(&searching, Some(&status))[0].complete);
        let again = search(&searching, Some(&status), 3, &one).unwrap();
        assert!(!rows(&again, Some(&status))[0].complete);
        assert_eq!(again.clusters[0].held.len(), 1);
    }
}
