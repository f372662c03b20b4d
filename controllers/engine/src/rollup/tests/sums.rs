//! Sums of shards against the sum of all their clusters.

use proptest::prelude::*;

use super::*;

/// How a cluster fares.
#[derive(Clone, Debug)]
enum Fate {
    Ready,
    Begins,
    Away,
    Fails(i64),
    Unready,
    Drifts(i64),
    LeavesOut(i64),
    Leaves,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Ready),
        Just(Fate::Begins),
        Just(Fate::Away),
        (0..5_i64).prop_map(Fate::Fails),
        Just(Fate::Unready),
        (0..4_i64).prop_map(Fate::Drifts),
        (1..4_i64).prop_map(Fate::LeavesOut),
        Just(Fate::Leaves),
    ]
}

fn suffers(fleet: &mut Fleet, id: i64, fate: &Fate) {
    match fate {
        Fate::Ready | Fate::Leaves => {}
        Fate::Begins => drop(fleet.rows.remove(&id)),
        Fate::Away => fleet.lose(id),
        Fate::Fails(second) => fleet.fail(id, "AdmissionDenied", "no", *second),
        Fate::Unready => fleet.change(id, |row| row.ready = 3),
        Fate::Drifts(reported) => fleet.change(id, |row| {
            let object = RowDrifted { resource: format!("ConfigMap/shop/{id}"), ..RowDrifted::default() };
            let (objects, restored) = (vec![object], vec![format!("Secret/shop/{id}"), "second".to_owned()]);
            row.drift = Some(RowDrift { corrected: id, reported: *reported, objects, restored, last: None });
        }),
        Fate::LeavesOut(fields) => fleet.change(id, |row| {
            let left = LeftOut { fields: *fields, first: vec![format!("Service/shop/{id} .spec.x")] };
            (row.left_out, row.rewritten) = (Some(left.clone()), Some(left));
        }),
    }
}

/// A shard with these clusters.
fn shard(fates: &[(ClusterId, Fate)]) -> Fleet {
    let mut fleet = Fleet::of(fates.iter().map(|(id, _)| (id.clone(), apps("s1"))).collect());
    let stay = fates.iter().filter(|(_, fate)| !matches!(fate, Fate::Leaves));
    let stay: BTreeMap<_, _> = stay.map(|(id, _)| (id.clone(), apps("s1"))).collect();
    if stay.len() < fates.len() {
        fleet.retarget(stay);
    }
    let ids: Vec<(i64, String)> =
        fleet.spec.clusters.iter().map(|row| (row.id, row.cluster.clone())).collect();
    for (id, cluster) in ids {
        let (_, fate) = fates.iter().find(|(known, _)| known.as_str() == cluster).unwrap();
        suffers(&mut fleet, id, fate);
    }
    fleet
}

proptest! {
    #[test]
    fn the_sums_of_shards_are_the_sum_of_their_clusters(
        fates in proptest::collection::vec((0..4_usize, fate()), 1..40),
    ) {
        let mut by_shard: BTreeMap<usize, Vec<(ClusterId, Fate)>> = BTreeMap::new();
        for (n, (shard, fate)) in fates.into_iter().enumerate() {
            by_shard.entry(shard).or_default().push((ClusterId::new("acme", &format!("edge-{n:02}")), fate));
        }
        let fleets: Vec<Fleet> = by_shard.values().map(|fates| shard(fates)).collect();
        let encode = |fleet: &Fleet| encode_status(&fleet.spec, fleet.generation, &fleet.rows);
        let statuses: Vec<_> = fleets.iter().map(encode).collect();
        let shards: Vec<Shard<'_>> =
            fleets.iter().zip(&statuses).map(|(fleet, status)| (&fleet.spec, Some(status))).collect();
        let wanted: BTreeMap<_, _> = fleets.iter().flat_map(|fleet| fleet.wanted.clone()).collect();
        let placed = AppPlacement { chosen: wanted.keys().cloned().collect(), rejected: Vec::new() };
        let placement = ["db", "web"].map(|app| (app.to_owned(), placed.clone()));
        let inputs = DigInputs {
            shards: &shards,
            wanted: &wanted,
            revision: Some(3),
            placement: &placement,
            ready_clusters: None,
            before: &Before::default(),
            approved: true,
            removing: false,
            suspended: false,
            abandoned: &[],
        };
        let whole = dig(&inputs);
        for turned in [false, true] {
            let mut sums = Sums::default();
            let mut order: Vec<&Shard<'_>> = shards.iter().collect();
            if turned {
                order.reverse();
            }
            for shard in order {
                sums.and(&Sums::of_shard(*shard, &wanted));
            }
            prop_assert_eq!(sums.dig(&DigInputs { shards: &[], ..inputs }), whole.clone());
        }
    }
}
