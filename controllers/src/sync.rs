//! Synchronises shards of the hub with objects on clusters, and reports results in shard statuses. One job per owner
//! and cluster, one gate, one store and one set of watches per cluster: no cluster delays another, no owner starves
//! another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::{OwnerKind, SyncShard};
use emco_engine::marks;
use emco_engine::snapshot::Installation;
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::world::World;
use crate::object::refusals::Refusals;
use crate::publish::Publishers;
use crate::remote::Connections;

mod absence;
mod agent;
pub mod budget;
pub mod content;
pub mod definitions;
mod dispatcher;
pub mod edge;
pub mod errors;
pub mod fair;
mod fleet;
pub mod gate;
pub mod health_rules;
mod inbox;
mod job;
pub mod line_bound;
mod mark;
pub mod metrics;
pub mod observe;
mod owners;
mod pace;
mod policy;
pub mod prepared;
pub mod report;
mod row_log;
mod suspension;
pub mod tried;
pub mod work;

pub use crate::api::fence::{Fence, send_fenced};
pub use job::{TRIES_TO_KNOW, leave_out, leave_out_nulls};
pub use metrics::SyncMetrics;
pub use policy::{Policies, Policy};

use budget::Budget;
use content::HubContent;
use dispatcher::Dispatcher;
use fleet::Fleet;
use health_rules::HealthRules;
use inbox::Inbox;
use prepared::Prepared;

/// Limits.
#[derive(Clone, Debug)]
pub struct SyncSettings {
    /// Requests in flight per cluster; [`gate::SPARE`] more for projects that have none.
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
    /// Branches of clusters that are written through Git.
    pub publishers: Arc<Publishers>,
    /// Whose hub this is.
    pub installation: Arc<Installation>,
    /// Whole words of what clusters refuse, for Events.
    pub refusals: Arc<Refusals>,
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
/// How long a change waits at most, since the process began, for clusters that answered last and were not tried to the end yet. On a busy
/// machine the first answers take longer than [`CALM`].
const FIRST_ANSWERS: Duration = Duration::from_secs(15);

/// The time until then, if it is still to come.
fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

/// The engine.
pub struct Sync {
    ctx: SyncContext,
    content: Arc<HubContent>,
    metrics: Arc<SyncMetrics>,
    budget: Budget,
    fleet: Arc<Fleet>,
    rules: Arc<HealthRules>,
    inbox: Inbox,
    // Owners whose policy changed since the last look.
    repaced: Mutex<BTreeSet<String>>,
    // Namespaces whose project was suspended or resumed since the last look.
    resuspended: Mutex<BTreeSet<String>>,
    calm_until: Instant,
    answers_until: Instant,
}

impl Sync {
    /// An engine that waits for shards; [`Self::run`] does the work.
    pub fn new(ctx: SyncContext) -> Arc<Self> {
        let content =
            Arc::new(HubContent::new(ctx.world.hub.clone(), ctx.namespace.clone(), ctx.settings.cache_bytes));
        let metrics = Arc::new(SyncMetrics::default());
        Arc::new(Self {
            ctx,
            content,
            rules: HealthRules::new(metrics.clone()),
            metrics,
            budget: Budget::new(),
            fleet: Arc::default(),
            inbox: Inbox::default(),
            repaced: Mutex::new(BTreeSet::new()),
            resuspended: Mutex::new(BTreeSet::new()),
            calm_until: Instant::now() + CALM,
            answers_until: Instant::now() + FIRST_ANSWERS,
        })
    }

    /// Counters.
    pub fn metrics(&self) -> Arc<SyncMetrics> {
        self.metrics.clone()
    }

    /// The users' health rules, which custom resources are judged by.
    pub fn health_rules(&self) -> Arc<HealthRules> {
        self.rules.clone()
    }

    /// How long what is at rest is still left alone, since the process just began.
    pub fn calm(&self) -> Option<Duration> {
        left(self.calm_until)
    }

    /// How long a change may still wait for the first answers of clusters.
    pub fn first_answers(&self) -> Option<Duration> {
        left(self.answers_until)
    }

    /// Keeps a set that the hub has as a whole, so that it is not read back at once.
    pub fn stored(&self, set: Arc<Prepared>) {
        self.content.stored(set);
    }

    /// Forgets what was read for revisions that are gone.
    pub fn forget_gone(&self, is_there: impl Fn(&content::Source) -> bool) {
        self.content.forget_gone(is_there);
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
    pub fn policy_changed(&self, kind: &OwnerKind, namespace: &str, name: &str) {
        let hash = marks::owner_hash(&self.ctx.installation.id, kind, namespace, name);
        self.repaced.lock().insert(hash);
        self.inbox.ring();
    }

    /// All that a namespace of the hub has on clusters is suspended or resumed: its jobs look again, also of owners that are gone and
    /// of what was given up. Never waits.
    pub fn suspension_changed(&self, namespace: &str) {
        self.resuspended.lock().insert(namespace.to_owned());
        self.inbox.ring();
    }

    /// Works until stopped; returns when every task has ended. Boxed, so that it is compiled here and not by who awaits it.
    pub fn run(self: Arc<Self>, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.work(stop))
    }

    async fn work(self: Arc<Self>, stop: CancellationToken) {
        let mut dispatcher = Dispatcher::new(self.clone(), &stop);
        let metrics = self.metrics.clone();
        let mut moves = self.ctx.connections.changes();
        let mut branches = self.ctx.publishers.changes();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.inbox.notified() => {
                    let mut mail: Vec<_> = self.inbox.take().into_iter().collect();
                    // Where rows come from is known before where they go; and what they came to is settled afterwards.
                    mail.sort_by_key(|(_, shard)| shard.as_ref().is_some_and(|shard| shard.status.is_none()));
                    let mut touched = BTreeSet::new();
                    for (key, shard) in mail {
                        dispatcher.take(&key, shard, &mut touched);
                    }
                    for (hash, cluster) in touched {
                        dispatcher.settle(&cluster, &hash);
                    }
                    for hash in std::mem::take(&mut *self.repaced.lock()) {
                        dispatcher.ring(&hash);
                    }
                    let namespaces = std::mem::take(&mut *self.resuspended.lock());
                    if !namespaces.is_empty() {
                        dispatcher.ring_within(&namespaces);
                    }
                    metrics.jobs.store(dispatcher.jobs() as u64, std::sync::atomic::Ordering::Relaxed);
                    // Of tasks that have ended nothing is kept.
                    while dispatcher.tasks.try_join_next().is_some() {}
                }
                _ = branches.next() => dispatcher.refresh_branches(),
                cluster = moves.next() => match cluster {
                    Some(cluster) => dispatcher.refresh(&cluster),
                    None => break,
                },
            }
        }
        dispatcher.stop.cancel();
        while dispatcher.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests;
