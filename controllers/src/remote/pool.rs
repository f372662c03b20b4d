//! Keeps clusters connected and observed. This is the only place that decides whether a cluster is reachable, by one
//! small task per cluster: connect, probe, learn, wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use emco_engine::apis::ApiList;
use emco_engine::identity::ClusterId;
use futures::stream::BoxStream;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::discovery::ApiLists;
use super::kubeconfig::Credentials;
use super::transport::{Edge, EdgeSettings};
use super::{Admission, Claim, Connections, Observation, State, claim};
use crate::api::ApiServer;
use crate::api::listeners::Listeners;
use crate::api::requests::Requests;
use crate::api::world::{Clock, Edges, Random};
use crate::remote::dialer::Dialer;

mod task;

/// Bounds on all edges together and on each.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Between two probes of a cluster that answers, before jitter.
    pub probe_every: Duration,
    /// What a cluster serves and its version are asked again after so many probes.
    pub learn_every: u32,
    /// How long a kind that vanished from discovery stays in the list.
    pub keep_vanished: Duration,
    /// First wait after a failed probe; doubles.
    pub backoff_first: Duration,
    /// Longest wait after a failed probe while few clusters fail: people wait for a cluster to come back.
    pub backoff_few: Duration,
    /// Longest wait after a failed probe, however many clusters fail.
    pub backoff_last: Duration,
    /// Probes of failing clusters in a second, all together, as far as `backoff_last` allows.
    pub failing_probes: u32,
    /// Two rounds of one cluster are at least so far apart, however often somebody asks.
    pub round_gap: Duration,
    /// Least time between the last probe and one that a refused request brings: what a chart may not do is refused often.
    pub refused_gap: Duration,
    /// Bounds on each edge.
    pub edge: EdgeSettings,
    /// Where requests are measured.
    pub requests: Arc<Requests>,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            probe_every: Duration::from_secs(60),
            learn_every: 10,
            keep_vanished: Duration::from_secs(50),
            backoff_first: Duration::from_secs(1),
            backoff_few: Duration::from_secs(8),
            backoff_last: Duration::from_secs(60),
            failing_probes: 50,
            round_gap: Duration::from_millis(500),
            refused_gap: Duration::from_secs(5),
            edge: EdgeSettings::default(),
            requests: Arc::default(),
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
    /// Who the cluster was when it was judged last: while it is, work goes on without another judgement.
    pub identity: Option<String>,
    /// The installation that clusters must belong to.
    pub installation: String,
    /// The hub's store had come so far, at least.
    pub hub_version: u64,
    /// Since when the Cluster is there.
    pub registered: Option<jiff::Timestamp>,
    /// It is written to through Git: its claim is on the branch, and none is looked for on the cluster.
    pub by_git: bool,
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
    /// The target has other credentials.
    renewed: Notify,
    learn: AtomicBool,
    /// Keys of labels of nodes, where somebody wants nodes in detail.
    node_keys: Mutex<Option<Arc<BTreeSet<String>>>>,
    /// Its store went back since the last round.
    went_back: AtomicBool,
    /// resourceVersion of the newest mark that was written there since the last round; 0 = none was.
    marked: AtomicU64,
    /// When a probe was answered last, Unix milliseconds; before the first answer, when the cluster was wanted.
    answered_ms: AtomicI64,
    /// How far its store had come then; 0 = not known.
    revision: AtomicU64,
    view: RwLock<View>,
    /// What was judged of a cluster with this UID.
    verdict: Mutex<Option<(String, Admission)>>,
    stop: CancellationToken,
}

impl Entry {
    /// Whether work may be done on what was observed.
    fn admission(&self, observed: &Observation) -> Admission {
        let target = self.target.lock();
        if let Claim::Held { installation, .. } = &observed.claim
            && *installation != target.installation
        {
            let message = claim::refusal(&self.cluster, &observed.claim);
            return Admission::Refused { reason: "ClaimedByAnotherHub", message };
        }
        match (&*self.verdict.lock(), &observed.uid) {
            (Some((judged, admission)), Some(uid)) if judged == uid => admission.clone(),
            // A mark of the future has to be judged: the hub may have been restored from a backup.
            _ if matches!(&observed.claim, Claim::Held { seen, .. } if *seen > target.hub_version) => {
                Admission::Awaited
            }
            (_, Some(uid)) if target.identity.as_ref() == Some(uid) => Admission::Admitted,
            _ => Admission::Awaited,
        }
    }
}

/// What all tasks share.
struct Context {
    settings: PoolSettings,
    dialer: Arc<Dialer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    listeners: Listeners<ClusterId>,
    lists: ApiLists,
    /// Clusters by the UID that was seen behind them last.
    seen_as: Mutex<BTreeMap<String, BTreeSet<ClusterId>>>,
    /// One for each cluster whose last probe failed.
    failing: Arc<()>,
}

impl Context {
    /// Another UID is seen behind a cluster than before, or the cluster is forgotten.
    fn see_as(&self, cluster: &ClusterId, before: Option<&str>, now: Option<&str>) {
        if before == now {
            return;
        }
        let mut all = self.seen_as.lock();
        if let Some(uid) = before
            && let Some(clusters) = all.get_mut(uid)
        {
            clusters.remove(cluster);
            if clusters.is_empty() {
                all.remove(uid);
            }
        }
        if let Some(uid) = now {
            all.entry(uid.to_owned()).or_default().insert(cluster.clone());
        }
    }

    /// Nothing is dialled yet.
    fn edge(&self, cluster: &ClusterId, credentials: Credentials) -> Arc<Edge> {
        let dialer = Arc::clone(&self.dialer).of(&format!("edges/{}", cluster.provider()));
        Edge::measured(credentials, dialer, self.settings.edge, Arc::clone(&self.settings.requests))
    }
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
        let context = Context {
            settings,
            dialer,
            clock,
            random,
            listeners: Listeners::default(),
            lists: ApiLists::default(),
            seen_as: Mutex::default(),
            failing: Arc::default(),
        };
        Arc::new(Self { context: Arc::new(context), entries: RwLock::default() })
    }

    /// Wants a cluster reached so. The same version again changes nothing; another version is connected beside what there
    /// is, and takes its place when it is known whether it works.
    pub fn set_target(&self, cluster: ClusterId, target: Target) {
        let mut entries = self.entries.write();
        if let Some(entry) = entries.get(&cluster) {
            let mut known = entry.target.lock();
            if known.version == target.version {
                known.identity = target.identity;
                known.hub_version = target.hub_version;
                known.registered = target.registered;
            } else {
                *known = target;
                entry.wake.notify_one();
                entry.renewed.notify_one();
            }
            return;
        }
        let since_ms = self.context.clock.now_ms();
        let admission = Admission::Awaited;
        let observation = Arc::new(Observation { epoch: 1, since_ms, admission, ..Observation::default() });
        let entry = Arc::new(Entry {
            cluster: cluster.clone(),
            target: Mutex::new(target),
            wake: Notify::new(),
            renewed: Notify::new(),
            learn: AtomicBool::new(false),
            node_keys: Mutex::default(),
            went_back: AtomicBool::new(false),
            marked: AtomicU64::new(0),
            answered_ms: AtomicI64::new(since_ms),
            revision: AtomicU64::new(0),
            view: RwLock::new(View { observation, edge: None }),
            verdict: Mutex::new(None),
            stop: CancellationToken::new(),
        });
        tokio::spawn(task::run(Arc::clone(&entry), Arc::clone(&self.context)));
        entries.insert(cluster, entry);
    }

    /// Says whether work may be done on the cluster while it has this UID.
    pub fn admit(&self, cluster: &ClusterId, uid: &str, admission: Admission) {
        let Some(entry) = self.entries.read().get(cluster).cloned() else { return };
        *entry.verdict.lock() = Some((uid.to_owned(), admission));
        let changed = {
            let mut view = entry.view.write();
            let admission = entry.admission(&view.observation);
            let changed = view.observation.admission != admission;
            if changed {
                view.observation =
                    Arc::new(Observation { admission, ..Observation::clone(&view.observation) });
            }
            changed
        };
        if changed {
            self.context.listeners.tell(cluster);
        }
    }

    /// A connection of its own with other credentials, beside the one there is. It ends when it is dropped.
    pub fn edge_with(&self, cluster: &ClusterId, credentials: Credentials) -> Arc<Edge> {
        self.context.edge(cluster, credentials)
    }

    /// A connection of its own with the credentials there are, beside the one that jobs and probes share. It ends when it is dropped. The
    /// error says why nothing may be asked there.
    pub fn beside(&self, cluster: &ClusterId) -> Result<(Arc<Edge>, Option<String>), String> {
        let entry = self.entries.read().get(cluster).cloned();
        let entry = entry.ok_or_else(|| format!("cluster {cluster} is not connected"))?;
        let observation = Arc::clone(&entry.view.read().observation);
        match (&observation.state, &observation.admission) {
            (State::Connected, Admission::Admitted) => {}
            (State::Failed { reason, message }, _) => {
                return Err(format!("cluster {cluster} cannot be reached: {reason}: {message}"));
            }
            (_, Admission::Refused { reason, message }) => {
                return Err(format!("cluster {cluster} is not worked on: {reason}: {message}"));
            }
            _ => return Err(format!("cluster {cluster} is not connected yet")),
        }
        let credentials = entry.target.lock().credentials.clone();
        Ok((self.context.edge(cluster, credentials), observation.uid.clone()))
    }

    /// Forgets a cluster and ends its connection.
    pub fn forget(&self, cluster: &ClusterId) {
        let mut entries = self.entries.write();
        let Some(entry) = entries.remove(cluster) else { return };
        entry.stop.cancel();
        let mut view = entry.view.write();
        view.edge = None;
        // Before another entry of this name can be seen.
        self.context.see_as(cluster, view.observation.uid.as_deref(), None);
        drop(view);
        drop(entries);
        self.context.listeners.tell(cluster);
    }

    /// Probes now, also in the middle of a wait after failures.
    pub fn probe_now(&self, cluster: &ClusterId) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.wake.notify_one();
        }
    }

    /// When a cluster answered a probe last, Unix milliseconds; before its first answer, since when it is wanted.
    pub fn answered_ms(&self, cluster: &ClusterId) -> Option<i64> {
        self.entries.read().get(cluster).map(|entry| entry.answered_ms.load(Ordering::Relaxed))
    }

    /// How many clusters have credentials that end soon or have ended.
    pub fn ending(&self, now: jiff::Timestamp) -> usize {
        let entries = self.entries.read();
        let life = |entry: &Arc<Entry>| entry.target.lock().credentials.life();
        entries.values().filter_map(life).filter(|life| life.warns <= now).count()
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

    fn seen_as(&self, uid: &str) -> Vec<ClusterId> {
        self.context.seen_as.lock().get(uid).into_iter().flatten().cloned().collect()
    }

    fn api_list(&self, digest: &str) -> Option<Arc<ApiList>> {
        self.context.lists.of(digest)
    }

    fn changes(&self) -> BoxStream<'static, ClusterId> {
        self.context.listeners.listen()
    }

    fn revision(&self, cluster: &ClusterId) -> Option<u64> {
        let revision = self.entries.read().get(cluster)?.revision.load(Ordering::Relaxed);
        (revision > 0).then_some(revision)
    }

    fn marked(&self, cluster: &ClusterId, version: u64) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.marked.fetch_max(version, Ordering::AcqRel);
        }
    }

    fn went_back(&self, cluster: &ClusterId) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.went_back.store(true, Ordering::Release);
            entry.wake.notify_one();
        }
    }

    fn want_nodes(&self, cluster: &ClusterId, keys: Option<&Arc<BTreeSet<String>>>) {
        let Some(entry) = self.entries.read().get(cluster).cloned() else { return };
        let mut known = entry.node_keys.lock();
        if known.as_ref() != keys {
            *known = keys.cloned();
            entry.wake.notify_one();
        }
    }

    fn refresh_apis(&self, cluster: &ClusterId) {
        if let Some(entry) = self.entries.read().get(cluster) {
            entry.learn.store(true, Ordering::Release);
            entry.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
