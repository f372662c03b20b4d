//! What the engine finds around it besides the hub: time, chance, the Lease, policies, and edges that can be lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use emco_crds::deployment_intent_group::sync::{
    ConflictPolicy, DriftPolicy, IgnoreRule, ImmutablePolicy, PrunePolicy,
};
use emco_engine::identity::ClusterId;
use emco_engine::role::Derived;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::api::ApiServer;
use crate::api::world::{Clock, Edges};
use crate::memory::MemoryServer;
use crate::object::Owner;
use crate::remote::{Connections, Observation, State as Link};
use crate::sync::{Fence, Policies, Policy};

pub struct FixedClock;
impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        1_795_000_000_000
    }
}

/// The wall clock of a test whose time is paused.
pub struct PausedClock(pub tokio::time::Instant);
impl Clock for PausedClock {
    fn now_ms(&self) -> i64 {
        FixedClock.now_ms() + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

/// Edges that are connected while their link says so.
pub struct FakeEdges {
    pub servers: BTreeMap<ClusterId, MemoryServer>,
    links: Mutex<BTreeMap<ClusterId, Observation>>,
    /// What probes saw of all stores.
    pub revision: Mutex<Option<u64>>,
    /// How often a watch found that a store went back.
    pub alarms: AtomicU64,
    /// Another look at what a server serves shows what the link says already.
    pub stale: AtomicBool,
    changed: broadcast::Sender<ClusterId>,
}

impl FakeEdges {
    pub fn new(servers: BTreeMap<ClusterId, MemoryServer>) -> Arc<Self> {
        let links = servers
            .iter()
            .map(|(id, server)| {
                let link = Observation {
                    state: Link::Connected,
                    uid: Some(server.uid()),
                    apis: Some(Arc::new(server.apis())),
                    ..Observation::default()
                };
                (id.clone(), link)
            })
            .collect();
        Arc::new(Self {
            servers,
            links: Mutex::new(links),
            revision: Mutex::default(),
            alarms: AtomicU64::default(),
            stale: AtomicBool::default(),
            changed: broadcast::channel(64).0,
        })
    }

    pub fn link(&self, cluster: &ClusterId, change: impl Fn(&mut Observation)) {
        if let Some(link) = self.links.lock().get_mut(cluster) {
            change(link);
        }
        let _ = self.changed.send(cluster.clone());
    }

    pub fn set_down(&self, cluster: &ClusterId, down: bool) {
        self.servers[cluster].set_down(down);
        self.link(cluster, |link| {
            link.state = if down {
                Link::Failed { reason: "ConnectionRefused", message: "nobody listens".to_owned() }
            } else {
                Link::Connected
            };
        });
    }
}

impl Edges for FakeEdges {
    fn get(&self, cluster: &ClusterId) -> Option<Arc<dyn ApiServer>> {
        let connected = self.links.lock().get(cluster).is_some_and(Observation::connected);
        let server = self.servers.get(cluster).filter(|_| connected)?;
        Some(Arc::new(server.clone()))
    }
}

impl Connections for FakeEdges {
    fn revision(&self, _: &ClusterId) -> Option<u64> {
        *self.revision.lock()
    }

    fn went_back(&self, _: &ClusterId) {
        self.alarms.fetch_add(1, Ordering::Relaxed);
    }

    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>> {
        self.links.lock().get(cluster).cloned().map(Arc::new)
    }

    fn seen_as(&self, uid: &str) -> Vec<ClusterId> {
        let links = self.links.lock();
        let those = links.iter().filter(|(_, seen)| seen.uid.as_deref() == Some(uid));
        those.map(|(id, _)| id.clone()).collect()
    }

    fn changes(&self) -> BoxStream<'static, ClusterId> {
        let receiver = self.changed.subscribe();
        futures::stream::unfold(receiver, |mut receiver| async move {
            loop {
                match receiver.recv().await {
                    Ok(cluster) => return Some((cluster, receiver)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
        .boxed()
    }

    fn refresh_apis(&self, cluster: &ClusterId) {
        if self.stale.load(Ordering::Relaxed) {
            return;
        }
        let apis = Some(Arc::new(self.servers[cluster].apis()));
        if self.links.lock().get(cluster).is_some_and(|link| link.apis != apis) {
            self.link(cluster, |link| link.apis.clone_from(&apis));
        }
    }
}

pub struct Open(pub AtomicBool);
impl Fence for Open {
    fn may_write(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The owner's policy, as the test sets it.
#[derive(Default)]
pub struct Paced {
    pub drift: Mutex<DriftPolicy>,
    pub ignore: Mutex<Vec<IgnoreRule>>,
    pub conflicts: Mutex<ConflictPolicy>,
    pub immutable: Mutex<ImmutablePolicy>,
    pub prune: Mutex<PrunePolicy>,
    pub requested: Mutex<Option<String>>,
    pub suspended: AtomicBool,
    pub pinned: Mutex<Option<i64>>,
    /// Its logical cloud has another level than Admin.
    pub confined: AtomicBool,
    /// The rights of its account are derived.
    pub derived: Mutex<Option<Derived>>,
    /// Namespace that its logical cloud makes.
    pub namespace: Mutex<Option<String>>,
    /// UID of its namespace on the hub.
    pub tenant: Mutex<String>,
}
impl Policies for Paced {
    fn policy(&self, owner: &Owner) -> Policy {
        Policy {
            placed_by: "team-a/shop".to_owned(),
            drift: *self.drift.lock(),
            ignore: self.ignore.lock().clone(),
            conflicts: *self.conflicts.lock(),
            immutable: *self.immutable.lock(),
            prune: *self.prune.lock(),
            namespace: self.namespace.lock().clone(),
            whole_cluster: !self.confined.load(Ordering::Relaxed),
            derived: self.derived.lock().clone(),
            requested: self.requested.lock().clone(),
            suspended: self.suspended.load(Ordering::Relaxed),
            pinned: *self.pinned.lock(),
            ..Policy::of(owner)
        }
    }

    fn project(&self, namespace: &str) -> Option<String> {
        Some(namespace.to_owned())
    }

    fn tenant(&self, _: &str) -> Option<String> {
        Some(self.tenant.lock().clone())
    }
}
