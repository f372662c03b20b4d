//! Plays a hub, its shards and simulated edges, with a crash possible between any two steps.
//!
//! A hub holds shards (spec, status, generation), of which rows move to new ones, and answers only writes that were made from
//! its present version. At any step all of it may be copied to another hub, with statuses or without: then each object has
//! generation 1. Edges are sets of identities. A worker per cluster acts on what it read, one object at a time; results wait
//! in memory until they are reported; a crash forgets everything but hub and edges.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::super::*;
use crate::identity::{Combination, Identity, SetDigest};
use crate::pack::Pack;

pub(super) const CLUSTERS: usize = 3;

pub(super) fn cluster(n: usize) -> ClusterId {
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
pub(super) fn objects_of(apps: &Combination) -> BTreeSet<Identity> {
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
pub(super) fn combination(n: u32) -> Combination {
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
pub(super) struct Job {
    /// The shard it was read from, and its row there.
    shard: usize,
    id: i64,
    generation: i64,
    target: Option<Target>,
    goal: BTreeSet<Identity>,
    prune: BTreeSet<Identity>,
}

#[derive(Clone)]
pub(super) struct Hub {
    pub(super) spec: SyncShardSpec,
    pub(super) status: Option<SyncShardStatus>,
    generation: i64,
}

impl Hub {
    fn written(&self) -> i64 {
        writes(&self.spec, self.status.as_ref(), self.generation)
    }
}

pub(super) struct World {
    /// In the order in which they were made.
    pub(super) shards: Vec<Hub>,
    packs: BTreeMap<String, BTreeSet<Identity>>,
    pub(super) edges: BTreeMap<ClusterId, BTreeSet<Identity>>,
    pub(super) jobs: BTreeMap<ClusterId, Job>,
    /// Results that were not reported yet, by shard and row.
    results: BTreeMap<(usize, i64), Applied>,
    pub(super) wanted: BTreeMap<ClusterId, Combination>,
    revision: i64,
    /// What each name ever meant, by shard.
    meant: BTreeMap<(usize, String), Combination>,
}

impl World {
    pub(super) fn new() -> Self {
        let spec = SyncShardSpec { format: 1, epoch: 1, next_id: 1, ..SyncShardSpec::default() };
        Self {
            shards: vec![Hub { spec, status: None, generation: 1 }],
            packs: BTreeMap::new(),
            edges: (0..CLUSTERS).map(|n| (cluster(n), BTreeSet::new())).collect(),
            jobs: BTreeMap::new(),
            results: BTreeMap::new(),
            wanted: BTreeMap::new(),
            revision: 0,
            meant: BTreeMap::new(),
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
    pub(super) fn move_on(&mut self) -> bool {
        let Some((from, to)) = self.under_way() else { return false };
        let (old, new) = (self.shards[from].clone(), &mut self.shards[to]);
        if new.status.is_none() {
            new.status = Some(carried(&old.spec, old.status.as_ref(), &new.spec));
        } else {
            let theirs = new.spec.clusters.iter().map(|row| cluster_id(&row.cluster)).collect();
            let taken = (new.spec.slot, new.spec.bits);
            let spec = without(&old.spec, old.status.as_ref(), &theirs, taken);
            let spec = SyncShardSpec { writes: old.written() + 1, ..spec };
            self.shards[from] = Hub { spec, generation: old.generation + 1, ..old };
        }
        self.nothing_is_unknown();
        true
    }

    pub(super) fn split(&mut self, n: usize) {
        let Hub { spec, status, .. } = &self.shards[n % self.shards.len()];
        if self.under_way().is_some() {
            return;
        }
        if let Some(half) = divide(spec, status.as_ref()) {
            self.shards.push(Hub { spec: half.spec, status: None, generation: 1 });
        }
    }

    pub(super) fn retarget(&mut self) -> bool {
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
        let next = self.shards[at].written() + 1;
        let Hub { spec, status, .. } = &self.shards[at];
        let Some(fresh) = retarget(spec, status.as_ref(), next, self.revision, share) else {
            self.wants(at, share);
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
        self.shards[at].spec = SyncShardSpec { writes: next, ..collapsed.spec };
        self.shards[at].generation += 1;
        self.wants(at, share);
        true
    }

    /// The law of a retarget, whether it wrote or not: what is stored is what was asked for.
    fn wants(&self, at: usize, share: &BTreeMap<ClusterId, Combination>) {
        let Hub { spec, status, .. } = &self.shards[at];
        for row in rows(spec, status.as_ref()) {
            let asked = share.get(&row.cluster).filter(|apps| !apps.is_empty());
            assert_eq!(row.target.as_ref().map(|target| &target.apps), asked, "{}", row.cluster);
        }
    }

    /// The law of names: one content each, in the life of a shard.
    pub(super) fn names_mean_what_they_meant(&mut self) {
        for (at, hub) in self.shards.iter().enumerate() {
            for combination in &hub.spec.combinations {
                let means =
                    self.meant.entry((at, combination.name.clone())).or_insert_with(|| apps(combination));
                assert_eq!(*means, apps(combination), "{}", combination.name);
            }
        }
    }

    pub(super) fn copy(&mut self, with_status: bool) {
        self.crash();
        for hub in &mut self.shards {
            hub.generation = 1;
            hub.status = hub.status.take().filter(|_| with_status);
        }
    }

    pub(super) fn uncounted(&mut self) {
        self.crash();
        self.meant.clear();
        for hub in &mut self.shards {
            hub.spec.writes = 0;
        }
    }

    /// The row that speaks for a cluster, and the shard it is in.
    pub(super) fn row(&self, cluster: &ClusterId) -> Option<(usize, Row)> {
        let quiet = superseded(&self.parts());
        let speaks = |at: &usize| !quiet[*at].contains(cluster);
        (0..self.shards.len()).filter(speaks).find_map(|at| {
            let Hub { spec, status, .. } = &self.shards[at];
            rows(spec, status.as_ref()).into_iter().find(|row| row.cluster == *cluster).map(|row| (at, row))
        })
    }

    pub(super) fn read(&mut self, cluster: &ClusterId) {
        self.jobs.remove(cluster);
        let Some((shard, row)) = self.row(cluster) else { return };
        assert_eq!(row.lost, Vec::<String>::new());
        if row.complete {
            return;
        }
        if row.uid.is_none() {
            // The first contact: what is read now may not be acted on, what is read next may.
            self.contact(cluster);
            return;
        }
        let goal = row.target.as_ref().map(|t| objects_of(&t.apps)).unwrap_or_default();
        let mut prune: BTreeSet<Identity> = row.may_have.iter().flat_map(|c| self.objects(c)).collect();
        prune.retain(|id| !goal.contains(id));
        let generation = self.shards[shard].written();
        let job = Job { shard, id: row.id, generation, target: row.target, goal, prune };
        self.jobs.insert(cluster.clone(), job);
    }

    /// Records who a cluster is, as a retarget does: rows that move arrive first.
    fn contact(&mut self, cluster: &ClusterId) {
        while self.move_on() {}
        let Some((shard, row)) = self.row(cluster) else { return };
        if row.uid.is_some() {
            return;
        }
        let written = self.shards[shard].written();
        let hub = &mut self.shards[shard];
        let spec = record_uids(&hub.spec, &[(cluster.clone(), "uid".to_owned())].into()).unwrap();
        hub.spec = SyncShardSpec { writes: written + 1, ..spec };
        hub.generation += 1;
    }

    /// One object; or the end of the job.
    pub(super) fn work(&mut self, cluster: &ClusterId) {
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
    pub(super) fn report(&mut self) {
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
            hub.status = Some(encode_status(&hub.spec, hub.written(), &known));
        }
    }

    pub(super) fn crash(&mut self) {
        self.jobs.clear();
        self.results.clear();
    }

    /// The law: whatever is on a cluster is in `applied ∪ held ∪ target` of the row that speaks for it.
    pub(super) fn nothing_is_unknown(&self) {
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

    pub(super) fn settle(&mut self) {
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
}
