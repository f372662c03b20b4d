//! Clusters with credentials come in; connected API servers and observations go out. This is the only place that decides
//! whether a cluster is reachable, by one small task per cluster: connect, probe, learn, wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use emco_engine::identity::ClusterId;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::kubeconfig::Credentials;
use super::transport::{Edge, EdgeSettings};
use super::{Connections, Observation};
use crate::api::ApiServer;
use crate::dialer::Dialer;
use crate::world::{Clock, Edges, Random};

mod task;

/// Bounds on all edges together and on each.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Between two probes of a cluster that answers, before jitter.
    pub probe_every: Duration,
    /// What a cluster serves and its version are asked again after so many probes.
    pub learn_every: u32,
    /// First wait after a failed probe; doubles.
    pub backoff_first: Duration,
    /// Longest wait after a failed probe.
    pub backoff_last: Duration,
    /// Two rounds of one cluster are at least so far apart, however often somebody asks.
    pub round_gap: Duration,
    /// Bounds on each edge.
    pub edge: EdgeSettings,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            probe_every: Duration::from_secs(60),
            learn_every: 10,
            backoff_first: Duration::from_secs(1),
            backoff_last: Duration::from_secs(60),
            round_gap: Duration::from_millis(500),
            edge: EdgeSettings::default(),
        }
    }
}

/// How a cluster is to be reached.
#[derive(Clone, Debug)]
pub struct Target {
    /// From its kubeconfig.
    pub credentials: Credentials,
    /// Changes when the credentials do, such as the Secret's uid and resourceVersion.
    pub version: String,
}

/// What a task publishes.
#[derive(Default)]
struct View {
    observation: Arc<Observation>,
    edge: Option<Arc<Edge>>,
}

/// One cluster, shared between its task and the pool.
struct Entry {
    cluster: ClusterId,
    target: Mutex<Target>,
    wake: Notify,
    learn: AtomicBool,
    /// When a probe was answered last, Unix milliseconds; before the first answer, when the cluster was wanted.
    answered_ms: AtomicI64,
    view: RwLock<View>,
    stop: CancellationToken,
}

/// What all tasks share.
struct Context {
    settings: PoolSettings,
    dialer: Arc<Dialer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    listeners: Listeners,
}

/// All clusters.
pub struct Pool {
    context: Arc<Context>,
    entries: RwLock<BTreeMap<ClusterId, Arc<Entry>>>,
}

impl Pool {
    /// A pool without clusters. Needs a running tokio runtime once clusters are wanted.
    pub fn new(
        settings: PoolSettings,
        dialer: Arc<Dialer>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let context = Context { settings, dialer, clock, random, listeners: Listeners::default() };
        Arc::new(Self { context: Arc::new(context), entries: RwLock::default() })
    }

    /// Wants a cluster reached so. The same version again changes nothing; another version is connected beside what there
    /// is, and takes its place when it is known whether it works.
    pub fn want(&self, cluster: ClusterId, target: Target) {
        let mut entries = self.entries.write();
        if let Some(entry) = entries.get(&cluster) {
            let mut known = entry.target.lock();
            if known.version != target.version {
                *known = target;
                entry.wake.notify_one();
            }
            return;
        }
        let since_ms = self.context.clock.now_ms();
        let observation = Arc::new(Observation { epoch: 1, since_ms, ..Observation::default() });
        let entry = Arc::new(Entry {
            cluster: cluster.clone(),
            target: Mutex::new(target),
            wake: Notify::new(),
            learn: AtomicBool::new(false),
            answered_ms: AtomicI64::new(since_ms),
            view: RwLock::new(View { observation, edge: None }),
            stop: CancellationToken::new(),
        });
        tokio::spawn(task::run(Arc::clone(&entry), Arc::clone(&self.context)));
        entries.insert(cluster, entry);
    }

    /// Forgets a cluster and ends its connection.
    pub fn forget(&self, cluster: &ClusterId) {
        let gone = self.entries.write().remove(cluster);
        if let Some(entry) = gone {
            entry.stop.cancel();
            entry.view.write().edge = None;
            self.context.listeners.tell(cluster);
        }
    }

    /// Probes now, also in the middle of a wait after failures.
    pub fn poke(&self, cluster: &ClusterId) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.wake.notify_one();
        }
    }

    /// When a cluster answered a probe last, Unix milliseconds; before its first answer, since when it is wanted.
    pub fn answered_ms(&self, cluster: &ClusterId) -> Option<i64> {
        self.entries.read().get(cluster).map(|entry| entry.answered_ms.load(Ordering::Relaxed))
    }

    /// Clusters that are wanted.
    pub fn clusters(&self) -> Vec<ClusterId> {
        self.entries.read().keys().cloned().collect()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for entry in self.entries.get_mut().values() {
            entry.stop.cancel();
        }
    }
}

impl Edges for Pool {
    fn get(&self, cluster: &ClusterId) -> Option<Arc<dyn ApiServer>> {
        let entry = self.entries.read().get(cluster).cloned()?;
        let view = entry.view.read();
        let edge = view.edge.as_ref().filter(|_| view.observation.connected())?;
        Some(Arc::clone(edge) as Arc<dyn ApiServer>)
    }
}

impl Connections for Pool {
    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>> {
        self.entries.read().get(cluster).map(|entry| Arc::clone(&entry.view.read().observation))
    }

    fn changes(&self) -> BoxStream<'static, ClusterId> {
        self.context.listeners.listen()
    }

    fn refresh_apis(&self, cluster: &ClusterId) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.learn.store(true, Ordering::Release);
            entry.wake.notify_one();
        }
    }
}

/// Who wants to know of changes. Each has a set of clusters, so that a slow one costs no more than the set.
#[derive(Default)]
struct Listeners(Mutex<Vec<Weak<Listener>>>);

#[derive(Default)]
struct Listener {
    dirty: Mutex<BTreeSet<ClusterId>>,
    told: Notify,
}

impl Listeners {
    fn tell(&self, cluster: &ClusterId) {
        self.0.lock().retain(|listener| {
            let Some(listener) = listener.upgrade() else { return false };
            listener.dirty.lock().insert(cluster.clone());
            listener.told.notify_one();
            true
        });
    }

    fn listen(&self) -> BoxStream<'static, ClusterId> {
        let listener = Arc::new(Listener::default());
        self.0.lock().push(Arc::downgrade(&listener));
        futures::stream::unfold(listener, |listener| async move {
            loop {
                let next = listener.dirty.lock().pop_first();
                match next {
                    Some(cluster) => return Some((cluster, listener)),
                    None => listener.told.notified().await,
                }
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests;
