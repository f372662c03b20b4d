//! Reads what clusters have for deployments that need something of nodes, and has those look again for which something became another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_engine::hardware::{Read, Requested, outlook};
use emco_engine::identity::ClusterId;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{MissedTickBehavior, interval};

use super::facts_of;
use super::given::{self, Given};
use super::state::{App, Interest, PodsRead};
use crate::api::ApiResult;
use crate::api::key_queue::Key;
use crate::reconcile::context::Context;
use crate::remote;
use crate::triggers::Triggers;

/// Between two readings of the Pods of one cluster.
const PODS_EVERY: Duration = Duration::from_mins(5);
/// Until one that failed is tried again.
const FAILED: Duration = Duration::from_mins(1);
/// Clusters whose Pods are read at the same time.
const AT_ONCE: usize = 8;
/// Between two looks at what is due.
const TICK: Duration = Duration::from_secs(2);

/// The outcome of a reading.
type Done = (ClusterId, u64, ApiResult<Requested>);

/// Follows for ever.
pub async fn follow(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    let mut follower = Follower::default();
    let mut changes = ctx.connector.changes();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => follower.tick(&ctx),
            () = ctx.hardware.changed.notified() => follower.tick(&ctx),
            Some(done) = follower.reads.next(), if !follower.reads.is_empty() => follower.take(&ctx, done),
            // Looked at with the next tick: nodes change more often than verdicts.
            Some(cluster) = changes.next() => {
                follower.dirty.insert(cluster);
                continue;
            }
        }
        for (namespace, name) in follower.news(&ctx) {
            triggers.digs.enqueue(&namespace, &name);
        }
    }
}

/// One look, to its end.
#[cfg(test)]
pub async fn look(ctx: &Context) {
    let mut follower = Follower::default();
    follower.tick(ctx);
    while let Some(done) = follower.reads.next().await {
        follower.take(ctx, done);
    }
}

/// Deployments that look again when these clusters may be others than they were.
#[cfg(test)]
pub fn news(ctx: &Context, clusters: &[ClusterId]) -> Vec<Key> {
    let dirty = clusters.iter().cloned().collect();
    Follower { dirty, ..Follower::default() }.news(ctx)
}

/// The wishes about one cluster.
#[derive(Clone, Default, PartialEq, Eq)]
struct Wanted {
    keys: Arc<BTreeSet<String>>,
    pods: bool,
}

#[derive(Default)]
struct Follower {
    wanted: BTreeMap<ClusterId, Wanted>,
    /// Apps whose Pods are there, of clusters whose Pods are being read: as it was before.
    reading: BTreeMap<ClusterId, BTreeSet<App>>,
    reads: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Readings that failed are not tried again before.
    failed: BTreeMap<ClusterId, i64>,
    /// Clusters of which something may have changed.
    dirty: BTreeSet<ClusterId>,
    /// Those where something was given.
    given: BTreeSet<ClusterId>,
}

impl Follower {
    /// Says what is wanted, and begins what is due.
    fn tick(&mut self, ctx: &Context) {
        let wanted = wanted(ctx);
        for cluster in self.wanted.keys().filter(|cluster| !wanted.contains_key(*cluster)) {
            ctx.connector.want_nodes(cluster, None);
        }
        for (cluster, wanted) in &wanted {
            ctx.connector.want_nodes(cluster, Some(&wanted.keys));
        }
        ctx.hardware.pods.lock().retain(|cluster, _| wanted.get(cluster).is_some_and(|wanted| wanted.pods));
        self.failed.retain(|cluster, _| wanted.contains_key(cluster));
        self.wanted = wanted;
        self.begin(ctx);
        let given = if self.wanted.is_empty() { BTreeSet::new() } else { Given::now(ctx).clusters() };
        self.dirty.extend(std::mem::replace(&mut self.given, given.clone()));
        self.dirty.extend(given);
    }

    /// Begins to read the Pods of clusters where that is due.
    fn begin(&mut self, ctx: &Context) {
        let now = ctx.world.clock.now_ms();
        let is_due = |cluster: &ClusterId| {
            let epoch = ctx.connector.observation(cluster).map(|observed| observed.epoch);
            let pods = ctx.hardware.pods.lock();
            let known = pods.get(cluster).filter(|read| Some(read.epoch) == epoch);
            let waits = self.failed.get(cluster).is_some_and(|until| now < *until);
            !waits && known.is_none_or(|read| !(0..millis(PODS_EVERY)).contains(&(now - read.at_ms)))
        };
        let due = self.wanted.iter().filter(|(cluster, wanted)| {
            wanted.pods && !self.reading.contains_key(*cluster) && is_due(cluster)
        });
        let places = AT_ONCE.saturating_sub(self.reads.len());
        let due: BTreeSet<ClusterId> = due
            .map(|(cluster, _)| cluster.clone())
            .filter(|cluster| ctx.world.edges.get(cluster).is_some())
            .take(places)
            .collect();
        if due.is_empty() {
            return;
        }
        let mut apps = given::apps_on(ctx, &due);
        for cluster in due {
            let Some(server) = ctx.world.edges.get(&cluster) else { continue };
            let epoch = ctx.connector.observation(&cluster).map_or(0, |observed| observed.epoch);
            let (run, shall) = apps.remove(&cluster).unwrap_or_default();
            // An app that was counted before is there, also while it is changed.
            let before = ctx.hardware.pods.lock().get(&cluster).map(|read| read.counted.clone());
            let stay = before.into_iter().flatten().filter(|app| shall.contains(app));
            self.reading.insert(cluster.clone(), run.into_iter().chain(stay).collect());
            let read = async move {
                let requested = remote::requested(server.as_ref()).await;
                (cluster, epoch, requested)
            };
            self.reads.push(Box::pin(read));
        }
    }

    /// Takes in what was read.
    fn take(&mut self, ctx: &Context, (cluster, epoch, requested): Done) {
        let counted = self.reading.remove(&cluster).unwrap_or_default();
        let at_ms = ctx.world.clock.now_ms();
        let requested = match requested {
            Ok(requested) => Read::Done(Arc::new(requested)),
            Err(error) if error.code() == 403 => Read::Forbidden,
            Err(error) => {
                // The last answer stays.
                tracing::debug!(%cluster, %error, "the Pods of a cluster cannot be read");
                self.failed.insert(cluster, at_ms + millis(FAILED));
                return;
            }
        };
        if self.wanted.get(&cluster).is_some_and(|wanted| wanted.pods) {
            let read = PodsRead { requested, at_ms, epoch, counted };
            ctx.hardware.pods.lock().insert(cluster.clone(), read);
        }
        self.dirty.insert(cluster);
        self.begin(ctx);
    }

    /// Deployments for which a cluster became another than they were planned with.
    fn news(&mut self, ctx: &Context) -> Vec<Key> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut interests = ctx.hardware.interests.lock();
        interests.retain(|(namespace, name), _| ctx.stores.digs.named(namespace, name).is_some());
        let concerned = |interest: &Interest| dirty.iter().any(|id| interest.clusters.contains_key(id));
        if !interests.values().any(concerned) {
            return Vec::new();
        }
        let given = Given::now(ctx);
        let mut news = Vec::new();
        for (key, interest) in interests.iter_mut() {
            let mut moved = false;
            for cluster in &dirty {
                let Some(concern) = interest.clusters.get_mut(cluster) else { continue };
                let facts = facts_of(ctx, &given, cluster, &interest.keys);
                if facts == *concern.facts {
                    continue;
                }
                if outlook(&interest.demands, Some(&facts)) == outlook(&interest.demands, Some(&concern.facts)) {
                    concern.facts = Arc::new(facts);
                } else {
                    moved = true;
                }
            }
            if moved {
                news.push(key.clone());
            }
        }
        news
    }
}

/// The wishes of all deployments together.
fn wanted(ctx: &Context) -> BTreeMap<ClusterId, Wanted> {
    let mut all: BTreeMap<ClusterId, (BTreeSet<String>, bool)> = BTreeMap::new();
    for interest in ctx.hardware.interests.lock().values() {
        for (cluster, concern) in &interest.clusters {
            let (keys, pods) = all.entry(cluster.clone()).or_default();
            keys.extend(interest.keys.iter().cloned());
            *pods |= concern.counts;
        }
    }
    // Most clusters are asked for the same.
    let mut shared: BTreeSet<Arc<BTreeSet<String>>> = BTreeSet::new();
    let mut of = |keys: BTreeSet<String>| {
        let keys = Arc::new(keys);
        let known = shared.get(&keys).cloned();
        known.unwrap_or_else(|| {
            shared.insert(Arc::clone(&keys));
            keys
        })
    };
    all.into_iter().map(|(cluster, (keys, pods))| (cluster, Wanted { keys: of(keys), pods })).collect()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
