//! Shares one cluster among its jobs: what is known of the connection, a fair gate for requests, and the store of what
//! is there.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::identity::{ClusterId, Identity, split_api_version};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::errors::{Retry, Trouble};
use super::fair::Claimant;
use super::gate::Gate;
use super::health_rules::HealthRules;
use super::metrics::{SyncMetrics, count};
use super::observe::Observed;
use super::suspension::{HELD_BACK, Suspension};
use crate::api::fence::{Fence, send_fenced};
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request};
use crate::publish::{Branch, NotReady, Publishers};
use crate::remote::{Admission, Connections, Observation, State};

mod git;
mod hindered;

pub use hindered::Hindered;

/// What is known of the connection, as jobs and watches wait for it.
pub type Link = Option<Arc<Observation>>;

/// One cluster.
pub struct Edge {
    /// Which.
    pub id: ClusterId,
    /// What is there.
    pub observed: Arc<Observed>,
    /// Logical clouds that cannot be made there.
    pub hindered: Hindered,
    /// Counters.
    pub metrics: Arc<SyncMetrics>,
    connections: Arc<dyn Connections>,
    publishers: Arc<Publishers>,
    // Whether its branch can be written to, where it is written through Git.
    branch_ready: Mutex<Option<(u64, Result<(), NotReady>)>>,
    fence: Arc<dyn Fence>,
    // Fair by project and owner; what the engine asks for itself counts as one more project.
    gate: Gate,
    own: Claimant,
    link: watch::Sender<Link>,
    // The newest version of a shard that is worked off here.
    worked: watch::Sender<u64>,
    // When Pods may be looked at next.
    next_look: Mutex<Option<Instant>>,
}

/// A connection as one pass uses it from begin to end: another cluster behind the same name is another session.
#[derive(Clone)]
pub struct Session {
    server: Arc<dyn ApiServer>,
    /// What it serves.
    pub apis: Arc<ApiList>,
    /// Epoch of the connection.
    pub epoch: u64,
    /// UID of the cluster.
    pub uid: Option<String>,
    /// It was worked on before it was registered as it is now.
    pub returned: bool,
    who: Claimant,
    suspension: Suspension,
    branch: Option<Arc<Branch>>,
}

/// Why there is no connection.
pub enum NoSession {
    /// It is being made for the first time.
    Awaited,
    /// Nobody asked for one: the Cluster is not registered, or was not looked at yet.
    Unknown,
    /// The last probe failed.
    Down(Trouble),
    /// It answers, and nothing may be done there.
    Refused(Trouble),
}

impl Edge {
    /// A cluster with `in_flight` requests at most at a time.
    pub fn new(
        id: ClusterId,
        connections: Arc<dyn Connections>,
        publishers: Arc<Publishers>,
        fence: Arc<dyn Fence>,
        metrics: Arc<SyncMetrics>,
        rules: Arc<HealthRules>,
        in_flight: usize,
    ) -> Arc<Self> {
        let (link, _) = watch::channel(connections.observation(&id));
        let observed = Arc::new(Observed::new(rules));
        Arc::new(Self {
            id,
            observed,
            hindered: Hindered::default(),
            metrics,
            connections,
            publishers,
            branch_ready: Mutex::new(None),
            fence,
            gate: Gate::new(in_flight),
            own: Claimant::default(),
            link,
            worked: watch::channel(0).0,
            next_look: Mutex::new(None),
        })
    }

    /// Takes a turn for a look at Pods; the error is when the next one is free. All rows of a cluster share them, for each look
    /// costs its API server a list.
    pub fn turn_for_pods(&self, now: Instant) -> Result<(), Instant> {
        let mut next = self.next_look.lock();
        match *next {
            Some(free) if now < free => Err(free),
            _ => {
                *next = Some(now + BETWEEN_LOOKS);
                Ok(())
            }
        }
    }

    /// Work of this version of the hub's begins here.
    pub fn working(&self, version: u64) {
        if let Some(branch) = self.publishers.branch(&self.id) {
            branch.working(version);
            return;
        }
        self.worked.send_if_modified(|before| {
            let newer = version > *before;
            *before = version.max(*before);
            newer
        });
    }

    /// The newest version that was begun.
    pub fn worked(&self) -> watch::Receiver<u64> {
        self.worked.subscribe()
    }

    /// Reads again what the pool knows and wakes who waits for it.
    pub fn refresh(&self) {
        let now = self.connections.observation(&self.id);
        self.link.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }

    /// Changes of the connection.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// The connection for one pass of an owner's job, or why there is none.
    pub fn session(&self, who: &Claimant, suspension: &Suspension) -> Result<Session, NoSession> {
        let link = self.link.borrow().clone();
        let Some(link) = link else { return Err(NoSession::Unknown) };
        if let State::Failed { reason, message } = &link.state {
            let text = format!("{reason}: {message}");
            return Err(NoSession::Down(Trouble::new("Unreachable", &text, Retry::WhenBack)));
        }
        match &link.admission {
            Admission::Admitted => {}
            Admission::Awaited => return Err(NoSession::Awaited),
            Admission::Refused { reason, message } => {
                return Err(NoSession::Refused(Trouble::new(reason, message, Retry::Slowly)));
            }
        }
        // Nothing but the end of the first probe is waited for, and that is bounded.
        let (true, Some(apis)) = (link.connected(), link.apis.clone()) else {
            return Err(NoSession::Awaited);
        };
        let Some(server) = self.connections.get(&self.id) else { return Err(NoSession::Awaited) };
        let (uid, returned) = (link.uid.clone(), link.returned);
        let (who, suspension) = (who.clone(), suspension.clone());
        let branch = self.branch()?;
        Ok(Session { server, apis, epoch: link.epoch, uid, returned, who, suspension, branch })
    }

    /// The connection for lists and watches, which need no list of kinds.
    pub fn server(&self) -> Option<Arc<dyn ApiServer>> {
        let open = |link: &Observation| link.connected() && link.admission == Admission::Admitted;
        let open = self.link.borrow().as_ref().is_some_and(|link| open(link));
        if open { self.connections.get(&self.id) } else { None }
    }

    /// How far the store of the cluster had come at the last probe, where that is known.
    pub fn revision(&self) -> Option<u64> {
        self.connections.revision(&self.id)
    }

    /// The mark of this hub on the cluster has this resourceVersion now.
    pub fn marked(&self, version: u64) {
        self.connections.marked(&self.id, version);
    }

    /// A watch found that the store of the cluster is not what it was.
    pub fn went_back(&self) {
        self.connections.went_back(&self.id);
    }

    /// Asks the cluster what it serves, soon.
    pub fn refresh_apis(&self) {
        self.connections.refresh_apis(&self.id);
    }

    /// One request of the engine itself through the gate.
    pub async fn send(&self, server: &Arc<dyn ApiServer>, request: Request) -> ApiResult<Value> {
        self.send_for(&self.own, None, server, request).await
    }

    /// One request of an owner through the gate. Writes only while the lease is ours, and the owner is not suspended.
    async fn send_for(
        &self,
        who: &Claimant,
        suspension: Option<&Suspension>,
        server: &Arc<dyn ApiServer>,
        request: Request,
    ) -> ApiResult<Value> {
        if request.method != Method::Get
            && let Some(refusal) = self.not_on_git(&request)
        {
            return Err(refusal);
        }
        let _admitted = self.gate.enter(who).await;
        // Asked after the wait for a turn: between here and the request nothing is waited for.
        if request.method != Method::Get && suspension.is_some_and(Suspension::holds_back) {
            return Err(ApiError::Unreachable { reason: "Suspended", message: HELD_BACK.to_owned() });
        }
        send_fenced(self.fence.as_ref(), server.as_ref(), request).await.unwrap_or_else(|| {
            count(&self.metrics.fenced);
            Err(ApiError::Unreachable { reason: "Timeout", message: FENCED.to_owned() })
        })
    }

    /// Counts.
    pub fn count(&self, which: impl Fn(&SyncMetrics) -> &AtomicU64) {
        count(which(&self.metrics));
    }
}

/// Between two looks at Pods of one cluster.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

const FENCED: &str = "this operator does not hold the lease: nothing is written";

impl Session {
    /// One request through the gate of its cluster. Nothing more is sent on a connection that was found dead meanwhile: five
    /// thousand requests would each wait for their time to run out.
    pub async fn send(&self, edge: &Edge, request: Request) -> ApiResult<Value> {
        if let Some(link) = edge.link.borrow().as_ref()
            && let State::Failed { reason, message } = &link.state
        {
            let message = format!("{reason}: {message}");
            return Err(ApiError::Unreachable { reason: "ConnectionRefused", message });
        }
        edge.send_for(&self.who, Some(&self.suspension), &self.server, request).await
    }

    /// The resource of a manifest in exactly its version.
    pub fn resource_of(&self, manifest: &Value) -> Option<&ApiResource> {
        let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = split_api_version(text("apiVersion"));
        self.apis.find(group, version, text("kind"))
    }

    /// The resource of an identity in the version that the server prefers.
    pub fn resource(&self, id: &Identity) -> Option<&ApiResource> {
        self.apis.preferred(&id.group, &id.kind)
    }

    /// Whether an identity names a namespace although its kind belongs to the whole cluster: the kind was unknown when it was
    /// planned.
    pub fn spans(&self, id: &Identity) -> bool {
        !id.namespace.is_empty() && self.resource(id).is_some_and(|resource| !resource.namespaced)
    }

    /// The identity of the object that a stored one names on this cluster.
    pub fn settled(&self, id: &Identity) -> Identity {
        let mut id = id.clone();
        if self.spans(&id) {
            id.namespace.clear();
        }
        id
    }
}
