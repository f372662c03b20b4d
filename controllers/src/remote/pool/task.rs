//! Keeps one cluster connected, and publishes its observation whenever that changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::hardware::Read;
use emco_engine::identity::ClusterId;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, sleep_until};

use super::{Context, Entry, PoolSettings, Target};
use crate::api::{ApiError, ApiResult, WatchEvent};
use crate::remote::claim::{self, Claim};
use crate::remote::nodes::Nodes;
use crate::remote::probe;
use crate::remote::ready::Served;
use crate::remote::transport::Edge;
use crate::remote::{Observation, State};

/// Silence of the watch of nodes after which they are listed afresh.
const NODES_SILENT: Duration = Duration::from_mins(10);

/// A session with one set of credentials.
struct Session {
    version: String,
    edge: Arc<Edge>,
    by_git: bool,
    /// Rounds until version and API list are asked again; 0 = now.
    until_learn: u32,
    nodes: Option<(Nodes, BoxStream<'static, ApiResult<WatchEvent>>)>,
    /// Nodes may not be listed: asked again when the rest is.
    nodes_forbidden: bool,
    /// Keys of labels that they were last listed with, or asked for.
    node_keys: Option<Arc<BTreeSet<String>>>,
    /// When they were listed, or the last event came.
    nodes_heard: Instant,
}

/// What outlives sessions.
#[derive(Default)]
struct Known {
    revision: Option<u64>,
    /// resourceVersion of the hub's mark there; 0 = none known.
    marked: u64,
    served: Served,
    failures: u32,
    /// Counts this cluster among those that fail.
    failing: Option<Arc<()>>,
}

/// Until the cluster is forgotten.
pub async fn run(entry: Arc<Entry>, context: Arc<Context>) {
    let stop = entry.stop.clone();
    let work = Box::pin(work(entry, context));
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn work(entry: Arc<Entry>, context: Arc<Context>) {
    let mut known = Known::default();
    let mut session: Option<Session> = None;
    loop {
        let began = Instant::now();
        let target = entry.target.lock().clone();
        let mut current = match session.take() {
            Some(session) if session.version == target.version => session,
            _ => Session::new(&entry.cluster, target, &context),
        };
        let mut observation = Observation::clone(&entry.view.read().observation);
        if entry.learn.swap(false, Ordering::AcqRel) {
            current.until_learn = 0;
        }
        if entry.went_back.swap(false, Ordering::AcqRel) {
            // Any probe shows less than that.
            known.revision = Some(u64::MAX);
        }
        known.marked = known.marked.max(entry.marked.swap(0, Ordering::AcqRel));
        let version = current.version.clone();
        let keys = entry.node_keys.lock().clone();
        let round = tokio::select! {
            round = current.round(&context, &mut known, &mut observation, keys) => round,
            // What is under way with old credentials is not waited for.
            () = renewed(&entry, &version) => continue,
        };
        match round {
            Ok(()) => {
                known.failures = 0;
                known.failing = None;
                entry.answered_ms.store(context.clock.now_ms(), Ordering::Relaxed);
                entry.revision.store(known.revision.unwrap_or(0), Ordering::Relaxed);
                observation.state = State::Connected;
            }
            Err(error) => {
                known.failures = known.failures.saturating_add(1);
                known.failing = Some(Arc::clone(&context.failing));
                observation.state = probe::failed(current.edge.server(), &error);
                current.until_learn = 0;
                current.nodes = None;
                known.served.lost();
            }
        }
        let connected = observation.connected();
        publish(&entry, &context, observation, Some(&current.edge));
        let pause = if connected {
            jitter(&context, context.settings.probe_every, 0.9, 0.2)
        } else {
            backoff(&context, known.failures)
        };
        current.wait(&entry, &context, began, pause).await;
        session = Some(current);
    }
}

/// Until the target has other credentials than these.
async fn renewed(entry: &Entry, version: &str) {
    while entry.target.lock().version == version {
        entry.renewed.notified().await;
    }
}

impl Session {
    fn new(cluster: &ClusterId, target: Target, context: &Context) -> Self {
        let Target {
            credentials,
            version,
            by_git,
            identity: _,
            installation: _,
            hub_version: _,
            registered: _,
        } = target;
        let edge = context.edge(cluster, credentials);
        Self {
            version,
            edge,
            by_git,
            until_learn: 0,
            nodes: None,
            nodes_forbidden: false,
            node_keys: None,
            nodes_heard: Instant::now(),
        }
    }

    async fn round(
        &mut self,
        context: &Context,
        known: &mut Known,
        seen: &mut Observation,
        keys: Option<Arc<BTreeSet<String>>>,
    ) -> ApiResult<()> {
        // Waiting for the dialer's turn is not the edge's fault, so it happens outside of any request's time.
        self.edge.open().await?;
        let probe = probe::probe(&self.edge).await?;
        let other = seen.uid.as_ref().is_some_and(|uid| *uid != probe.uid);
        let restored = known.revision.is_some_and(|revision| probe.revision < revision);
        if other || restored {
            seen.epoch += 1;
            self.until_learn = 0;
            self.nodes = None;
            seen.nodes = Read::Not;
        }
        known.revision = Some(probe.revision);
        if other {
            known.served.forget();
            known.marked = 0;
        }
        seen.uid = Some(probe.uid);
        if self.until_learn == 0 {
            let (marked, done) = learn((&self.edge, self.by_git), known, seen, context).await?;
            // Its store may have come as far again as it was, on another way; the mark tells.
            if (1..known.marked).contains(&marked) {
                seen.epoch += 1;
                self.nodes = None;
                seen.nodes = Read::Not;
            }
            known.marked = marked;
            self.until_learn = if done { context.settings.learn_every.max(1) } else { 1 };
            self.nodes_forbidden = false;
        }
        self.until_learn -= 1;
        self.follow_nodes(seen, keys).await;
        Ok(())
    }

    async fn follow_nodes(&mut self, seen: &mut Observation, keys: Option<Arc<BTreeSet<String>>>) {
        // Bookmarks come every minute, and each kubelet writes within five: a watch so silent delivers nothing.
        if self.nodes_heard.elapsed() > NODES_SILENT {
            self.nodes = None;
        }
        // Labels that nobody asked for before were not kept.
        if self.node_keys != keys {
            self.node_keys.clone_from(&keys);
            self.nodes = None;
            self.nodes_forbidden = false;
        }
        if self.nodes.is_some() || self.nodes_forbidden {
            return;
        }
        let asked = keys.is_some();
        match Nodes::follow(self.edge.as_ref(), keys).await {
            Ok((nodes, stream)) => {
                summarise(&nodes, seen);
                self.nodes_heard = Instant::now();
                match stream {
                    Ok(stream) => self.nodes = Some((nodes, stream)),
                    // Listed again with the APIs.
                    Err(error) => self.nodes_forbidden = error.code() == 403,
                }
            }
            Err(error) if error.code() == 403 => {
                self.nodes_forbidden = true;
                seen.nodes = if asked { Read::Forbidden } else { Read::Not };
                seen.nodes_ready = None;
                seen.nodes_total = None;
                seen.allocatable.clear();
                seen.other_resources.clear();
            }
            // Counting nodes is a courtesy: what is known stays, and the next round tries again.
            Err(error) => tracing::debug!(server = self.edge.server(), %error, "nodes cannot be watched"),
        }
    }

    /// Until the next round is due: the pause is over, it is asked for, the credentials changed or are refused, or the
    /// connection ended.
    async fn wait(&mut self, entry: &Entry, context: &Context, began: Instant, pause: Duration) {
        let lost = self.edge.lost();
        let mut until = Instant::now() + pause;
        let soonest = began + context.settings.round_gap;
        let refused = self.edge.refused();
        // What the round itself was refused is known by it.
        let _ = refused.notified().now_or_never();
        let (mut called, mut doubted) = (false, false);
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                () = entry.wake.notified(), if !called => {
                    called = true;
                    until = until.min(soonest);
                }
                () = lost.notified(), if !called => {
                    called = true;
                    until = until.min(soonest);
                }
                () = refused.notified(), if !doubted => {
                    doubted = true;
                    until = until.min(began + context.settings.refused_gap);
                }
                event = next(self.nodes.as_mut().map(|(_, stream)| stream)) => {
                    if let (Some(Ok(event)), Some((nodes, _))) = (event, self.nodes.as_mut()) {
                        self.nodes_heard = Instant::now();
                        nodes.event(&event);
                        let mut observation = Observation::clone(&entry.view.read().observation);
                        summarise(nodes, &mut observation);
                        publish(entry, context, observation, None);
                    } else {
                        self.nodes = None;
                    }
                }
            }
        }
    }
}

/// Version, claim and API list. Without any list nothing can be applied, so the first failure to get one is the cluster's.
/// The resourceVersion of the claim is returned, and whether the list is final.
async fn learn(
    (edge, by_git): (&Edge, bool),
    known: &mut Known,
    seen: &mut Observation,
    context: &Context,
) -> ApiResult<(u64, bool)> {
    let version = probe::version(edge).await?;
    let done = match known.served.read(edge, &context.lists, context.settings.keep_vanished).await {
        Ok(done) => done,
        Err(ApiError::Status { code: 500.., message, .. }) if known.served.discovered.is_some() => {
            tracing::warn!(server = edge.server(), message, "discovery failed, the earlier list stays");
            true
        }
        Err(error) => return Err(error),
    };
    let (claim, marked) = if by_git { (Claim::Unknown, 0) } else { claim::read_at(edge).await? };
    seen.version = Some(version);
    // A server that starts may refuse for a moment what the credentials allow.
    if known.served.is_proven() || !matches!(claim, Claim::Unreadable(_)) {
        seen.claim = claim;
    }
    if let Some(discovered) = &known.served.discovered {
        seen.apis = Some(Arc::clone(&discovered.list));
        seen.api_digest = Some(discovered.digest.clone());
    }
    Ok((marked, done))
}

/// The next event; never, without a stream.
async fn next(
    stream: Option<&mut BoxStream<'static, ApiResult<WatchEvent>>>,
) -> Option<ApiResult<WatchEvent>> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

fn summarise(nodes: &Nodes, seen: &mut Observation) {
    let summary = nodes.summary();
    seen.nodes_ready = Some(summary.ready);
    seen.nodes_total = Some(summary.total);
    seen.allocatable = summary.allocatable;
    seen.other_resources = summary.others;
    seen.nodes = nodes.detailed().cloned().map_or(Read::Not, Read::Done);
}

/// Makes an observation public if it says something new. `edge` takes the place of the one before.
fn publish(entry: &Entry, context: &Context, mut observation: Observation, edge: Option<&Arc<Edge>>) {
    let changed = {
        let mut view = entry.view.write();
        let before = Arc::clone(&view.observation);
        if observation.state != before.state {
            observation.since_ms = context.clock.now_ms();
        }
        observation.admission = entry.admission(&observation);
        let target = entry.target.lock();
        observation.returned = observation.claim.precedes(&target.installation, target.registered);
        drop(target);
        let swapped = match edge {
            Some(edge) if view.edge.as_ref().is_none_or(|known| !Arc::ptr_eq(known, edge)) => {
                view.edge = Some(Arc::clone(edge));
                true
            }
            _ => false,
        };
        let changed = *before != observation || swapped;
        if changed && !entry.stop.is_cancelled() {
            context.see_as(&entry.cluster, before.uid.as_deref(), observation.uid.as_deref());
            view.observation = Arc::new(observation);
        }
        changed
    };
    if changed {
        context.listeners.tell(&entry.cluster);
    }
}

/// `base` times a random factor from `from` to `from + spread`.
fn jitter(context: &Context, base: Duration, from: f64, spread: f64) -> Duration {
    let random = u32::try_from(context.random.next() >> 32).unwrap_or_default();
    base.mul_f64(spread.mul_add(f64::from(random) / f64::from(u32::MAX), from))
}

fn backoff(context: &Context, failures: u32) -> Duration {
    let settings = &context.settings;
    let doubled = settings.backoff_first.saturating_mul(1_u32 << failures.saturating_sub(1).min(16));
    let failing = u32::try_from(Arc::strong_count(&context.failing).saturating_sub(1)).unwrap_or(u32::MAX);
    jitter(context, doubled.min(longest(settings, failing)), 0.5, 0.5)
}

/// The longest wait while so many clusters fail: short for few, so that who waits for one to come back waits seconds; longer
/// for many, so that probes of what is dead stay few.
fn longest(settings: &PoolSettings, failing: u32) -> Duration {
    let shared = Duration::from_secs(1).saturating_mul(failing) / settings.failing_probes.max(1);
    shared.clamp(settings.backoff_few.min(settings.backoff_last), settings.backoff_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_failing_clusters_are_looked_at_within_seconds_and_many_seldom() {
        let settings = PoolSettings::default();
        let seconds = |failing| longest(&settings, failing).as_secs();
        assert_eq!((seconds(1), seconds(400), seconds(1000), seconds(u32::MAX)), (8, 8, 20, 60));
    }
}
