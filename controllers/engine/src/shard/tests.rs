use emco_crds::sync_shard::status::{Applied, Connectivity, OpenGate, RowCounts, RowError, RowGates};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::*;
use crate::identity::SetDigest;

fn apps(set: &str) -> Combination {
    [("web".to_owned(), SetDigest(set.to_owned()))].into()
}

fn wanted(rows: &[(&str, &str)]) -> BTreeMap<ClusterId, Combination> {
    rows.iter().map(|(c, set)| (ClusterId::parse(c).unwrap(), apps(set))).collect()
}

fn empty() -> SyncShardSpec {
    SyncShardSpec { format: 1, next_id: 1, ..SyncShardSpec::default() }
}

/// All rows complete at a generation.
fn all_done(spec: &SyncShardSpec, generation: i64) -> SyncShardStatus {
    let rows = spec.clusters.iter().map(|row| (row.id, done(row, generation, 20))).collect();
    encode_status(spec, generation, &rows)
}

fn done(row: &ShardRow, generation: i64, total: i64) -> RowStatus {
    RowStatus {
        id: row.id,
        connectivity: Connectivity::Reachable,
        state: State::Instantiated,
        applied: Some(Applied { combination: row.target.clone(), generation }),
        counts: Some(RowCounts { applied: total, ready: total, ..RowCounts::default() }),
        total,
        applied_count: total,
        ready: total,
        ..RowStatus::default()
    }
}

fn texts(spec: &SyncShardSpec) -> Vec<String> {
    let held = |row: &ShardRow| -> Vec<String> {
        row.held
            .iter()
            .map(|h| format!("{}@{}", h.combination.clone().unwrap_or_default(), h.since))
            .collect()
    };
    spec.clusters
        .iter()
        .map(|row| {
            format!(
                "{} {} {} [{}]",
                row.id,
                row.cluster,
                row.target.as_deref().unwrap_or("-"),
                held(row).join(" ")
            )
        })
        .collect()
}

#[test]
fn clusters_that_get_the_same_share_one_combination() {
    let spec =
        retarget(&empty(), None, 1, 3, &wanted(&[("a/1", "s1"), ("a/2", "s1"), ("a/3", "s2")])).unwrap();
    assert_eq!(texts(&spec), ["1 a/1 t1 []", "2 a/2 t1 []", "3 a/3 t1.1 []"]);
    assert_eq!(spec.next_id, 4);
    assert!(spec.combinations.iter().all(|c| c.revision == 3));
}

#[test]
fn the_old_target_is_held_with_the_generation_of_the_write_that_replaces_it() {
    let first = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap();
    let status = all_done(&first, 1);
    assert_eq!(retarget(&first, Some(&status), 2, 2, &wanted(&[("a/1", "s1")])), None);
    let second = retarget(&first, Some(&status), 2, 2, &wanted(&[("a/1", "s2")])).unwrap();
    assert_eq!(texts(&second), ["1 a/1 t2 [t1@2]"]);
    let row = &rows(&second, Some(&status))[0];
    assert!(!row.complete);
    assert_eq!(row.may_have.len(), 1);
    assert_eq!(row.applied_apps, Some(apps("s1")));
    // Worked off, and only then, the entry says nothing any more; it leaves with the next write that is needed anyway.
    let status = all_done(&second, 2);
    assert!(rows(&second, Some(&status))[0].complete && rows(&second, Some(&status))[0].may_have.is_empty());
    assert_eq!(retarget(&second, Some(&status), 3, 3, &wanted(&[("a/1", "s2")])), None);
    let third = retarget(&second, Some(&status), 3, 3, &wanted(&[("a/1", "s3")])).unwrap();
    assert_eq!(texts(&third), ["1 a/1 t3 [t2@3]"]);
    assert_eq!(third.combinations.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["t2", "t3"]);
}

/// A worker may have begun to remove what is wanted again: the row is complete only after another look.
#[test]
fn a_target_that_was_left_and_came_back_is_not_taken_for_complete() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap();
    let status = all_done(&spec, 1);
    let gone = retarget(&spec, Some(&status), 2, 2, &BTreeMap::new()).unwrap();
    let back = retarget(&gone, Some(&status), 3, 3, &wanted(&[("a/1", "s1")])).unwrap();
    assert_eq!(texts(&back), ["1 a/1 t1 [t1@2]"]);
    assert!(!rows(&back, Some(&status))[0].complete);
    assert!(rows(&back, Some(&all_done(&back, 3)))[0].complete);
}

/// Everybody is known.
fn contacted(spec: &SyncShardSpec) -> SyncShardSpec {
    let uids = spec.clusters.iter().map(|row| (cluster_id(&row.cluster), "uid".to_owned())).collect();
    record_uids(spec, &uids).unwrap()
}

#[test]
fn a_row_of_a_cluster_that_never_answered_leaves_at_once() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap();
    let row = |error: Option<&str>| RowStatus {
        id: 1,
        connectivity: if error.is_some() { Connectivity::Reachable } else { Connectivity::Unreachable },
        error: error.map(|reason| RowError { reason: reason.to_owned(), ..RowError::default() }),
        ..RowStatus::default()
    };
    let status = |row: RowStatus| encode_status(&spec, 1, &BTreeMap::from([(1, row)]));
    let ends = |spec: &SyncShardSpec, status: &SyncShardStatus| {
        retarget(spec, Some(status), 2, 2, &BTreeMap::new()).unwrap().clusters.is_empty()
    };
    assert!(ends(&spec, &status(row(None))));
    assert!(ends(&spec, &status(row(Some("ClaimedByAnotherHub")))), "it answers, and nothing was sent");
    assert!(!ends(&spec, &status(row(Some("Forbidden")))), "an operator that needed no identity wrote");
    let hook = RowHooks { set: "s".to_owned(), done: vec!["h".to_owned()] };
    assert!(!ends(&spec, &status(RowStatus { hooks: vec![hook], ..row(None) })), "a hook ran");
    assert!(!ends(&contacted(&spec), &status(row(None))), "work may have begun");
    let other = retarget(&spec, Some(&status(row(None))), 2, 2, &wanted(&[("a/1", "s2")])).unwrap();
    assert_eq!(texts(&other), ["1 a/1 t2 []"], "nothing of the target before can be there");
    let mut found = spec.clone();
    found.clusters[0].held.push(Held { identities: Some(IdentitiesRef::default()), ..Held::default() });
    assert!(!ends(&found, &status(row(None))), "another row left something");
}

#[test]
fn a_row_leaves_only_after_its_status_says_that_nothing_is_left() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1"), ("a/2", "s1")])).unwrap();
    let spec = contacted(&spec);
    let status = all_done(&spec, 1);
    let removing = retarget(&spec, Some(&status), 2, 2, &wanted(&[("a/2", "s1")])).unwrap();
    assert_eq!(texts(&removing), ["1 a/1 - [t1@2]", "2 a/2 t1 []"]);
    assert_eq!(retarget(&removing, Some(&status), 3, 2, &wanted(&[("a/2", "s1")])), None);
    // A status that was lost is no proof.
    assert_eq!(retarget(&removing, None, 3, 2, &wanted(&[("a/2", "s1")])), None);
    let status = all_done(&removing, 2);
    let left = retarget(&removing, Some(&status), 3, 2, &wanted(&[("a/2", "s1")])).unwrap();
    assert_eq!(texts(&left), ["2 a/2 t1 []"]);
    // A cluster that comes again gets a new row.
    let again = retarget(&left, None, 4, 3, &wanted(&[("a/1", "s1"), ("a/2", "s1")])).unwrap();
    assert_eq!(texts(&again), ["2 a/2 t1 []", "3 a/1 t1 []"]);
}

#[test]
fn a_fifth_held_combination_makes_one_identity_set() {
    let mut spec = contacted(&retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap());
    for (generation, set) in (2..).zip(["s2", "s3", "s2", "s4", "s5", "s6"]) {
        spec = retarget(&spec, None, generation, generation, &wanted(&[("a/1", set)])).unwrap();
    }
    // s2 came twice and is held once, with the later generation.
    assert_eq!(texts(&spec), ["1 a/1 t7 [t1@2 t3@4 t2@5 t5@6 t6@7]"]);
    assert_eq!(overlong(&spec), [1]);
    let named = |content: &Content| match content {
        Content::Sets(t) => Ok([crate::identity::Identity {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: String::new(),
            name: t.apps["web"].0.clone(),
        }]
        .into()),
        Content::Identities(_) => Err("none yet".to_owned()),
    };
    let collapsed = collapse_held(spec.clone(), named).unwrap();
    let held = &collapsed.spec.clusters[0].held;
    assert_eq!((held.len(), held[0].since), (1, 7));
    let stored = crate::pack::Pack::read(&collapsed.packs[0].bytes).unwrap().identities().unwrap().unwrap();
    assert_eq!(stored.iter().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["s1", "s2", "s3", "s4", "s5"]);
    // What cannot be read stops it.
    let error = collapse_held(spec, |_| Err("the pack is torn".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "a/1: the pack is torn");
}

#[test]
fn a_row_that_names_a_combination_the_shard_does_not_have_is_lost_and_never_complete() {
    let mut spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap();
    let status = all_done(&spec, 1);
    spec.combinations.clear();
    let row = &rows(&spec, Some(&status))[0];
    assert_eq!(row.lost, ["t1"]);
    assert!(!row.complete && row.target.is_none());
}

#[test]
fn an_identity_is_recorded_once_and_never_replaced() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1"), ("a/2", "s1")])).unwrap();
    let uid = |text: &str| [(ClusterId::parse("a/1").unwrap(), text.to_owned())].into();
    let spec = record_uids(&spec, &uid("first")).unwrap();
    assert_eq!(spec.clusters[0].uid.as_deref(), Some("first"));
    assert_eq!(record_uids(&spec, &uid("second")), None);
}

#[test]
fn rows_as_wanted_are_a_range_and_the_others_are_spelled_out_with_a_short_error() {
    let all: Vec<String> = (1..=200).map(|n| format!("a/{n:03}")).collect();
    let spec =
        retarget(&empty(), None, 1, 1, &wanted(&all.iter().map(|c| (c.as_str(), "s1")).collect::<Vec<_>>()))
            .unwrap();
    let mut reported: BTreeMap<i64, RowStatus> =
        spec.clusters.iter().map(|r| (r.id, done(r, 1, 20))).collect();
    let bad = reported.get_mut(&9).unwrap();
    bad.state = State::InstantiateFailed;
    bad.error =
        Some(RowError { reason: "Invalid".to_owned(), message: "ü".repeat(1000), ..RowError::default() });
    reported.insert(999, RowStatus::default());
    let status = encode_status(&spec, 1, &reported);
    assert_eq!(status.as_wanted.len(), 1);
    assert_eq!(status.as_wanted[0].ids, "1-8,10-200");
    assert_eq!(status.clusters.len(), 1);
    assert!(status.clusters[0].error.as_ref().unwrap().message.len() <= LONGEST_ERROR);
    assert_eq!(status.summary.as_ref().unwrap().clusters, "199/200");
    assert_eq!(status.summary.as_ref().unwrap().failed, "1");
    assert_eq!(
        ready_condition(&spec, &reported),
        ("False", "Failed", "199 of 200 clusters ready".to_owned())
    );
    assert!(size(&spec, Some(&status)) < 200 * 60, "{}", size(&spec, Some(&status)));
}

#[test]
fn the_hooks_of_a_row_are_remembered_until_it_is_complete() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1")])).unwrap();
    let mut row = done(&spec.clusters[0], 1, 2);
    row.hooks = vec![RowHooks { set: "s1".to_owned(), done: vec!["h".to_owned()] }];
    row.applied = None;
    let status = encode_status(&spec, 1, &[(1, row.clone())].into());
    assert_eq!(rows(&spec, Some(&status))[0].hooks, row.hooks);
    row.applied = Some(Applied { combination: Some("t1".to_owned()), generation: 1 });
    assert_eq!(encode_status(&spec, 1, &[(1, row)].into()).as_wanted[0].ids, "1");
}

#[test]
fn a_slot_does_not_move_between_releases() {
    let cluster = ClusterId::new("acme", "berlin-1");
    assert_eq!(slot(&cluster, 0), 0);
    let sixteen = slot(&cluster, 16);
    assert_eq!(slot(&cluster, 1), sixteen >> 15);
    assert_eq!(
        sixteen,
        i64::from(u16::from_be_bytes(
            <[u8; 2]>::try_from(&sha2::Sha256::digest(b"acme/berlin-1")[..2]).unwrap()
        ))
    );
}

#[test]
fn both_halves_of_a_split_hold_all_that_their_clusters_may_have() {
    let all: Vec<String> = (1..=50).map(|n| format!("a/{n:03}")).collect();
    let want = |set| wanted(&all.iter().map(|c| (c.as_str(), set)).collect::<Vec<_>>());
    let first = retarget(&empty(), None, 1, 1, &want("s1")).unwrap();
    let status = all_done(&first, 1);
    let second = retarget(&first, Some(&status), 2, 2, &want("s2")).unwrap();
    let half = divide(&second, Some(&status)).unwrap();
    let theirs: std::collections::BTreeSet<ClusterId> =
        rows(&half.spec, None).into_iter().map(|row| row.cluster).collect();
    let rest = without(&second, Some(&status), &theirs, (half.spec.slot, half.spec.bits));
    assert_eq!(half.spec.clusters.len() + rest.clusters.len(), 50);
    assert_eq!((rest.slot, rest.bits, half.spec.slot, half.spec.bits), (0, 1, 1, 1));
    for (spec, status) in [(&half.spec, None), (&rest, Some(&status))] {
        for row in rows(spec, status) {
            assert_eq!(row.target.as_ref().unwrap().apps, apps("s2"));
            assert!(row.may_have.iter().any(|c| matches!(c, Content::Sets(t) if t.apps == apps("s1"))));
            assert_eq!(slot(&row.cluster, spec.bits), spec.slot);
        }
    }
    // With the status written, it is known again what was applied; it is not taken for complete.
    for row in rows(&half.spec, Some(&half.status)) {
        assert_eq!(row.applied_apps, Some(apps("s1")));
        assert!(!row.complete);
    }
    let half = divide(&first, Some(&status)).unwrap();
    assert!(rows(&half.spec, Some(&half.status)).iter().all(|row| row.complete));
    // What the old row came to after the copy does not make the copy complete.
    let half = divide(&second, Some(&status)).unwrap();
    let later = all_done(&second, 2);
    let status = carried(&second, Some(&later), &half.spec);
    assert!(rows(&half.spec, Some(&status)).iter().all(|row| !row.complete));
}

#[test]
fn a_gate_that_is_open_stays_open_when_its_shard_is_divided() {
    let all: Vec<String> = (1..=50).map(|n| format!("a/{n:03}")).collect();
    let want = |set| wanted(&all.iter().map(|c| (c.as_str(), set)).collect::<Vec<_>>());
    let first = retarget(&empty(), None, 1, 1, &want("s1")).unwrap();
    let second = retarget(&first, Some(&all_done(&first, 1)), 2, 2, &want("s2")).unwrap();
    let open = OpenGate { app: "web".to_owned(), set: "s2".to_owned() };
    let with_gates = |row: &ShardRow| {
        let combination = row.target.clone().unwrap();
        let gates = RowGates { combination, open: vec![open.clone()], met: Vec::new() };
        // The first target is held since the second write: the row is not complete.
        (row.id, RowStatus { gates: Some(gates), ..done(row, 1, 20) })
    };
    let status = encode_status(&second, 2, &second.clusters.iter().map(with_gates).collect());
    let half = divide(&second, Some(&status)).unwrap();
    let known = decode_status(&half.spec, &half.status);
    for row in &half.spec.clusters {
        let gates = known[&row.id].gates.clone().unwrap();
        assert_eq!((Some(gates.combination), gates.open), (row.target.clone(), vec![open.clone()]));
        assert_ne!(row.target, second.clusters[0].target, "it has another name there");
    }
}

#[test]
fn a_cluster_belongs_to_the_deepest_slot_that_has_it_and_else_to_a_new_one_beside_all_others() {
    let ids: Vec<ClusterId> = (0..200).map(|n| ClusterId::new("a", &n.to_string())).collect();
    assert_eq!(vacant(&ids[0], &[]), (0, 0));
    for id in &ids {
        let all = [(0, 0), (slot(id, 1), 1), (slot(id, 2) ^ 1, 2)];
        assert_eq!(home(id, &all), Some(1));
        let deep = [(slot(id, 3) ^ 1, 3)];
        assert_eq!(home(id, &deep), None);
        assert_eq!(vacant(id, &deep), (slot(id, 3), 3));
    }
    // Slots made one after the other cover everything and overlap nowhere.
    let mut slots = vec![(5, 3)];
    for id in &ids {
        if home(id, &slots).is_none() {
            slots.push(vacant(id, &slots));
        }
    }
    for id in &ids {
        assert_eq!(slots.iter().filter(|(value, bits)| slot(id, *bits) == *value).count(), 1, "{id}");
    }
}

#[test]
fn the_row_with_a_status_speaks_and_of_two_the_deeper_one() {
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1"), ("a/2", "s1")])).unwrap();
    let deep = SyncShardSpec { bits: 1, ..spec.clone() };
    let status = all_done(&spec, 1);
    let quiet = |shards: &[(&SyncShardSpec, Option<&SyncShardStatus>)]| -> Vec<usize> {
        superseded(shards).iter().map(std::collections::BTreeSet::len).collect()
    };
    assert_eq!(quiet(&[(&spec, Some(&status)), (&deep, None)]), [0, 2]);
    assert_eq!(quiet(&[(&spec, Some(&status)), (&deep, Some(&status))]), [2, 0]);
    assert_eq!(quiet(&[(&spec, None), (&spec, None)]), [0, 2]);
    assert_eq!(quiet(&[(&spec, None)]), [0]);
}

#[test]
fn a_combination_of_a_revision_that_is_gone_is_read_from_one_that_has_its_sets() {
    let sets = |names: &[&str]| names.iter().map(|name| SetDigest((*name).to_owned())).collect();
    let spec = retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1"), ("a/2", "s2")])).unwrap();
    assert_eq!(restamp(&spec, &[(1, sets(&["s1", "s2"]))].into()), None);
    let readable = [(2, sets(&["s1"])), (3, sets(&["s1", "s9"]))].into();
    let fresh = restamp(&spec, &readable).unwrap();
    let revisions: Vec<i64> = fresh.combinations.iter().map(|c| c.revision).collect();
    assert_eq!(revisions, [3, 1], "the newest that has it; what nobody has stays lost");
    assert_eq!(fresh.clusters, spec.clusters);
}

#[test]
fn unknown_fields_stay_in_ranges_and_a_row_that_drifted_is_spelled_out() {
    use emco_crds::sync_shard::status::{LeftOut, RowDrift, RowDrifted};
    let spec =
        retarget(&empty(), None, 1, 1, &wanted(&[("a/1", "s1"), ("a/2", "s1"), ("a/3", "s1")])).unwrap();
    let mut rows: BTreeMap<i64, RowStatus> = spec
        .clusters
        .iter()
        .map(|row| (row.id, RowStatus { cluster: row.cluster.clone(), ..done(row, 1, 20) }))
        .collect();
    let left_out = LeftOut { fields: 1, first: vec!["apps/DaemonSet/shop/agent .spec.replicas".to_owned()] };
    for row in rows.values_mut() {
        row.left_out = Some(left_out.clone());
    }
    let status = encode_status(&spec, 1, &rows);
    assert_eq!((status.as_wanted.len(), status.clusters.len()), (1, 0), "one text for all of them");
    assert_eq!(decode_status(&spec, &status), rows);
    let objects =
        vec![RowDrifted { resource: "ConfigMap/n/c".to_owned(), by: "x".to_owned(), fields: "f".to_owned() }];
    let restored = vec!["ConfigMap/n/d".to_owned()];
    rows.get_mut(&2).unwrap().drift =
        Some(RowDrift { corrected: 1, reported: 1, objects, restored, last: None });
    let status = encode_status(&spec, 1, &rows);
    assert_eq!(status.as_wanted[0].ids, "1,3");
    assert_eq!(decode_status(&spec, &status), rows);
    assert!(super::rows(&spec, Some(&status)).iter().all(|row| row.complete), "drift is not incompleteness");
}
