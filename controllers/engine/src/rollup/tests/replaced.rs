use super::*;

#[test]
fn a_cluster_that_another_one_took_the_place_of_counts_as_having_nothing() {
    let mut fleet = Fleet::new(2);
    fleet.change(1, |row| {
        row.error = Some(RowError {
            reason: "ClusterReplaced".to_owned(),
            message: "another cluster answers under this name".to_owned(),
            ..RowError::default()
        });
    });
    let rollup = fleet.dig();
    assert_eq!(
        text(&rollup.deployed),
        "False Progressing: 1 of 2 clusters have revision 3; acme/edge-01: ClusterReplaced: another cluster answers under this name"
    );
    let clusters = rollup.clusters;
    assert_eq!((rollup.applied.as_str(), clusters.ready, clusters.progressing), ("1 of 2 clusters", 1, 1));
    assert_eq!((rollup.deployed_counts.applied, rollup.deployed_counts.pending), (20, 20));
    assert_eq!((rollup.ready_counts.ready, rollup.ready_counts.unknown), (20, 20));
    assert!(rollup.apps.iter().all(|app| (app.clusters, app.ready) == (2, 1)), "{:?}", rollup.apps);
    // It has no other revision either.
    fleet.retarget(wanted(2, "s2"));
    let status = encode_status(&fleet.spec, fleet.generation, &fleet.rows);
    let seen = facts::of(&[(&fleet.spec, Some(&status))], &fleet.wanted);
    let having: Vec<_> = seen.iter().map(|fact| (fact.is_replaced(), fact.on_another)).collect();
    assert_eq!(having, [(true, false), (false, true)]);
}
