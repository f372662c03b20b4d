//! Publishes files of clusters on branches: one task for each `GitTarget` compares what is wanted with the branch's tip, and commits what
//! differs. The branch is compared, not remembered, so a crash, a lost answer and another writer are all the same to it: the next look
//! finds the difference. Nothing is ever forced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_engine::git::files::EdgeObjects;
use emco_engine::git::layout;
use emco_engine::git::tree::join;
use emco_engine::identity::ClusterId;
use futures::stream::BoxStream;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::api::fence::Fence;
use crate::api::listeners::Listeners;
use crate::api::world::Clock;
use crate::remote::Claim;
use crate::remote::dialer::Dialer;

mod branch;
mod http;
pub mod remote;
mod state;
mod task;

pub use branch::{Branch, File, NotReady};
pub use http::{HttpRemote, Login};
use remote::{Fault, Remote};
use state::Shared;

/// Namespace and name of a `GitTarget`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetKey {
    pub namespace: String,
    pub name: String,
}

impl std::fmt::Display for TargetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a `GitTarget` says, with its login.
#[derive(Clone, PartialEq)]
pub struct TargetOptions {
    /// `https://host/path`.
    pub url: String,
    pub branch: String,
    /// Empty for the root of the repository.
    pub folder: String,
    pub login: Login,
    /// How often the branch is asked for.
    pub interval: Duration,
    /// Where the agent and its objects are on the clusters.
    pub edge: EdgeObjects,
}

/// How a cluster is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnGit {
    pub target: TargetKey,
}

/// How a target stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    pub state: PublishState,
    /// Whose the folder is.
    pub found: Found,
    /// The last commit that had all of ours as wanted, and when.
    pub published: Option<(String, Timestamp)>,
    /// Clusters with files on the tip.
    pub clusters: usize,
    /// Clusters with files that are not as wanted there yet.
    pub waiting: usize,
    /// The folder may be written.
    pub admitted: bool,
    /// Owners whose files the server refuses, while it takes those of others.
    pub refused: Vec<String>,
}

/// What a target is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishState {
    /// The tip was not read yet.
    Connecting,
    /// The tip was read; whether the folder may be written was not judged yet.
    Waiting,
    /// Something wanted is not on the branch yet.
    Publishing,
    Published,
    Failed {
        reason: &'static str,
        message: String,
    },
}

/// What the tip says of whose the folder is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub claim: Claim,
    /// Whether there are files of clusters.
    pub files: bool,
}

/// Whether the folder may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It is ours, or may be taken.
    Admitted,
    /// The same; and the mark of the hub before goes.
    Reset,
    Refused {
        reason: &'static str,
        message: String,
    },
}

impl Permit {
    /// Why the folder may not be written.
    fn refusal(&self) -> Option<Fault> {
        match self {
            Self::Admitted | Self::Reset => None,
            Self::Refused { reason, message } => Some(Fault { reason, message: message.clone() }),
        }
    }
}

/// What others changed and was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// Files.
    pub count: u64,
    /// The first of them.
    pub first: String,
    /// When it was undone last.
    pub at: Timestamp,
}

/// Makes the connection to a branch.
pub type Connect = dyn Fn(&TargetOptions) -> Result<Arc<dyn Remote>, Fault> + Send + Sync;

/// What publishing needs from outside.
#[derive(Clone)]
pub struct PublisherParts {
    pub connect: Arc<Connect>,
    /// Asked before every push.
    pub fence: Arc<dyn Fence>,
    pub clock: Arc<dyn Clock>,
    /// Id of this installation.
    pub installation: String,
}

impl PublisherParts {
    /// Over HTTP.
    pub fn over_http(
        dialer: Arc<Dialer>,
        fence: Arc<dyn Fence>,
        clock: Arc<dyn Clock>,
        installation: &str,
    ) -> Self {
        let connect = move |options: &TargetOptions| {
            let TargetOptions { url, branch, login, .. } = options;
            let remote = HttpRemote::new(Arc::clone(&dialer), url, branch, login.clone())?;
            Ok::<_, Fault>(Arc::new(remote) as Arc<dyn Remote>)
        };
        Self { connect: Arc::new(connect), fence, clock, installation: installation.to_owned() }
    }
}

/// All targets, and the clusters that are written through them.
pub struct Publishers {
    /// None: nothing is published, as in a plan of files.
    parts: Option<PublisherParts>,
    targets: Mutex<BTreeMap<TargetKey, Running>>,
    clusters: Mutex<BTreeMap<ClusterId, OnGit>>,
    listeners: Arc<Listeners<TargetKey>>,
    made: AtomicU64,
    stop: CancellationToken,
}

struct Running {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

impl Default for Publishers {
    fn default() -> Self {
        Self::of(None, CancellationToken::new())
    }
}

impl Drop for Publishers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Publishers {
    /// Publishers whose tasks end with `stop`.
    pub fn new(parts: PublisherParts, stop: &CancellationToken) -> Arc<Self> {
        Arc::new(Self::of(Some(parts), stop.child_token()))
    }

    fn of(parts: Option<PublisherParts>, stop: CancellationToken) -> Self {
        let (targets, clusters, listeners) = (Mutex::default(), Mutex::default(), Arc::default());
        Self { parts, targets, clusters, listeners, made: AtomicU64::new(0), stop }
    }

    /// Wants a target published so.
    pub fn set_target(&self, key: &TargetKey, options: TargetOptions) {
        let Some(parts) = &self.parts else { return };
        let mut targets = self.targets.lock();
        if let Some(running) = targets.get(key)
            && running.shared.change(&options)
        {
            return;
        }
        // Other files are another target: jobs hand all of them over again.
        if let Some(before) = targets.remove(key) {
            before.stop.cancel();
        }
        let (listeners, told) = (Arc::clone(&self.listeners), key.clone());
        let tell = Box::new(move || listeners.tell(&told));
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = Arc::new(Shared::new(key, number, options, parts.clone(), tell));
        let stop = self.stop.child_token();
        tokio::spawn(task::run(Arc::clone(&shared), stop.clone()));
        targets.insert(key.clone(), Running { shared, stop });
    }

    /// Ends the task of a target. Nothing is removed from the branch.
    pub fn forget_target(&self, key: &TargetKey) {
        if let Some(running) = self.targets.lock().remove(key) {
            running.stop.cancel();
        }
    }

    /// How a target stands; none that nobody set.
    pub fn status(&self, key: &TargetKey) -> Option<TargetStatus> {
        self.shared(key).map(|shared| shared.status())
    }

    /// Targets whose status became another.
    pub fn changes(&self) -> BoxStream<'static, TargetKey> {
        self.listeners.listen()
    }

    /// Looks at the branch now.
    pub fn look_now(&self, key: &TargetKey) {
        if let Some(shared) = self.shared(key) {
            shared.look_now();
        }
    }

    /// Says whether the folder may be written, by what was found there. A judgement of what is not found there any more counts for nothing.
    pub fn admit(&self, key: &TargetKey, found: &Found, permit: Permit) {
        if let Some(shared) = self.shared(key) {
            shared.admit(found, permit);
        }
    }

    /// What was undone since the last time this was asked.
    pub fn take_corrected(&self, key: &TargetKey) -> Option<Corrected> {
        self.shared(key)?.take_corrected()
    }

    /// Says how a cluster is written. To be called before it is reached with its observing credentials.
    pub fn set_cluster(&self, id: &ClusterId, on: OnGit) {
        self.clusters.lock().insert(id.clone(), on);
    }

    /// Forgets a cluster. Nothing is removed from the branch.
    pub fn forget_cluster(&self, id: &ClusterId) {
        self.clusters.lock().remove(id);
    }

    /// The folder of a cluster, from the root of its repository.
    pub fn path(&self, id: &ClusterId) -> Option<String> {
        let on = self.clusters.lock().get(id).cloned()?;
        let shared = self.shared(&on.target)?;
        Some(join(&shared.options().folder, &layout::cluster(id)))
    }

    /// How a cluster is written through Git; none that is written directly.
    pub fn branch(&self, id: &ClusterId) -> Option<Branch> {
        let on = self.clusters.lock().get(id).cloned()?;
        Some(Branch::new(on.target.clone(), self.shared(&on.target), id))
    }

    fn shared(&self, key: &TargetKey) -> Option<Arc<Shared>> {
        self.targets.lock().get(key).map(|running| Arc::clone(&running.shared))
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
