//! Laws of the write-ahead.

mod world;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::*;
use world::{CLUSTERS, World, cluster, combination, objects_of};

#[derive(Clone, Debug)]
enum Step {
    Retarget(usize, u32),
    Read(usize),
    Work(usize),
    /// Reads, and works to the end.
    Finish(usize),
    Report,
    Crash,
    /// The first write of a move; the others come with `Move`, or before the next target.
    Split(usize),
    Move,
    /// Every object is created anew on another hub, with its status or without, and another process begins.
    Copy(bool),
    /// The shards are those of an operator that did not count its writes, and another process begins.
    Uncounted,
}

impl World {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Retarget(n, wanted) => {
                self.wanted.insert(cluster(*n), combination(*wanted));
                self.retarget();
            }
            Step::Finish(n) => {
                self.read(&cluster(*n));
                if !self.jobs.contains_key(&cluster(*n)) {
                    self.read(&cluster(*n));
                }
                while self.jobs.contains_key(&cluster(*n)) {
                    self.work(&cluster(*n));
                    self.nothing_is_unknown();
                }
            }
            Step::Read(n) => self.read(&cluster(*n)),
            Step::Work(n) => self.work(&cluster(*n)),
            Step::Report => self.report(),
            Step::Crash => self.crash(),
            Step::Split(n) => self.split(*n),
            Step::Move => drop(self.move_on()),
            Step::Copy(with_status) => self.copy(*with_status),
            Step::Uncounted => self.uncounted(),
        }
        self.names_mean_what_they_meant();
        self.nothing_is_unknown();
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..CLUSTERS, 0..3u32).prop_map(|(n, c)| Step::Retarget(n, c)),
        4 => (0..CLUSTERS, 0..12u32).prop_map(|(n, c)| Step::Retarget(n, c)),
        6 => (0..CLUSTERS).prop_map(Step::Read),
        12 => (0..CLUSTERS).prop_map(Step::Work),
        5 => (0..CLUSTERS).prop_map(Step::Finish),
        5 => Just(Step::Report),
        1 => Just(Step::Crash),
        2 => (0..4usize).prop_map(Step::Split),
        2 => Just(Step::Move),
        2 => any::<bool>().prop_map(Step::Copy),
        1 => Just(Step::Uncounted),
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_on_a_cluster_is_in_its_row_and_in_the_end_it_is_the_target(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.settle();
        for (cluster, edge) in &world.edges {
            let wanted = world.wanted.get(cluster).map(objects_of).unwrap_or_default();
            prop_assert_eq!(edge, &wanted, "{}", cluster);
            // Rows of clusters that nothing is wanted of have left; the others are complete, and remember nothing.
            let row = world.row(cluster);
            prop_assert_eq!(row.is_some(), !wanted.is_empty());
            if let Some((_, row)) = row {
                prop_assert!(row.complete && row.may_have.iter().all(|c| matches!(c, Content::Sets(_))));
            }
        }
        // At rest, nothing is written.
        prop_assert!(!world.retarget());
        let statuses = |world: &World| -> Vec<Option<SyncShardStatus>> {
            world.shards.iter().map(|hub| hub.status.clone()).collect()
        };
        let before = statuses(&world);
        world.report();
        prop_assert_eq!(before, statuses(&world));
        // Each row is in one shard.
        let all: Vec<&String> =
            world.shards.iter().flat_map(|hub| hub.spec.clusters.iter().map(|row| &row.cluster)).collect();
        let distinct: BTreeSet<&String> = all.iter().copied().collect();
        prop_assert_eq!(all.len(), distinct.len());
    }

    #[test]
    fn a_status_comes_back_as_it_was_reported(
        numbers in proptest::collection::vec((1..4i64, 0..3i64, 0..3i64, any::<bool>(), any::<bool>()), 0..40)
    ) {
        let wanted = (0..numbers.len()).map(|n| (cluster(n), combination(1 + u32::try_from(n).unwrap() % 3))).collect();
        let spec = SyncShardSpec { next_id: 1, ..SyncShardSpec::default() };
        let spec = retarget(&spec, None, 1, 1, &wanted).unwrap_or(spec);
        let mut reported = BTreeMap::new();
        for (row, (total, missing, generation, done, reachable)) in spec.clusters.iter().zip(numbers) {
            let ready = (total - missing).max(0);
            reported.insert(row.id, RowStatus {
                id: row.id,
                cluster: row.cluster.clone(),
                connectivity: if reachable { Connectivity::Reachable } else { Connectivity::Unreachable },
                state: State::Instantiated,
                applied: Some(Applied { combination: row.target.clone().filter(|_| done), generation }),
                counts: Some(emco_crds::sync_shard::status::RowCounts { applied: total, ready, not_ready: total - ready, ..Default::default() }),
                total,
                applied_count: total,
                ready,
                ..RowStatus::default()
            });
        }
        let status = encode_status(&spec, 7, &reported);
        for row in reported.values_mut().filter(|row| row.applied.as_ref().is_some_and(|a| a.combination.is_some())) {
            row.applied.as_mut().unwrap().generation = 7;
        }
        prop_assert_eq!(decode_status(&spec, &status), reported);
        // Written twice, it is the same.
        prop_assert_eq!(encode_status(&spec, 7, &decode_status(&spec, &status)), status);
    }
}
