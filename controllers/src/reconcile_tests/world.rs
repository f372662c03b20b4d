//! What reconcilers find around them besides the hub: time, chance, and clusters of which is seen what the test says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use emco_engine::apis::ApiList;
use emco_engine::hardware::{Node, Read};
use emco_engine::identity::ClusterId;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::BoxStream;
use parking_lot::Mutex;
use serde_json::Value;

use super::rig::Rig;
use crate::api::ApiServer;
use crate::api::boot_clock::BootClock;
use crate::api::world::{Clock, Edges};
use crate::memory::MemoryServer;
use crate::object::context::Connector;
use crate::remote::{Admission, Claim, Connections, Credentials, DetailedNodes, Observation, State, Target};

/// Stands still until it is moved: the wall clock, and one that nobody sets.
#[derive(Clone)]
pub struct TestClock {
    wall: Arc<AtomicI64>,
    boot: Arc<AtomicU64>,
}

impl TestClock {
    pub fn new() -> Self {
        Self { wall: Arc::new(AtomicI64::new(1_795_000_000_000)), boot: Arc::default() }
    }

    /// Another one that shows the same.
    pub fn copied(&self) -> Self {
        let (wall, boot) = (self.wall.load(Ordering::Relaxed), self.boot.load(Ordering::Relaxed));
        Self { wall: Arc::new(AtomicI64::new(wall)), boot: Arc::new(AtomicU64::new(boot)) }
    }

    /// Time passes.
    pub fn forward(&self, by: Duration) {
        self.set_forward(by);
        self.boot.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Somebody sets the wall clock.
    pub fn set_forward(&self, by: Duration) {
        self.wall.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// The same, back.
    pub fn back(&self, by: Duration) {
        self.wall.fetch_sub(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }
}

impl BootClock for TestClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.boot.load(Ordering::Relaxed))
    }
}

/// What is seen of clusters is what the test says; behind some of them is a server.
#[derive(Default)]
pub struct Seeing {
    seen: Mutex<BTreeMap<ClusterId, Arc<Observation>>>,
    servers: Mutex<BTreeMap<ClusterId, MemoryServer>>,
    /// What each is to be reached with.
    wanted: Mutex<BTreeMap<ClusterId, Target>>,
    /// Who is told of changes.
    told: Mutex<Vec<UnboundedSender<ClusterId>>>,
}

impl Seeing {
    /// The same of copies of the servers, which nobody follows yet.
    pub fn copied(&self) -> Self {
        let copied = |(id, server): (&ClusterId, &MemoryServer)| (id.clone(), server.copied());
        Self {
            seen: Mutex::new(self.seen.lock().clone()),
            servers: Mutex::new(self.servers.lock().iter().map(copied).collect()),
            wanted: Mutex::new(self.wanted.lock().clone()),
            told: Mutex::default(),
        }
    }

    /// The server behind a cluster.
    pub fn server(&self, cluster: &str) -> MemoryServer {
        self.servers.lock()[&ClusterId::new("acme", cluster)].clone()
    }

    fn changed(&self, cluster: &ClusterId) {
        self.told.lock().retain(|told| told.unbounded_send(cluster.clone()).is_ok());
    }

    /// What is seen of a cluster changes, and whoever follows is told.
    fn change(&self, cluster: &str, change: impl FnOnce(&mut Observation)) {
        let id = ClusterId::new("acme", cluster);
        let mut observation = self.observation(&id).map(|seen| Observation::clone(&seen)).unwrap_or_default();
        change(&mut observation);
        self.seen.lock().insert(id.clone(), Arc::new(observation));
        self.changed(&id);
    }
}

impl Edges for Seeing {
    fn get(&self, cluster: &ClusterId) -> Option<Arc<dyn ApiServer>> {
        let connected = self.seen.lock().get(cluster).is_some_and(|seen| seen.connected());
        let server = self.servers.lock().get(cluster).filter(|_| connected).cloned()?;
        Some(Arc::new(server))
    }
}

impl Connections for Seeing {
    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>> {
        self.seen.lock().get(cluster).cloned()
    }
    fn seen_as(&self, uid: &str) -> Vec<ClusterId> {
        let seen = self.seen.lock();
        let those = seen.iter().filter(|(_, seen)| seen.uid.as_deref() == Some(uid));
        those.map(|(id, _)| id.clone()).collect()
    }
    fn api_list(&self, digest: &str) -> Option<Arc<ApiList>> {
        let seen = self.seen.lock();
        let found = seen.values().find(|seen| seen.api_digest.as_deref() == Some(digest));
        found.and_then(|seen| seen.apis.clone())
    }
    fn changes(&self) -> BoxStream<'static, ClusterId> {
        let (tell, told) = unbounded();
        self.told.lock().push(tell);
        told.boxed()
    }
    fn refresh_apis(&self, _: &ClusterId) {}
}

impl Connector for Seeing {
    fn set_target(&self, cluster: ClusterId, target: Target) {
        self.wanted.lock().insert(cluster, target);
    }
    fn forget(&self, cluster: &ClusterId) {
        self.wanted.lock().remove(cluster);
    }
    fn probe_now(&self, _: &ClusterId) {}
    fn admit(&self, cluster: &ClusterId, uid: &str, admission: Admission) {
        let known = self.observation(cluster);
        if known.is_some_and(|seen| seen.uid.as_deref() == Some(uid) && seen.admission != admission) {
            self.change(cluster.cluster(), |seen| seen.admission = admission);
        }
    }
    /// The server behind it takes any credentials, unless faults of the test say otherwise.
    fn try_with(&self, cluster: &ClusterId, _: Credentials) -> Option<Arc<dyn ApiServer>> {
        self.get(cluster)
    }
}

impl Rig {
    /// From now on this cluster answers, with this identity.
    pub fn answers(&self, cluster: &str, uid: &str) {
        let observation = Observation {
            state: State::Connected,
            uid: Some(uid.to_owned()),
            version: Some("v1.33.1".to_owned()),
            apis: Some(Arc::new(self.hub.apis())),
            ..Observation::default()
        };
        self.seeing.seen.lock().insert(ClusterId::new("acme", cluster), Arc::new(observation));
    }

    /// As after a start: its first probe is under way until it is [`Self::remembered`]. Answers what was.
    pub fn forgotten(&self, cluster: &str) -> Option<Arc<Observation>> {
        let id = ClusterId::new("acme", cluster);
        let seen = self.seeing.seen.lock().insert(id.clone(), Arc::default());
        self.seeing.changed(&id);
        seen
    }

    /// It answers again.
    pub fn remembered(&self, cluster: &str, seen: Option<Arc<Observation>>) {
        let id = ClusterId::new("acme", cluster);
        self.seeing.seen.lock().extend(seen.map(|seen| (id.clone(), seen)));
        self.seeing.changed(&id);
    }

    /// As every cluster at first: who it is has to be judged before anything is done there.
    pub fn unjudged(&self, cluster: &str) {
        self.seeing.change(cluster, |seen| seen.admission = Admission::Awaited);
    }

    /// From now on probes of it fail.
    pub fn fails(&self, cluster: &str, reason: &'static str) {
        let message = "nobody answers".to_owned();
        self.seeing.change(cluster, |seen| seen.state = State::Failed { reason, message });
    }

    /// No probe of it was ever answered.
    pub fn never_answers(&self, cluster: &str) {
        self.seeing.seen.lock().remove(&ClusterId::new("acme", cluster));
        self.fails(cluster, "ConnectionRefused");
    }

    /// It answers again, with this identity.
    pub fn returns(&self, cluster: &str, uid: &str) {
        self.seeing.change(cluster, |seen| {
            seen.state = State::Connected;
            seen.uid = Some(uid.to_owned());
            seen.epoch += 1;
        });
    }

    /// From now on it serves something else.
    pub fn serves(&self, cluster: &str, digest: &str) {
        self.seeing.change(cluster, |seen| seen.api_digest = Some(digest.to_owned()));
    }

    /// From now on it says that it belongs to this installation, or to none.
    pub fn claims(&self, cluster: &str, claim: Claim) {
        let mut seen = self.seeing.seen.lock();
        let id = ClusterId::new("acme", cluster);
        let before = seen.get(&id).map(|seen| Observation::clone(seen)).unwrap_or_default();
        seen.insert(id, Arc::new(Observation { claim, ..before }));
    }

    /// What it is to be reached with.
    pub fn wanted(&self, cluster: &str) -> Option<Target> {
        self.seeing.wanted.lock().get(&ClusterId::new("acme", cluster)).cloned()
    }

    /// What was judged of it.
    pub fn admission(&self, cluster: &str) -> Admission {
        let id = ClusterId::new("acme", cluster);
        self.seeing.seen.lock().get(&id).map(|seen| seen.admission.clone()).unwrap_or_default()
    }

    /// The nodes of a cluster as its connection shows them, with the labels of these keys; or that they may not be listed.
    pub fn has_nodes(&self, cluster: &str, keys: &[&str], nodes: Option<&[Value]>) {
        let read = |nodes: &[Value]| {
            let keys: BTreeSet<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let named = |node: &Value| {
                let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                (name, Node::read(node, |key| keys.contains(key)))
            };
            let nodes = Arc::new(nodes.iter().map(named).collect());
            DetailedNodes { nodes, keys: Arc::new(keys) }
        };
        let nodes = nodes.map_or(Read::Forbidden, |nodes| Read::Done(read(nodes)));
        self.seeing.change(cluster, |seen| seen.nodes = nodes);
    }

    /// As after a start: nothing is known of its nodes yet.
    pub fn forgets_nodes(&self, cluster: &str) {
        self.seeing.change(cluster, |seen| seen.nodes = Read::Not);
    }

    /// The same, with a server that takes what is applied.
    pub fn attach(&self, cluster: &str, server: &MemoryServer) {
        self.seeing.servers.lock().insert(ClusterId::new("acme", cluster), server.clone());
        self.answers(cluster, &format!("uid-{cluster}"));
    }
}
