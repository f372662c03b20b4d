//! Moves rows of unreachable clusters into a ledger, which remembers by name what they may have until the cluster
//! returns, and takes it back when the owner wants the cluster again.
//!
//! A ledger is a shard whose rows have no target and hold identities alone: workers remove what such a row names, as they do
//! for any other. It is written before the row leaves the owner's shard, and taken back before the ledger forgets it, so that
//! at any moment one of the two names what is there.

use std::collections::BTreeMap;

use emco_crds::sync_shard::{Held, IdentitiesRef, ShardRow};
use emco_crds::{SyncShardSpec, SyncShardStatus};

use super::{Row, cluster_id, found, rows};
use crate::identity::ClusterId;

/// What is left of an owner on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its identity: another cluster of the same name is not meant.
    pub uid: Option<String>,
    /// What may be there.
    pub identities: IdentitiesRef,
}

/// Rows that shall have nothing, and of which something may be left.
pub fn leaving(spec: &SyncShardSpec, status: Option<&SyncShardStatus>) -> Vec<Row> {
    let leaves = |(row, stored): &(Row, &ShardRow)| stored.target.is_none() && !row.complete;
    rows(spec, status).into_iter().zip(&spec.clusters).filter(leaves).map(|(row, _)| row).collect()
}

/// Notes what was given up. `None`: all of it is in the ledger already.
pub fn note(ledger: &SyncShardSpec, next_write: i64, given_up: &[GivenUp]) -> Option<SyncShardSpec> {
    let mut fresh = ledger.clone();
    for GivenUp { cluster, uid, identities } in given_up {
        let same = |row: &&mut ShardRow| row.cluster == cluster.as_str() && row.uid == *uid;
        if let Some(row) = fresh.clusters.iter_mut().find(same) {
            hold(row, identities, next_write);
            continue;
        }
        found::name(&mut fresh);
        let mut row = ShardRow {
            id: fresh.next_id,
            cluster: cluster.to_string(),
            uid: uid.clone(),
            target: None,
            // Much may have happened there by the time it returns.
            held: vec![found::held(next_write)],
        };
        hold(&mut row, identities, next_write);
        fresh.next_id += 1;
        fresh.clusters.push(row);
    }
    (fresh != *ledger).then_some(fresh)
}

/// Gives rows that have a target what a ledger remembers of their clusters: it is removed where it is not wanted, by the work
/// on the row. `None`: they have it already.
pub fn take_back(
    spec: &SyncShardSpec,
    next_write: i64,
    noted: &BTreeMap<ClusterId, Vec<GivenUp>>,
) -> Option<SyncShardSpec> {
    let mut fresh = spec.clone();
    for row in fresh.clusters.iter_mut().filter(|row| row.target.is_some()) {
        for given_up in noted.get(&cluster_id(&row.cluster)).into_iter().flatten() {
            if is_of(row, given_up) {
                // Until its identity is known, the row speaks of the cluster that was given up.
                row.uid = row.uid.take().or_else(|| given_up.uid.clone());
                hold(row, &given_up.identities, next_write);
            }
        }
    }
    (fresh != *spec).then_some(fresh)
}

/// Whether a row took back what was given up.
pub fn taken(spec: &SyncShardSpec, given_up: &GivenUp) -> bool {
    let holds =
        |row: &ShardRow| row.held.iter().any(|held| held.identities.as_ref() == Some(&given_up.identities));
    let of = |row: &&ShardRow| row.cluster == given_up.cluster.as_str() && row.target.is_some();
    spec.clusters.iter().filter(of).any(|row| is_of(row, given_up) && holds(row))
}

fn is_of(row: &ShardRow, given_up: &GivenUp) -> bool {
    row.uid.is_none() || given_up.uid.is_none() || row.uid == given_up.uid
}

/// Adds identities to what a row holds, once: whoever worked the entry off has worked off all it names.
fn hold(row: &mut ShardRow, identities: &IdentitiesRef, since: i64) {
    if !row.held.iter().any(|held| held.identities.as_ref() == Some(identities)) {
        row.held.push(Held { combination: None, identities: Some(identities.clone()), since });
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::RowStatus;
    use emco_crds::sync_shard::ShardCombination;
    use emco_crds::sync_shard::status::Applied;

    use super::super::{encode_status, retarget};
    use super::*;

    fn given_up(cluster: &str, uid: &str, pack: &str) -> GivenUp {
        let identities = IdentitiesRef { pack: pack.to_owned(), digest: "d".to_owned() };
        GivenUp { cluster: ClusterId::new("acme", cluster), uid: Some(uid.to_owned()), identities }
    }

    fn empty() -> SyncShardSpec {
        SyncShardSpec { format: 1, next_id: 1, ..SyncShardSpec::default() }
    }

    fn row(id: i64, cluster: &str, target: Option<&str>) -> ShardRow {
        let (cluster, target) = (format!("acme/{cluster}"), target.map(str::to_owned));
        ShardRow { id, cluster, uid: Some("u".to_owned()), target, held: Vec::new() }
    }

    #[test]
    fn what_is_noted_is_noted_once_and_stays_until_it_is_worked_off() {
        let ledger = note(&empty(), 1, &[given_up("a", "u", "p"), given_up("b", "u", "p")]).unwrap();
        assert_eq!(ledger.clusters.len(), 2);
        assert_eq!(note(&ledger, 2, &[given_up("a", "u", "p")]), None);
        let more = note(&ledger, 2, &[given_up("a", "u", "q")]).unwrap();
        assert_eq!(more.clusters[0].held.len(), 3, "by two names, and by label");
        assert_eq!(note(&ledger, 2, &[given_up("a", "other", "p")]).unwrap().clusters.len(), 3);
        assert_eq!(retarget(&ledger, None, 2, 1, &BTreeMap::new()), None, "nobody worked it off");
        let gone = RowStatus {
            id: 1,
            applied: Some(Applied { combination: None, generation: 1 }),
            ..RowStatus::default()
        };
        let status = encode_status(&ledger, 1, &BTreeMap::from([(1, gone)]));
        let left = retarget(&ledger, Some(&status), 2, 1, &BTreeMap::new()).unwrap();
        assert_eq!(left.clusters.len(), 1);
        assert_eq!(leaving(&left, Some(&status)).len(), 1);
    }

    #[test]
    fn only_rows_that_leave_can_be_given_up() {
        let mut spec = empty();
        spec.combinations = vec![ShardCombination { name: "t1".to_owned(), ..ShardCombination::default() }];
        spec.clusters = vec![row(1, "a", Some("t1")), row(2, "b", None), row(3, "c", Some("lost"))];
        let found: Vec<i64> = leaving(&spec, None).iter().map(|row| row.id).collect();
        assert_eq!(found, [2], "a lost combination is a target all the same");
    }

    #[test]
    fn a_row_takes_back_what_was_noted_of_the_same_cluster_and_nothing_else() {
        let mut spec = empty();
        spec.clusters = vec![row(1, "a", Some("t1")), row(2, "b", Some("t1")), row(3, "c", None)];
        spec.clusters[1].uid = None;
        let noted = |uid: &str| -> BTreeMap<ClusterId, Vec<GivenUp>> {
            ["a", "b", "c"].map(|n| (ClusterId::new("acme", n), vec![given_up(n, uid, "p")])).into()
        };
        let back = take_back(&spec, 7, &noted("u")).unwrap();
        let held: Vec<usize> = back.clusters.iter().map(|row| row.held.len()).collect();
        assert_eq!(held, [1, 1, 0], "a row that leaves is not given more");
        assert_eq!(back.clusters[1].uid.as_deref(), Some("u"));
        assert_eq!(back.clusters[0].held[0].since, 7);
        assert_eq!(take_back(&back, 8, &noted("u")), None);
        assert!(taken(&back, &given_up("a", "u", "p")) && !taken(&back, &given_up("c", "u", "p")));
        let other = take_back(&spec, 7, &noted("other")).unwrap();
        assert!(other.clusters[0].held.is_empty(), "another cluster is not meant");
        assert!(!taken(&other, &given_up("a", "other", "p")));
    }
}
