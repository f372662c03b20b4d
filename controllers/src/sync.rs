//! Shards from the hub in, objects on clusters and shard statuses out. One job per owner and cluster, one gate, one store
//! and one set of watches per cluster: no cluster delays another, no owner starves another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::SyncShard;
use emco_engine::identity::ClusterId;
use emco_engine::marks;
use emco_engine::snapshot::Installation;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::remote::Connections;
use crate::world::World;

pub mod content;
pub mod edge;
pub mod errors;
mod inbox;
mod job;
mod mark;
pub mod metrics;
pub mod observe;
mod pace;
mod policy;
pub mod prepared;
pub mod report;
pub mod work;

pub use edge::Fence;
pub use metrics::SyncMetrics;
pub use policy::{Policies, Policy};
pub use work::Owner;

use content::HubContent;
use edge::Edge;
use inbox::{Inbox, ShardKey};
use job::{Job, JobContext};
use prepared::Prepared;
use report::{Budget, Reporter};
use work::{Work, works};

/// Limits.
#[derive(Clone, Debug)]
pub struct SyncSettings {
    /// Requests in flight per cluster.
    pub in_flight: usize,
    /// Bytes of packs and sets kept in memory.
    pub cache_bytes: usize,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self { in_flight: 4, cache_bytes: 64 * 1024 * 1024 }
    }
}

/// Everything the engine needs from outside.
#[derive(Clone)]
pub struct SyncContext {
    /// Hub, clock, randomness. (Edges are reached through `connections`.)
    pub world: World,
    /// Remote clusters with what is known of them.
    pub connections: Arc<dyn Connections>,
    /// Whose hub this is.
    pub installation: Arc<Installation>,
    /// The operator's namespace on the hub: packs are there.
    pub namespace: String,
    /// Pace of owners.
    pub policies: Arc<dyn Policies>,
    /// Asked before every write to a cluster.
    pub fence: Arc<dyn Fence>,
    /// Epoch of our lease: shards of a later one are left alone.
    pub epoch: i64,
    /// Limits.
    pub settings: SyncSettings,
}

/// When a process begins, all it knows is to be read anew: every row, every deployment, every list of every cluster. So long, what
/// was at rest waits: whoever changed something in the meantime goes first.
const CALM: Duration = Duration::from_secs(1);

/// The engine.
pub struct Sync {
    ctx: SyncContext,
    content: Arc<HubContent>,
    metrics: Arc<SyncMetrics>,
    budget: Arc<Budget>,
    inbox: Inbox,
    // Owners whose policy changed since the last look.
    repaced: Mutex<BTreeSet<String>>,
    calm_until: Instant,
}

impl Sync {
    /// An engine that waits for shards; [`Self::run`] does the work.
    pub fn new(ctx: SyncContext) -> Arc<Self> {
        let content =
            Arc::new(HubContent::new(ctx.world.hub.clone(), ctx.namespace.clone(), ctx.settings.cache_bytes));
        Arc::new(Self {
            ctx,
            content,
            metrics: Arc::new(SyncMetrics::default()),
            budget: Arc::new(Budget::new()),
            inbox: Inbox::default(),
            repaced: Mutex::new(BTreeSet::new()),
            calm_until: Instant::now() + CALM,
        })
    }

    /// Counters.
    pub fn metrics(&self) -> Arc<SyncMetrics> {
        self.metrics.clone()
    }

    /// How long what is at rest is still left alone, since the process just began.
    pub fn calm(&self) -> Option<Duration> {
        self.calm_until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Keeps a set that the hub has as a whole, so that it is not read back at once.
    pub fn stored(&self, set: Arc<Prepared>) {
        self.content.stored(set);
    }

    /// A shard as read from the hub, new or changed. Never waits.
    pub fn shard(&self, shard: SyncShard) {
        self.inbox.shown(shard);
    }

    /// A shard as the hub answered a write of it: what it has, sooner than the watch tells. Never waits.
    pub fn targeted(&self, shard: SyncShard) {
        self.inbox.answered(shard);
    }

    /// A shard is not on the hub any more. What it named stays where it is.
    pub fn shard_gone(&self, namespace: &str, name: &str) {
        self.inbox.gone(namespace, name);
    }

    /// What an owner says about its own pace changed: its jobs look again. Never waits.
    pub fn policy_changed(&self, kind: &str, namespace: &str, name: &str) {
        let hash = marks::owner_hash(&self.ctx.installation.id, kind, namespace, name);
        self.repaced.lock().insert(hash);
        self.inbox.ring();
    }

    /// Works until stopped; returns when every task has ended.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut desk = Desk {
            sync: self.clone(),
            stop: stop.child_token(),
            tasks: JoinSet::new(),
            shards: BTreeMap::new(),
            arriving: BTreeMap::new(),
            edges: BTreeMap::new(),
            jobs: BTreeMap::new(),
        };
        let metrics = self.metrics.clone();
        let mut moves = self.ctx.connections.changes();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.inbox.notified() => {
                    let mut mail: Vec<_> = self.inbox.take().into_iter().collect();
                    // Where rows come from is known before where they go; and what they came to is settled afterwards.
                    mail.sort_by_key(|(_, shard)| shard.as_ref().is_some_and(|shard| shard.status.is_none()));
                    let mut touched = BTreeSet::new();
                    for (key, shard) in mail {
                        desk.take(&key, shard, &mut touched);
                    }
                    for (hash, cluster) in touched {
                        desk.settle(&cluster, &hash);
                    }
                    for hash in std::mem::take(&mut *self.repaced.lock()) {
                        desk.ring(&hash);
                    }
                    metrics.jobs.store(desk.jobs.len() as u64, std::sync::atomic::Ordering::Relaxed);
                    // Tasks that have ended are let go of.
                    while desk.tasks.try_join_next().is_some() {}
                }
                cluster = moves.next() => match cluster {
                    Some(cluster) => desk.refresh(&cluster),
                    None => break,
                },
            }
        }
        desk.stop.cancel();
        while desk.tasks.join_next().await.is_some() {}
    }
}

struct Desk {
    sync: Arc<Sync>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    shards: BTreeMap<ShardKey, Known>,
    /// Shards that took rows over and have no status yet: until then the old rows are worked on.
    arriving: BTreeMap<ShardKey, SyncShard>,
    edges: BTreeMap<ClusterId, (Arc<Edge>, CancellationToken)>,
    jobs: BTreeMap<(ClusterId, String), Running>,
}

/// A shard we know.
struct Known {
    hash: String,
    owner: Owner,
    depth: Depth,
    works: BTreeMap<ClusterId, Work>,
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

impl Desk {
    fn refresh(&self, cluster: &ClusterId) {
        if let Some((edge, _)) = self.edges.get(cluster) {
            edge.refresh();
        }
    }

    /// Wakes all jobs of an owner.
    fn ring(&self, hash: &str) {
        for (cluster, _) in self.jobs.keys().filter(|(_, owner)| owner == hash) {
            if let Some((edge, _)) = self.edges.get(cluster) {
                edge.observed.ring(hash);
            }
        }
    }

    /// Takes in one shard, and notes whose rows on which clusters it may have changed.
    fn take(
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
                known.hash
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
        let theirs: BTreeSet<ClusterId> =
            shard.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster)).collect();
        shard.status.is_none()
            && self.shards.iter().any(|((namespace, _), known)| {
                Some(namespace) == shard.metadata.namespace.as_ref()
                    && shard.spec.abandoned.is_none()
                    && (&known.owner.kind, &known.owner.name)
                        == (&shard.spec.owner.kind, &shard.spec.owner.name)
                    && known.depth.2 < shard.spec.bits
                    && known.works.keys().any(|cluster| theirs.contains(cluster))
            })
    }

    fn know(&mut self, key: &ShardKey, shard: SyncShard) -> String {
        let ctx = &self.sync.ctx;
        let works = works(&shard, ctx.epoch);
        if let Some(known) = self.shards.get_mut(key) {
            known.works = works;
            known.depth = depth(key, &shard);
            known.owner.uid.clone_from(&shard.spec.owner.uid);
            known.reporter.refresh(shard);
            return known.hash.clone();
        }
        let owner = Owner {
            kind: shard.spec.owner.kind.clone(),
            namespace: shard.owner_namespace().to_owned(),
            name: shard.spec.owner.name.clone(),
            uid: shard.spec.owner.uid.clone(),
        };
        let hash = marks::owner_hash(&ctx.installation.id, &owner.kind, &owner.namespace, &owner.name);
        let depth = depth(key, &shard);
        let (clock, random) = (ctx.world.clock.clone(), ctx.world.random.clone());
        let (metrics, budget) = (self.sync.metrics.clone(), self.sync.budget.clone());
        let reporter = Reporter::new(ctx.world.hub.clone(), clock, random, metrics, budget, shard);
        let stop = self.stop.child_token();
        self.tasks.spawn(reporter.clone().run(stop.clone()));
        self.shards.insert(key.clone(), Known { hash: hash.clone(), owner, depth, works, reporter, stop });
        hash
    }

    /// Sees to it that the job of an owner on a cluster runs with what the shards say.
    fn settle(&mut self, cluster: &ClusterId, hash: &str) {
        let named: Vec<(&ShardKey, &Known, &Work)> = self
            .shards
            .iter()
            .filter(|(_, known)| known.hash == hash)
            .filter_map(|(key, known)| known.works.get(cluster).map(|work| (key, known, work)))
            .collect();
        let Some((shard, known, work)) = named.iter().max_by(|a, b| a.1.depth.cmp(&b.1.depth)).copied()
        else {
            if let Some(job) = self.jobs.remove(&(cluster.clone(), hash.to_owned())) {
                job.stop.cancel();
            }
            if let Some((edge, _)) = self.edges.get(cluster) {
                edge.observed.want(hash, &[]);
            }
            self.unused(cluster);
            return;
        };
        let (shard, id, work) = (shard.clone(), work.id, Arc::new(work.clone()));
        let job_key = (cluster.clone(), hash.to_owned());
        if let Some(job) = self.jobs.get(&job_key) {
            if job.shard == shard && job.id == id {
                // Our own status coming back is no news.
                job.input.send_if_modified(|before| {
                    let changed = !before.same_wish(&work) || before.generation != work.generation;
                    *before = work;
                    changed
                });
                return;
            }
            job.stop.cancel();
        }
        let (owner, rows) = (known.owner.clone(), known.reporter.clone());
        let edge = self.edge(cluster);
        let ctx = Arc::new(JobContext {
            edge,
            manager: marks::field_manager(hash),
            hash: hash.to_owned(),
            owner,
            content: self.sync.content.clone(),
            policies: self.sync.ctx.policies.clone(),
            clock: self.sync.ctx.world.clock.clone(),
            random: self.sync.ctx.world.random.clone(),
            in_flight: self.sync.ctx.settings.in_flight,
            calm_until: self.sync.calm_until,
        });
        let (input, receiver) = watch::channel(work);
        let stop = self.stop.child_token();
        let status = rows.row(id).unwrap_or_default();
        let job = Job::new(ctx, receiver, rows, status);
        self.tasks.spawn(job.run(stop.clone()));
        self.jobs.insert(job_key, Running { shard, id, input, stop });
    }

    fn edge(&mut self, cluster: &ClusterId) -> Arc<Edge> {
        if let Some((edge, _)) = self.edges.get(cluster) {
            return edge.clone();
        }
        let ctx = &self.sync.ctx;
        let (connections, fence) = (ctx.connections.clone(), ctx.fence.clone());
        let edge =
            Edge::new(cluster.clone(), connections, fence, self.sync.metrics.clone(), ctx.settings.in_flight);
        let stop = self.stop.child_token();
        self.tasks.spawn(observe::watcher::run(edge.clone(), stop.clone()));
        self.tasks.spawn(mark::run(edge.clone(), stop.clone()));
        self.edges.insert(cluster.clone(), (edge.clone(), stop));
        edge
    }

    /// Lets go of a cluster that no owner has anything on.
    fn unused(&mut self, cluster: &ClusterId) {
        if self.jobs.keys().any(|(used, _)| used == cluster) {
            return;
        }
        if let Some((_, stop)) = self.edges.remove(cluster) {
            stop.cancel();
        }
    }
}

#[cfg(test)]
mod tests;
