//! Laws of the write-ahead, against simulated edges with a crash possible between any two steps.
//!
//! A hub holds shards (spec, status, generation), of which rows move to new ones, and answers only writes that were made from
//! its present version. Edges
//! are sets of identities. A worker per cluster acts on what it read, one object at a time; results wait in memory until they
//! are reported; a crash forgets everything but hub and edges.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::*;
use crate::identity::{Combination, Identity, SetDigest};
use crate::pack::Pack;

const CLUSTERS: usize = 3;

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
    /// The shard it was read from, and its row there.
    shard: usize,
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
    /// In the order in which they were made.
    shards: Vec<Hub>,
    packs: BTreeMap<String, BTreeSet<Identity>>,
    edges: BTreeMap<ClusterId, BTreeSet<Identity>>,
    jobs: BTreeMap<ClusterId, Job>,
    /// Results that were not reported yet, by shard and row.
    results: BTreeMap<(usize, i64), Applied>,
    wanted: BTreeMap<ClusterId, Combination>,
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
    /// The first write of a move; the others come with `Move`, or before the next target.
    Split(usize),
    Move,
}

impl World {
    fn new() -> Self {
        let spec = SyncShardSpec { format: 1, epoch: 1, next_id: 1, ..SyncShardSpec::default() };
        Self {
            shards: vec![Hub { spec, status: None, generation: 1 }],
            packs: BTreeMap::new(),
            edges: (0..CLUSTERS).map(|n| (cluster(n), BTreeSet::new())).collect(),
            jobs: BTreeMap::new(),
            results: BTreeMap::new(),
            wanted: BTreeMap::new(),
            revision: 0,
        }
    }

    fn objects(&self, content: &Content) -> BTreeSet<Identity> {
        match content {
            Content::Sets(target) => objects_of(&target.apps),
            Content::Identities(pack) => self.packs[&pack.pack].clone(),
        }
    }

    fn parts(&self) -> Vec<(&SyncShardSpec, Option<&SyncShardStatus>)> {
        self.shards.iter().map(|hub| (&hub.spec, hub.status.as_ref())).collect()
    }

    /// A shard with rows that a deeper one has as well, and that one.
    fn under_way(&self) -> Option<(usize, usize)> {
        let rows = |at: usize| self.shards[at].spec.clusters.iter().map(|row| row.cluster.clone());
        for from in 0..self.shards.len() {
            let theirs: BTreeSet<String> = rows(from).collect();
            let deeper = |to: &usize| self.shards[*to].spec.bits > self.shards[from].spec.bits;
            if let Some(to) =
                (0..self.shards.len()).filter(deeper).find(|to| rows(*to).any(|c| theirs.contains(&c)))
            {
                return Some((from, to));
            }
        }
        None
    }

    /// The next write of a move; whether there was one.
    fn move_on(&mut self) -> bool {
        let Some((from, to)) = self.under_way() else { return false };
        let (old, new) = (self.shards[from].clone(), &mut self.shards[to]);
        if new.status.is_none() {
            new.status = Some(carried(&old.spec, old.status.as_ref(), &new.spec));
        } else {
            let theirs = new.spec.clusters.iter().map(|row| cluster_id(&row.cluster)).collect();
            let taken = (new.spec.slot, new.spec.bits);
            let spec = without(&old.spec, old.status.as_ref(), &theirs, taken);
            self.shards[from] = Hub { spec, generation: old.generation + 1, ..old };
        }
        self.nothing_is_unknown();
        true
    }

    fn split(&mut self, n: usize) {
        let Hub { spec, status, .. } = &self.shards[n % self.shards.len()];
        if self.under_way().is_some() {
            return;
        }
        if let Some(half) = divide(spec, status.as_ref()) {
            self.shards.push(Hub { spec: half.spec, status: None, generation: 1 });
        }
    }

    fn retarget(&mut self) -> bool {
        while self.move_on() {}
        self.revision += 1;
        let mut rest = self.wanted.clone();
        let mut shares: Vec<BTreeMap<ClusterId, Combination>> = Vec::new();
        for hub in &self.shards {
            let rows = hub.spec.clusters.iter().map(|row| cluster_id(&row.cluster));
            shares.push(rows.filter_map(|id| rest.remove_entry(&id)).collect());
        }
        let slots: Vec<(i64, i32)> = self.shards.iter().map(|hub| (hub.spec.slot, hub.spec.bits)).collect();
        for (id, apps) in rest {
            let at = home(&id, &slots).unwrap_or_else(|| {
                // Both clusters were divided at a late bit: a slot beside them has nobody yet.
                let (slot, bits) = vacant(&id, &slots);
                let spec =
                    SyncShardSpec { format: 1, epoch: 1, next_id: 1, slot, bits, ..SyncShardSpec::default() };
                self.shards.push(Hub { spec, status: None, generation: 0 });
                shares.push(BTreeMap::new());
                self.shards.len() - 1
            });
            shares[at].insert(id, apps);
        }
        let mut wrote = false;
        for (at, share) in shares.iter().enumerate() {
            wrote |= self.retarget_one(at, share);
            self.nothing_is_unknown();
        }
        wrote
    }

    fn retarget_one(&mut self, at: usize, share: &BTreeMap<ClusterId, Combination>) -> bool {
        let Hub { spec, status, generation } = &self.shards[at];
        let Some(fresh) = retarget(spec, status.as_ref(), generation + 1, self.revision, share) else {
            return false;
        };
        let collapsed = collapse_held(fresh, |content| Ok(self.objects(content))).unwrap();
        assert!(collapsed.spec.clusters.iter().all(|row| row.held.len() <= MOST_HELD));
        let ids: BTreeSet<i64> = spec.clusters.iter().map(|r| r.id).collect();
        for row in &collapsed.spec.clusters {
            assert!(ids.contains(&row.id) || row.id >= spec.next_id, "an id was used again");
        }
        for pack in collapsed.packs {
            let all = Pack::read(&pack.bytes).unwrap().identities().unwrap().unwrap();
            self.packs.insert(pack.name, all);
        }
        self.shards[at].spec = collapsed.spec;
        self.shards[at].generation += 1;
        true
    }

    /// The row that speaks for a cluster, and the shard it is in.
    fn row(&self, cluster: &ClusterId) -> Option<(usize, Row)> {
        let quiet = superseded(&self.parts());
        let speaks = |at: &usize| !quiet[*at].contains(cluster);
        (0..self.shards.len()).filter(speaks).find_map(|at| {
            let Hub { spec, status, .. } = &self.shards[at];
            rows(spec, status.as_ref()).into_iter().find(|row| row.cluster == *cluster).map(|row| (at, row))
        })
    }

    fn read(&mut self, cluster: &ClusterId) {
        self.jobs.remove(cluster);
        let Some((shard, row)) = self.row(cluster) else { return };
        assert_eq!(row.lost, Vec::<String>::new());
        if row.complete {
            return;
        }
        let goal = row.target.as_ref().map(|t| objects_of(&t.apps)).unwrap_or_default();
        let mut prune: BTreeSet<Identity> = row.may_have.iter().flat_map(|c| self.objects(c)).collect();
        prune.retain(|id| !goal.contains(id));
        let generation = self.shards[shard].generation;
        let job = Job { shard, id: row.id, generation, target: row.target, goal, prune };
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
            self.results.insert((job.shard, job.id), applied);
            self.jobs.remove(cluster);
        }
    }

    /// Writes the statuses of shards; one whose rows are still arriving is nobody's to report on.
    fn report(&mut self) {
        let arriving = self.under_way().map(|(_, to)| to).filter(|to| self.shards[*to].status.is_none());
        let results = std::mem::take(&mut self.results);
        for (at, hub) in self.shards.iter_mut().enumerate().filter(|(at, _)| Some(*at) != arriving) {
            let mut known = hub.status.as_ref().map(|s| decode_status(&hub.spec, s)).unwrap_or_default();
            for ((_, id), applied) in results.iter().filter(|((shard, _), _)| *shard == at) {
                let row = known.entry(*id).or_default();
                *row = RowStatus {
                    id: *id,
                    connectivity: Connectivity::Reachable,
                    state: State::Instantiated,
                    applied: Some(applied.clone()),
                    ..RowStatus::default()
                };
            }
            hub.status = Some(encode_status(&hub.spec, hub.generation, &known));
        }
    }

    fn crash(&mut self) {
        self.jobs.clear();
        self.results.clear();
    }

    /// The law: whatever is on a cluster is in `applied ∪ held ∪ target` of the row that speaks for it.
    fn nothing_is_unknown(&self) {
        for (cluster, edge) in &self.edges {
            let row = self.row(cluster);
            let mut known: BTreeSet<Identity> = BTreeSet::new();
            if let Some((_, row)) = &row {
                known.extend(row.may_have.iter().flat_map(|c| self.objects(c)));
                known.extend(row.target.iter().flat_map(|t| objects_of(&t.apps)));
                // What is called complete is.
                let goal = row.target.as_ref().map(|t| objects_of(&t.apps)).unwrap_or_default();
                assert!(!row.complete || *edge == goal, "{cluster} is called complete");
            }
            assert!(edge.is_subset(&known), "{cluster} has {edge:?}, known is {known:?}, row {row:?}");
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
                self.wanted.insert(cluster(*n), combination(*wanted));
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
            Step::Split(n) => self.split(*n),
            Step::Move => drop(self.move_on()),
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
        2 => (0..4usize).prop_map(Step::Split),
        2 => Just(Step::Move),
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
