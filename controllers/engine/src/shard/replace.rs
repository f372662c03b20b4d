//! Starts rows anew whose cluster was replaced by another, confirmed by a person.

use std::collections::BTreeMap;

use emco_crds::sync_shard::status::Applied;
use emco_crds::sync_shard::{Held, ShardRow};
use emco_crds::{SyncShardSpec, SyncShardStatus};

use super::{cluster_id, decode_status};
use crate::identity::ClusterId;

/// Gives each row whose identity is not the cluster's any more a new id, and with it a new life: what was applied to the old
/// cluster is not taken for applied to the new one, hooks of an installation run, and everything that may have been there is
/// looked for before the row is complete. `uids` are the confirmed identities. `None`: nothing to write.
pub fn replaced(
    spec: &SyncShardSpec,
    status: Option<&SyncShardStatus>,
    next_write: i64,
    uids: &BTreeMap<ClusterId, String>,
) -> Option<SyncShardSpec> {
    let known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
    let mut fresh = spec.clone();
    let mut next_id = spec.next_id;
    let mut changed = false;
    for row in &mut fresh.clusters {
        let Some(uid) = uids.get(&cluster_id(&row.cluster)) else { continue };
        if row.uid.as_ref().is_none_or(|before| before == uid) {
            continue;
        }
        let applied = known.get(&row.id).and_then(|status| status.applied.as_ref());
        *row = anew(row, applied, next_id, uid, next_write);
        next_id += 1;
        changed = true;
    }
    fresh.next_id = next_id;
    changed.then_some(fresh)
}

fn anew(row: &ShardRow, applied: Option<&Applied>, id: i64, uid: &str, since: i64) -> ShardRow {
    let mut held: Vec<Held> = row.held.iter().map(|held| Held { since, ..held.clone() }).collect();
    let before = applied.and_then(|applied| applied.combination.clone());
    if let Some(before) = before.filter(|before| row.target.as_ref() != Some(before))
        && !held.iter().any(|held| held.combination.as_ref() == Some(&before))
    {
        held.push(Held { combination: Some(before), identities: None, since });
    }
    ShardRow { id, uid: Some(uid.to_owned()), held, ..row.clone() }
}

#[cfg(test)]
mod tests {
    use emco_crds::sync_shard::ShardCombination;
    use emco_crds::{RowStatus, State};

    use super::super::{encode_status, rows};
    use super::*;

    fn spec() -> SyncShardSpec {
        let row = |id: i64, cluster: &str, uid: &str| ShardRow {
            id,
            cluster: cluster.to_owned(),
            uid: Some(uid.to_owned()),
            target: Some("t2".to_owned()),
            held: Vec::new(),
        };
        SyncShardSpec {
            format: 1,
            next_id: 3,
            combinations: ["t1", "t2"]
                .map(|name| ShardCombination { name: name.to_owned(), revision: 1, apps: Vec::new() })
                .to_vec(),
            clusters: vec![row(1, "acme/a", "old"), row(2, "acme/b", "b")],
            ..SyncShardSpec::default()
        }
    }

    fn status(spec: &SyncShardSpec, applied: &str) -> SyncShardStatus {
        let row = |id: i64| RowStatus {
            id,
            state: State::Instantiated,
            applied: Some(Applied { combination: Some(applied.to_owned()), generation: 4 }),
            ..RowStatus::default()
        };
        encode_status(spec, 4, &BTreeMap::from([(1, row(1)), (2, row(2))]))
    }

    fn uids(a: &str) -> BTreeMap<ClusterId, String> {
        BTreeMap::from([
            (ClusterId::new("acme", "a"), a.to_owned()),
            (ClusterId::new("acme", "b"), "b".to_owned()),
        ])
    }

    #[test]
    fn the_row_of_a_replaced_cluster_begins_anew_and_forgets_nothing() {
        for (applied, may_have) in [("t2", 0), ("t1", 1)] {
            let before = spec();
            let status = status(&before, applied);
            let after = replaced(&before, Some(&status), 5, &uids("new")).unwrap();
            assert_eq!(after.next_id, 4);
            let found = rows(&after, Some(&status));
            assert_eq!((found[0].id, found[0].uid.as_deref()), (3, Some("new")));
            assert!(!found[0].complete && found[0].applied.is_none());
            assert_eq!(found[0].may_have.len(), may_have, "{applied}");
            assert_eq!(found[1].id, 2, "who is who it was goes on");
        }
    }

    #[test]
    fn who_is_who_it_was_or_not_known_is_left_alone() {
        assert_eq!(replaced(&spec(), None, 5, &uids("old")), None);
        assert_eq!(replaced(&spec(), None, 5, &BTreeMap::new()), None);
        let mut first = spec();
        first.clusters[0].uid = None;
        assert_eq!(replaced(&first, None, 5, &uids("new")), None, "the first contact is no replacement");
    }
}
