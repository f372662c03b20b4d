//! Reads what clusters have for deployments that need something of nodes, and has those look again for which something became another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::DesiredState;
use emco_engine::hardware::{Read, Requested, outlook};
use emco_engine::identity::ClusterId;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::facts_of;
use super::given::{self, Given};
use super::state::{App, Interest, PodsRead};
use crate::api::key_queue::Key;
use crate::api::{ApiError, ApiResult};
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::remote;
use crate::triggers::Triggers;

/// Between two readings of the Pods of one cluster.
const PODS_EVERY: Duration = Duration::from_mins(5);
/// Until one that failed is tried again.
const FAILED: Duration = Duration::from_mins(1);
/// For all pages of one cluster: one that never ends its list keeps its place from others no longer.
const READING: Duration = Duration::from_mins(5);
/// Clusters whose Pods are read at the same time.
const AT_ONCE: usize = 8;
/// Clusters that are found to be due in one look.
const QUEUE: usize = 512;
/// Between two looks at what is due.
const TICK: Duration = Duration::from_secs(2);
/// The next look comes so soon where somebody needs something else: many who come together are one look.
const SOON: Duration = Duration::from_millis(200);

/// The outcome of a reading, and the time that it took.
type Done = (ClusterId, u64, Duration, ApiResult<Requested>);

/// Follows for ever.
pub async fn follow(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    let mut follower = Follower::default();
    let mut changes = ctx.connector.changes();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => follower.tick(&ctx),
            () = ctx.hardware.changed.notified() => {
                if std::mem::take(&mut follower.settled) {
                    ticks.reset_after(SOON);
                }
                continue;
            }
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

/// Clusters whose Pods are to be read, in their order.
#[cfg(test)]
pub fn due(ctx: &Context) -> Vec<ClusterId> {
    let follower = Follower { wanted: wanted(ctx), ..Follower::default() };
    follower.find_due(ctx).into_iter().map(|(cluster, _)| cluster).collect()
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
    /// True where the wishes are still those.
    settled: bool,
    /// Clusters whose Pods are read next, with their apps as below.
    due: VecDeque<(ClusterId, BTreeSet<App>)>,
    /// Apps whose Pods are there, of clusters whose Pods are being read: as it was before.
    reading: BTreeMap<ClusterId, BTreeSet<App>>,
    reads: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Times of readings that failed, and pauses until the next.
    failed: BTreeMap<ClusterId, (i64, Duration)>,
    /// Clusters of which something may have changed.
    dirty: BTreeSet<ClusterId>,
    /// Those where something was given.
    given: BTreeSet<ClusterId>,
}

impl Follower {
    /// Says what is wanted, and begins what is due.
    fn tick(&mut self, ctx: &Context) {
        if !std::mem::replace(&mut self.settled, true) {
            let wanted = wanted(ctx);
            for cluster in self.wanted.keys().filter(|cluster| !wanted.contains_key(*cluster)) {
                ctx.connector.want_nodes(cluster, None);
            }
            ctx.hardware
                .pods
                .lock()
                .retain(|cluster, _| wanted.get(cluster).is_some_and(|wanted| wanted.pods));
            self.failed.retain(|cluster, _| wanted.contains_key(cluster));
            self.wanted = wanted;
        }
        // Again and again: a cluster may be registered anew.
        for (cluster, wanted) in &self.wanted {
            ctx.connector.want_nodes(cluster, Some(&wanted.keys));
        }
        if self.due.is_empty() {
            self.due = self.find_due(ctx);
        }
        self.begin(ctx);
        let given = if self.wanted.is_empty() { BTreeSet::new() } else { Given::now(ctx).clusters() };
        self.dirty.extend(std::mem::replace(&mut self.given, given.clone()));
        self.dirty.extend(given);
    }

    /// Clusters whose Pods are to be read, those first whose last reading is longest ago: no name comes before others.
    fn find_due(&self, ctx: &Context) -> VecDeque<(ClusterId, BTreeSet<App>)> {
        let now = ctx.world.clock.now_ms();
        let rests = |at_ms: i64, pause: Duration| (0..millis(pause)).contains(&(now - at_ms));
        let due = |(cluster, wanted): (&ClusterId, &Wanted)| {
            if !wanted.pods || self.reading.contains_key(cluster) || ctx.world.edges.get(cluster).is_none() {
                return None;
            }
            let epoch = ctx.connector.observation(cluster).map(|observed| observed.epoch);
            let known = ctx.hardware.pods.lock().get(cluster).map(|read| (read.epoch, read.at_ms));
            let read = known.filter(|(of, _)| Some(*of) == epoch).map(|(_, at_ms)| at_ms);
            let failed = self.failed.get(cluster);
            if read.is_some_and(|at_ms| rests(at_ms, PODS_EVERY))
                || failed.is_some_and(|(at_ms, pause)| rests(*at_ms, *pause))
            {
                return None;
            }
            Some((read.max(failed.map(|(at_ms, _)| *at_ms)), cluster.clone()))
        };
        let mut all: Vec<_> = self.wanted.iter().filter_map(due).collect();
        all.sort_unstable();
        let all: Vec<ClusterId> = all.into_iter().take(QUEUE).map(|(_, cluster)| cluster).collect();
        if all.is_empty() {
            return VecDeque::new();
        }
        let mut apps = given::apps_on(ctx, &all.iter().cloned().collect());
        let with_apps = |cluster: ClusterId| {
            let (run, shall) = apps.remove(&cluster).unwrap_or_default();
            // An app that was counted before is there, also while it is changed.
            let before = ctx.hardware.pods.lock().get(&cluster).map(|read| read.counted.clone());
            let stay = before.into_iter().flatten().filter(|app| shall.contains(app));
            let there: BTreeSet<App> = run.into_iter().chain(stay).collect();
            (cluster, there)
        };
        all.into_iter().map(with_apps).collect()
    }

    /// Begins to read the Pods of clusters, as many as there is place for.
    fn begin(&mut self, ctx: &Context) {
        while self.reads.len() < AT_ONCE {
            let Some((cluster, apps)) = self.due.pop_front() else { return };
            let Some(server) = ctx.world.edges.get(&cluster) else { continue };
            let epoch = ctx.connector.observation(&cluster).map_or(0, |observed| observed.epoch);
            self.reading.insert(cluster.clone(), apps);
            let read = async move {
                let began = Instant::now();
                let requested = timeout(READING, remote::requested(server.as_ref())).await;
                (cluster, epoch, began.elapsed(), requested.unwrap_or_else(|_| Err(overdue())))
            };
            self.reads.push(Box::pin(read));
        }
    }

    /// Takes in what was read.
    fn take(&mut self, ctx: &Context, (cluster, epoch, took, requested): Done) {
        let counted = self.reading.remove(&cluster).unwrap_or_default();
        let at_ms = ctx.world.clock.now_ms();
        let requested = match requested {
            Ok(requested) => Read::Done(Arc::new(requested)),
            Err(error) if error.code() == 403 => Read::Forbidden,
            Err(error) => {
                // The last answer stays.
                tracing::debug!(%cluster, %error, "the Pods of a cluster cannot be read");
                // One that took long leaves as much time to others.
                self.failed.insert(cluster, (at_ms, FAILED.max(took)));
                self.begin(ctx);
                return;
            }
        };
        self.failed.remove(&cluster);
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
        let before = interests.len();
        interests.retain(|(namespace, name), _| {
            ctx.stores.digs.named(namespace, name).is_some_and(|dig| shall_run(&dig))
        });
        self.settled &= interests.len() == before;
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
                if outlook(&interest.demands, Some(&facts))
                    == outlook(&interest.demands, Some(&concern.facts))
                {
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

/// False of a deployment that ends: it is not planned any more.
fn shall_run(dig: &DeploymentIntentGroup) -> bool {
    !meta::deleting(dig) && dig.spec.desired_state != DesiredState::Terminated
}

fn overdue() -> ApiError {
    let message = format!("its Pods were not listed within {} s", READING.as_secs());
    ApiError::Unreachable { reason: "Timeout", message }
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
