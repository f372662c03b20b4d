//! Dispatches shards: one job per owner and cluster, one status reporter per shard, one shared `Edge` per cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::SyncShard;
use emco_engine::depends::Order;
use emco_engine::identity::ClusterId;
use emco_engine::marks;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::edge::Edge;
use super::fair::Claimant;
use super::inbox::ShardKey;
use super::job::{Job, JobContext};
use super::line_bound::LineBound;
use super::owners::Owners;
use super::report::Reporter;
use super::suspension::Suspension;
use super::work::{Work, works};
use super::{Sync, mark, observe};
use crate::object::{LogFields, Owner};

/// Who is at work on what.
pub(super) struct Dispatcher {
    sync: Arc<Sync>,
    pub stop: CancellationToken,
    pub tasks: JoinSet<()>,
    shards: BTreeMap<ShardKey, Known>,
    owners: Owners,
    /// Shards that took rows over and have no status yet: until then the old rows are worked on.
    arriving: BTreeMap<ShardKey, SyncShard>,
    edges: BTreeMap<ClusterId, (Arc<Edge>, CancellationToken)>,
    jobs: BTreeMap<(ClusterId, String), Running>,
    /// Lines of the log of each owner, by its hash.
    lines: BTreeMap<String, Arc<LineBound>>,
}

/// A shard we know.
struct Known {
    owner: Owner,
    depth: Depth,
    /// It is a ledger.
    abandoned: bool,
    works: BTreeMap<ClusterId, Arc<Work>>,
    order: Arc<Order>,
    reporter: Arc<Reporter>,
    stop: CancellationToken,
}

/// A job that runs.
struct Running {
    shard: ShardKey,
    id: i64,
    input: watch::Sender<Arc<Work>>,
    stop: CancellationToken,
}

/// Where two name the same cluster, its row moves from one to the other: the deeper one wins once it has a status. A ledger
/// has its turn when the owner has nothing to do there.
type Depth = (bool, bool, i32, std::cmp::Reverse<String>);

fn depth(key: &ShardKey, shard: &SyncShard) -> Depth {
    let (own, known) = (shard.spec.abandoned.is_none(), shard.status.is_some());
    (own, known, shard.spec.bits, std::cmp::Reverse(key.1.clone()))
}

impl Dispatcher {
    /// Nobody works yet.
    pub fn new(sync: Arc<Sync>, stop: &CancellationToken) -> Self {
        Self {
            sync,
            stop: stop.child_token(),
            tasks: JoinSet::new(),
            shards: BTreeMap::new(),
            owners: Owners::default(),
            arriving: BTreeMap::new(),
            edges: BTreeMap::new(),
            jobs: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }

    /// How many jobs there are.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// What is known of a cluster's connection has changed.
    pub fn refresh(&self, cluster: &ClusterId) {
        if let Some((edge, _)) = self.edges.get(cluster) {
            edge.refresh();
        }
    }

    /// Reads again whether branches of clusters can be written.
    pub fn refresh_branches(&self) {
        for (edge, _) in self.edges.values() {
            edge.refresh_branch();
        }
    }

    /// Wakes all jobs of an owner.
    pub fn ring(&self, hash: &str) {
        for (edge, _) in self.owners.clusters(hash).filter_map(|cluster| self.edges.get(cluster)) {
            edge.observed.ring(hash);
        }
    }

    /// Wakes all jobs of the owners in these namespaces, wherever their shards are: ledgers are with the provider.
    pub fn ring_within(&self, namespaces: &BTreeSet<String>) {
        for hash in namespaces.iter().flat_map(|namespace| self.owners.within(namespace)) {
            self.ring(hash);
        }
    }

    /// Takes in one shard, and notes whose rows on which clusters it may have changed.
    pub fn take(
        &mut self,
        key: &ShardKey,
        shard: Option<SyncShard>,
        touched: &mut BTreeSet<(String, ClusterId)>,
    ) {
        self.arriving.remove(key);
        if let Some(shard) = shard.as_ref().filter(|shard| self.arrives(shard)) {
            self.arriving.insert(key.clone(), shard.clone());
            return;
        }
        let shard = shard.filter(|shard| {
            let readable = shard.spec.format <= emco_crds::app_context::FORMAT;
            if !readable {
                let format = shard.spec.format;
                tracing::warn!(shard = key.1, format, "a later version wrote this shard: it is left alone");
            }
            readable
        });
        let mut clusters: BTreeSet<ClusterId> =
            self.shards.get(key).map(|known| known.works.keys().cloned().collect()).unwrap_or_default();
        let hash = match shard {
            None => {
                let Some(known) = self.shards.remove(key) else { return };
                known.stop.cancel();
                self.owners.forget(&known.owner, key, known.works.keys());
                let hash = known.owner.hash;
                self.expect(&hash);
                if self.owners.all_shards(&hash).next().is_none() {
                    self.lines.remove(&hash);
                }
                hash
            }
            Some(shard) => self.know(key, shard),
        };
        if let Some(known) = self.shards.get(key) {
            clusters.extend(known.works.keys().cloned());
        }
        touched.extend(clusters.into_iter().map(|cluster| (hash.clone(), cluster)));
        let here: Vec<ShardKey> = self
            .arriving
            .iter()
            .filter(|(_, shard)| !self.arrives(shard))
            .map(|(key, _)| key.clone())
            .collect();
        for key in here {
            let shard = self.arriving.remove(&key);
            self.take(&key, shard, touched);
        }
    }

    /// Whether a shard has rows of another one and does not know yet what became of them.
    fn arrives(&self, shard: &SyncShard) -> bool {
        if shard.status.is_some() || shard.spec.abandoned.is_some() {
            return false;
        }
        let hash = Owner::of_shard(&self.sync.ctx.installation, shard).hash;
        let theirs = shard.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster));
        theirs.flat_map(|cluster| self.owners.shards(&hash, &cluster)).any(|key| {
            let known = self.shards.get(&key).filter(|_| Some(&key.0) == shard.metadata.namespace.as_ref());
            known.is_some_and(|known| known.depth.2 < shard.spec.bits)
        })
    }

    /// Tells who counts clusters how many are waited for by now.
    fn expect(&self, hash: &str) {
        let all = self.owners.all_shards(hash).filter_map(|key| self.shards.get(key));
        self.sync.fleet.expect(hash, all.map(|known| known.order.as_ref()));
    }

    fn know(&mut self, key: &ShardKey, shard: SyncShard) -> String {
        let ctx = &self.sync.ctx;
        let before = self.shards.get(key).map(|known| &known.order);
        let (works, order) = works(&shard, ctx.epoch, before);
        if let Some(known) = self.shards.get_mut(key) {
            let is_same_order = Arc::ptr_eq(&known.order, &order);
            let gone = known.works.keys().filter(|cluster| !works.contains_key(*cluster));
            self.owners.forget_rows(&known.owner, key, gone);
            self.owners.know(&known.owner, key, works.keys());
            (known.works, known.order) = (works, order);
            known.depth = depth(key, &shard);
            known.owner.uid.clone_from(&shard.spec.owner.uid);
            known.reporter.refresh(shard);
            let hash = known.owner.hash.clone();
            if !is_same_order {
                self.expect(&hash);
            }
            return hash;
        }
        let owner = Owner::of_shard(&ctx.installation, &shard);
        let hash = owner.hash.clone();
        let (depth, abandoned) = (depth(key, &shard), shard.spec.abandoned.is_some());
        let (clock, random) = (ctx.world.clock.clone(), ctx.world.random.clone());
        let (metrics, budget) = (self.sync.metrics.clone(), self.sync.budget.clone());
        let hub = ctx.world.hub.clone();
        let reporter = Reporter::new(hub, clock, random, metrics, budget, self.lines(&owner), shard);
        let stop = self.stop.child_token();
        self.tasks.spawn(reporter.clone().run(stop.clone()));
        self.owners.know(&owner, key, works.keys());
        self.shards.insert(key.clone(), Known { owner, depth, abandoned, works, order, reporter, stop });
        self.expect(&hash);
        hash
    }

    /// Sees to it that the job of an owner on a cluster runs with what the shards say.
    pub fn settle(&mut self, cluster: &ClusterId, hash: &str) {
        let named = self.owners.shards(hash, cluster);
        let named = named.iter().filter_map(|key| {
            let known = self.shards.get(key)?;
            Some((key, known, known.works.get(cluster)?))
        });
        let Some((shard, known, work)) = named.max_by(|a, b| a.1.depth.cmp(&b.1.depth)) else {
            if let Some(job) = self.jobs.remove(&(cluster.clone(), hash.to_owned())) {
                job.stop.cancel();
            }
            self.sync.fleet.leave(hash, cluster, false, None);
            self.sync.ctx.refusals.forget(hash, cluster.as_str());
            if let Some((edge, _)) = self.edges.get(cluster) {
                edge.observed.want(hash, &[], None);
                edge.hindered.forget(hash);
            }
            self.unused(cluster);
            return;
        };
        let (shard, id, work) = (shard.clone(), work.id, Arc::clone(work));
        let job_key = (cluster.clone(), hash.to_owned());
        if let Some(job) = self.jobs.get(&job_key) {
            if job.shard == shard && job.id == id {
                // Our own status coming back is no news, nor is what other rows are to have: the next pass has it.
                job.input.send_if_modified(|before| {
                    let changed = !before.is_no_news(&work);
                    *before = work;
                    changed
                });
                return;
            }
            job.stop.cancel();
        }
        let (owner, rows, abandoned) = (known.owner.clone(), known.reporter.clone(), known.abandoned);
        let edge = self.edge(cluster);
        let log = self.lines(&owner);
        let stop = self.stop.child_token();
        let ctx = Arc::new(JobContext {
            edge,
            manager: marks::field_manager(hash),
            claimant: Claimant::new(&owner.namespace, &owner.kind, &owner.name),
            log,
            suspension: Suspension::new(self.sync.ctx.policies.clone(), owner.clone()),
            owner,
            installation: Arc::clone(&self.sync.ctx.installation),
            refusals: Arc::clone(&self.sync.ctx.refusals),
            content: self.sync.content.clone(),
            policies: self.sync.ctx.policies.clone(),
            clock: self.sync.ctx.world.clock.clone(),
            random: self.sync.ctx.world.random.clone(),
            in_flight: self.sync.ctx.settings.in_flight,
            fleet: Arc::clone(&self.sync.fleet),
            stop: stop.clone(),
            calm_until: self.sync.calm_until,
            abandoned,
        });
        let (input, receiver) = watch::channel(work);
        let status = rows.row(id).unwrap_or_default();
        let job = Job::new(ctx, receiver, rows, status);
        self.tasks.spawn(job.run());
        self.jobs.insert(job_key, Running { shard, id, input, stop });
    }

    /// The lines of an owner in the log.
    fn lines(&mut self, owner: &Owner) -> Arc<LineBound> {
        let project = self.sync.ctx.policies.project(&owner.namespace);
        let fields = LogFields::of(project, owner.kind.as_str(), &owner.namespace, &owner.name);
        Arc::clone(self.lines.entry(owner.hash.clone()).or_insert_with(|| LineBound::new(fields)))
    }

    fn edge(&mut self, cluster: &ClusterId) -> Arc<Edge> {
        if let Some((edge, _)) = self.edges.get(cluster) {
            return edge.clone();
        }
        let ctx = &self.sync.ctx;
        let (connections, fence) = (ctx.connections.clone(), ctx.fence.clone());
        let (metrics, rules) = (self.sync.metrics.clone(), self.sync.rules.clone());
        let publishers = Arc::clone(&ctx.publishers);
        let edge = Edge::new(
            cluster.clone(),
            connections,
            publishers,
            fence,
            metrics,
            rules,
            ctx.settings.in_flight,
        );
        let stop = self.stop.child_token();
        self.tasks.spawn(observe::watcher::run(edge.clone(), stop.clone()));
        self.tasks.spawn(mark::run(edge.clone(), stop.clone()));
        self.edges.insert(cluster.clone(), (edge.clone(), stop));
        edge
    }

    /// Lets go of a cluster that no owner has anything on.
    fn unused(&mut self, cluster: &ClusterId) {
        let mut from_here = self.jobs.range((cluster.clone(), String::new())..);
        if from_here.next().is_some_and(|((used, _), _)| used == cluster) {
            return;
        }
        if let Some((_, stop)) = self.edges.remove(cluster) {
            stop.cancel();
        }
    }
}
