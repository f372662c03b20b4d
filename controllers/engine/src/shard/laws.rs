//! Laws of the write-ahead, against simulated edges with a crash possible between any two steps.
//!
//! A hub holds one shard (spec, status, generation) and answers only writes that were made from its present version. Edges
//! are sets of identities. A worker per cluster acts on what it read, one object at a time; results wait in memory until they
//! are reported; a crash forgets everything but hub and edges.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::*;
use crate::identity::{Combination, Identity, SetDigest};
use crate::pack::Pack;

const CLUSTERS: usize = 2;

fn cluster(n: usize) -> ClusterId {
    ClusterId::new("acme", &format!("edge-{n}"))
}

fn identity(name: &str) -> Identity {
    Identity {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "n".to_owned(),
        name: name.to_owned(),
    }
}

/// Sets overlap: neighbours share an object.
fn objects_of(apps: &Combination) -> BTreeSet<Identity> {
    apps.iter()
        .flat_map(|(app, set)| {
            let n: u32 = set.0.trim_start_matches('s').parse().unwrap();
            [
                identity(&format!("{app}-{n}")),
                identity(&format!("{app}-{}", n + 1)),
                identity(&format!("{app}-shared")),
            ]
        })
        .collect()
}

/// 0 = the cluster is not wanted.
fn combination(n: u32) -> Combination {
    let mut apps = Combination::new();
    if n > 0 {
        apps.insert("web".to_owned(), SetDigest(format!("s{n}")));
    }
    if n % 2 == 1 {
        apps.insert("db".to_owned(), SetDigest(format!("s{}", n / 2)));
    }
    apps
}

#[derive(Clone, Debug)]
struct Job {
    id: i64,
    generation: i64,
    target: Option<Target>,
    goal: BTreeSet<Identity>,
    prune: BTreeSet<Identity>,
}

#[derive(Clone)]
struct Hub {
    spec: SyncShardSpec,
    status: Option<SyncShardStatus>,
    generation: i64,
}

struct World {
    hub: Hub,
    packs: BTreeMap<String, BTreeSet<Identity>>,
    edges: BTreeMap<ClusterId, BTreeSet<Identity>>,
    jobs: BTreeMap<ClusterId, Job>,
    /// Results that were not reported yet.
    results: BTreeMap<i64, Applied>,
    wanted: BTreeMap<ClusterId, Combination>,
    /// Clusters that went with the other half of a split.
    gone: BTreeSet<ClusterId>,
    revision: i64,
}

#[derive(Clone, Debug)]
enum Step {
    Retarget(usize, u32),
    Read(usize),
    Work(usize),
    /// Reads, and works to the end.
    Finish(usize),
    Report,
    Crash,
    Split,
}

impl World {
    fn new() -> Self {
        let spec = SyncShardSpec { format: 1, epoch: 1, next_id: 1, ..SyncShardSpec::default() };
        Self {
            hub: Hub { spec, status: None, generation: 1 },
            packs: BTreeMap::new(),
            edges: (0..CLUSTERS).map(|n| (cluster(n), BTreeSet::new())).collect(),
            jobs: BTreeMap::new(),
            results: BTreeMap::new(),
            wanted: BTreeMap::new(),
            gone: BTreeSet::new(),
            revision: 0,
        }
    }

    fn objects(&self, content: &Content) -> BTreeSet<Identity> {
        match content {
            Content::Sets(target) => objects_of(&target.apps),
            Content::Identities(pack) => self.packs[&pack.pack].clone(),
        }
    }

    fn retarget(&mut self) -> bool {
        let Hub { spec, status, generation } = &self.hub;
        self.revision += 1;
        let Some(fresh) = retarget(spec, status.as_ref(), generation + 1, self.revision, &self.wanted) else {
            return false;
        };
        let collapsed = collapse_held(fresh, |content| Ok(self.objects(content))).unwrap();
        for pack in collapsed.packs {
            let all = Pack::read(&pack.bytes).unwrap().identities().unwrap().unwrap();
            self.packs.insert(pack.name, all);
        }
        assert!(collapsed.spec.clusters.iter().all(|row| row.held.len() <= MOST_HELD));
        let ids: BTreeSet<i64> = spec.clusters.iter().map(|r| r.id).collect();
        for row in &collapsed.spec.clusters {
            assert!(ids.contains(&row.id) || row.id >= spec.next_id, "an id was used again");
        }
        self.hub.spec = collapsed.spec;
        self.hub.generation += 1;
        true
    }

    fn row(&self, cluster: &ClusterId) -> Option<Row> {
        rows(&self.hub.spec, self.hub.status.as_ref()).into_iter().find(|row| row.cluster == *cluster)
    }

    fn read(&mut self, cluster: &ClusterId) {
        self.jobs.remove(cluster);
        let Some(row) = self.row(cluster) else { return };
        assert_eq!(row.lost, Vec::<String>::new());
        if row.complete {
            return;
        }
        let goal = row.target.as_ref().map(|t| objects_of(&t.apps)).unwrap_or_default();
        let mut prune: BTreeSet<Identity> = row.may_have.iter().flat_map(|c| self.objects(c)).collect();
        prune.retain(|id| !goal.contains(id));
        let job = Job { id: row.id, generation: self.hub.generation, target: row.target, goal, prune };
        self.jobs.insert(cluster.clone(), job);
    }

    /// One object; or the end of the job.
    fn work(&mut self, cluster: &ClusterId) {
        let Some(job) = self.jobs.get(cluster).cloned() else { return };
        let edge = self.edges.get_mut(cluster).unwrap();
        if let Some(next) = job.goal.iter().find(|id| !edge.contains(*id)).cloned() {
            edge.insert(next);
        } else if let Some(next) = job.prune.iter().find(|id| edge.contains(*id)).cloned() {
            edge.remove(&next);
        } else {
            let applied = Applied { combination: job.target.map(|t| t.name), generation: job.generation };
            self.results.insert(job.id, applied);
            self.jobs.remove(cluster);
        }
    }

    fn report(&mut self) {
        let mut known =
            self.hub.status.as_ref().map(|s| decode_status(&self.hub.spec, s)).unwrap_or_default();
        for (id, applied) in std::mem::take(&mut self.results) {
            let row = known.entry(id).or_default();
            *row = RowStatus {
                id,
                connectivity: Connectivity::Reachable,
                state: State::Instantiated,
                applied: Some(applied),
                ..RowStatus::default()
            };
        }
        let status = encode_status(&self.hub.spec, self.hub.generation, &known);
        self.hub.status = Some(status);
    }

    fn crash(&mut self) {
        self.jobs.clear();
        self.results.clear();
    }

    /// Goes on with the half of a split that has a cluster, sometimes before its status was written. Rows of the other
    /// half are given up to it: their edges leave this world.
    fn split(&mut self, which: usize) {
        let Some(halves) = split(&self.hub.spec, self.hub.status.as_ref()) else { return };
        let all: BTreeSet<String> = self.hub.spec.clusters.iter().map(|r| r.cluster.clone()).collect();
        let both: BTreeSet<String> =
            halves.iter().flat_map(|h| h.spec.clusters.iter().map(|r| r.cluster.clone())).collect();
        assert_eq!(all, both);
        let [left, right] = halves;
        let (chosen, other) = if which.is_multiple_of(2) { (left, right) } else { (right, left) };
        assert_ne!((chosen.spec.slot, chosen.spec.bits), (other.spec.slot, other.spec.bits));
        self.crash();
        for row in &other.spec.clusters {
            let gone = ClusterId::parse(&row.cluster).unwrap();
            self.wanted.remove(&gone);
            self.edges.insert(gone.clone(), BTreeSet::new());
            self.gone.insert(gone);
        }
        let status = (which < 2).then_some(chosen.status);
        self.hub = Hub { spec: chosen.spec, status, generation: 1 };
    }

    /// The law: whatever is on a cluster is in `applied ∪ held ∪ target` of its row.
    fn nothing_is_unknown(&self) {
        for (cluster, edge) in &self.edges {
            let row = self.row(cluster);
            let mut known: BTreeSet<Identity> = BTreeSet::new();
            if let Some(row) = &row {
                known.extend(row.may_have.iter().flat_map(|c| self.objects(c)));
                known.extend(row.target.iter().flat_map(|t| objects_of(&t.apps)));
            }
            assert!(edge.is_subset(&known), "{cluster} has {edge:?}, known is {known:?}, row {row:?}");
        }
        // What is called complete is.
        for row in rows(&self.hub.spec, self.hub.status.as_ref()).iter().filter(|row| row.complete) {
            let goal = row.target.as_ref().map(|t| objects_of(&t.apps)).unwrap_or_default();
            assert_eq!(self.edges[&row.cluster], goal, "{} is called complete", row.cluster);
        }
    }

    fn settle(&mut self) {
        for _ in 0..10 {
            self.retarget();
            for n in 0..CLUSTERS {
                self.read(&cluster(n));
                for _ in 0..100 {
                    self.work(&cluster(n));
                }
            }
            self.report();
            self.nothing_is_unknown();
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Retarget(n, wanted) => {
                if !self.gone.contains(&cluster(*n)) {
                    self.wanted.insert(cluster(*n), combination(*wanted));
                }
                self.retarget();
            }
            Step::Finish(n) => {
                self.read(&cluster(*n));
                while self.jobs.contains_key(&cluster(*n)) {
                    self.work(&cluster(*n));
                    self.nothing_is_unknown();
                }
            }
            Step::Read(n) => self.read(&cluster(*n)),
            Step::Work(n) => self.work(&cluster(*n)),
            Step::Report => self.report(),
            Step::Crash => self.crash(),
            Step::Split => self.split(usize::try_from(self.revision).unwrap() % 4),
        }
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
        1 => Just(Step::Split),
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
            if let Some(row) = row {
                prop_assert!(row.complete && row.may_have.iter().all(|c| matches!(c, Content::Sets(_))));
            }
        }
        // At rest, nothing is written.
        prop_assert!(!world.retarget());
        let status = world.hub.status.clone();
        world.report();
        prop_assert_eq!(status, world.hub.status);
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
