use emco_crds::sync_shard::{OrderedApp, ShardOrder};
use proptest::prelude::*;

use super::*;

fn order(revision: i64, clusters: i64) -> Arc<Order> {
    let app = OrderedApp { app: "db".to_owned(), clusters: Some(clusters), ..OrderedApp::default() };
    Arc::new(Order::of(Some(&ShardOrder {
        revision,
        apps: vec![app],
        generated: Vec::new(),
        silent: Vec::new(),
    })))
}

fn stand(revision: i64, away: Option<i64>, reached: Reached) -> ClusterStand {
    ClusterStand { revision, away, apps: [("db".to_owned(), reached)].into() }
}

fn id(number: usize) -> ClusterId {
    ClusterId::new("acme", &format!("c{number}"))
}

fn put(fleet: &Fleet, cluster: usize, order: &Arc<Order>, stand: ClusterStand) {
    fleet.put("o", &id(cluster), order, stand, &CancellationToken::new());
}

fn ready(now: i64) -> Question<'static> {
    Question { on: "db", state: DependencyState::Ready, now, deadline: 600 }
}

#[test]
fn a_gate_waits_for_every_cluster_of_the_revision() {
    let (fleet, order) = (Fleet::default(), order(3, 2));
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Unknown);
    put(&fleet, 1, &order, stand(3, None, Reached::Ready));
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Unknown, "one of two spoke");
    put(&fleet, 2, &order, stand(2, None, Reached::Ready));
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Unknown, "of an earlier revision");
    put(&fleet, 2, &order, stand(3, None, Reached::Deployed));
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Waits(id(2), 1));
    put(&fleet, 2, &order, stand(3, None, Reached::Ready));
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Met);
    fleet.leave("o", &id(2), false, None);
    assert_eq!(fleet.gate("o", &order, &ready(0)), FleetGate::Unknown);
}

#[test]
fn the_shard_that_says_most_counts_and_what_opens_a_gate_is_news() {
    let (fleet, early, late) = (Fleet::default(), order(3, 1), order(3, 2));
    put(&fleet, 1, &early, stand(3, None, Reached::Ready));
    assert_eq!(fleet.gate("o", &early, &ready(0)), FleetGate::Met, "one shard is known");
    fleet.expect("o", [early.as_ref(), late.as_ref()]);
    assert_eq!(fleet.gate("o", &early, &ready(0)), FleetGate::Unknown);
    let summaries = || fleet.0.lock()["o"].summaries(&early);
    let before = summaries();
    // The cluster that was given last is of another shard than the one that waits, which says the earlier number.
    put(&fleet, 2, &early, stand(3, None, Reached::Ready));
    assert_ne!(summaries(), before, "whoever waits is rung");
    assert_eq!(fleet.gate("o", &early, &ready(0)), FleetGate::Met);
    fleet.expect("o", [early.as_ref()]);
    for cluster in [1, 2] {
        fleet.leave("o", &id(cluster), false, None);
    }
    assert_eq!(fleet.gate("o", &Order::default(), &ready(0)), FleetGate::Nowhere);
    fleet.expect("o", []);
    assert!(fleet.0.lock().is_empty(), "an owner without shards leaves nothing");
}

#[test]
fn a_job_that_is_stopped_leaves_nothing_behind() {
    let (fleet, order, stop) = (Fleet::default(), order(3, 2), CancellationToken::new());
    fleet.put("o", &id(1), &order, stand(3, None, Reached::Ready), &stop);
    assert_eq!(fleet.is_away("o", &id(1), 3), Some(false));
    assert_eq!((fleet.is_away("o", &id(1), 2), fleet.is_away("o", &id(2), 3)), (None, None));
    stop.cancel();
    fleet.leave("o", &id(1), false, Some(&stop));
    assert_eq!(fleet.is_away("o", &id(1), 3), Some(false), "it has no say any more");
    fleet.leave("o", &id(1), false, None);
    // Its last pass ended after that.
    assert!(!fleet.put("o", &id(1), &order, stand(3, None, Reached::Ready), &stop));
    assert!(fleet.0.lock().is_empty());
}

#[test]
fn clusters_that_are_away_for_long_are_skipped_and_never_all_of_them() {
    let (fleet, order) = (Fleet::default(), order(3, 2));
    put(&fleet, 1, &order, stand(3, Some(100), Reached::Ready));
    put(&fleet, 2, &order, stand(3, None, Reached::Ready));
    assert_eq!(fleet.gate("o", &order, &ready(600)), FleetGate::Away(id(1), 1, Some(100)));
    assert_eq!(fleet.gate("o", &order, &ready(700)), FleetGate::Met);
    put(&fleet, 2, &order, stand(3, Some(50), Reached::Ready));
    assert_eq!(fleet.gate("o", &order, &ready(700)), FleetGate::Away(id(1), 2, None));
}

#[test]
fn an_app_that_no_cluster_is_to_have_meets_nothing() {
    assert_eq!(Fleet::default().gate("o", &order(3, 0), &ready(0)), FleetGate::Nowhere);
    assert_eq!(Fleet::default().gate("o", &Order::default(), &ready(0)), FleetGate::Nowhere);
}

proptest! {
    #[test]
    fn counts_are_those_of_the_clusters_as_they_are_now(
        steps in proptest::collection::vec((0..4_usize, 2..4_i64, proptest::option::of(0..5_i64), 0..4_u8), 0..40),
    ) {
        let (fleet, order) = (Fleet::default(), order(3, 1));
        let mut plain: BTreeMap<ClusterId, ClusterStand> = BTreeMap::new();
        for (cluster, revision, away, reached) in steps {
            let cluster = id(cluster);
            let reached = match reached {
                0 => Reached::Nothing,
                1 => Reached::Deployed,
                2 => Reached::Ready,
                _ => {
                    fleet.leave("o", &cluster, false, None);
                    plain.remove(&cluster);
                    continue;
                }
            };
            let stand = stand(revision, away, reached);
            fleet.put("o", &cluster, &order, stand.clone(), &CancellationToken::new());
            plain.insert(cluster, stand);
        }
        let mut counts: BTreeMap<(i64, String), AppCount> = BTreeMap::new();
        for (cluster, stand) in &plain {
            for (app, reached) in &stand.apps {
                counts.entry((stand.revision, app.clone())).or_default().put(cluster, stand.away, *reached);
            }
        }
        let owners = fleet.0.lock();
        let none = BTreeMap::new();
        let known = owners.get("o").map_or(&none, |owner| &owner.counts);
        prop_assert_eq!(known, &counts);
    }
}
