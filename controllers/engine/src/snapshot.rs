//! Holds every input that the planner may read, already fetched: values, without I/O behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::{
    CompositeApp, CompositeProfile, DeploymentIntentGroup, GenericActionIntent, HardwareIntent,
    TrafficGroupIntent,
};

use crate::cloud::CloudFacts;
use crate::identity::{ClusterId, SetDigest};
use crate::rollout::Waves;
use crate::set::{Assignment, ManifestSet};

mod cluster;

pub use cluster::{ClusterFacts, Scheduling};

/// What makes this hub's digests and random values its own. Never printed.
#[derive(Clone)]
pub struct Installation {
    /// Text that names the installation.
    pub id: String,
    /// Key of digests that viewers see.
    pub digest_key: [u8; 32],
    /// Key that random functions of charts draw from.
    pub random_key: [u8; 32],
}

impl std::fmt::Debug for Installation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Installation").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A chart that was fetched, verified and parsed.
#[derive(Clone)]
pub struct ChartFacts {
    /// `sha256:` and 64 hexadecimal digits, of the archive.
    pub digest: String,
    /// Parsed once, rendered for every cluster.
    pub compiled: Arc<emco_helm::Compiled>,
}

/// Which ConfigMap or Secret key a `valuesFrom` entry or an intent reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceKey {
    /// `ConfigMap` or `Secret`.
    pub kind: String,
    /// Object name, in the project's namespace.
    pub name: String,
    /// Key in its data.
    pub key: String,
}

/// What a `valuesFrom` entry or a profile file found.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The text behind the key.
    Found(String),
    /// No object can have this name, or none such a key: it was not asked for.
    NotAName,
    /// The object does not exist.
    ObjectMissing,
    /// The object exists, the key does not.
    KeyMissing,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            // It may be a Secret's.
            Self::Found(_) => "Found",
            Self::NotAName => "NotAName",
            Self::ObjectMissing => "ObjectMissing",
            Self::KeyMissing => "KeyMissing",
        })
    }
}

/// The revision that runs now, as far as the planner needs it.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// Its number.
    pub revision: i64,
    /// Its plan digest.
    pub plan_digest: String,
    /// Its inputs digest.
    pub inputs_digest: String,
    /// `metadata.name` of the `CompositeApp` it was made of (another one is a migration).
    pub composite_app: String,
    /// Who has what. Render keys in here decide what is rendered again.
    pub assignment: Assignment,
    /// Stored sets by digest, as far as they could be read.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// Of stored sets that could not be read as a whole, the manifests that could.
    pub parts: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// How it reaches its clusters; `None`: all at once.
    pub waves: Option<Arc<Waves>>,
}

/// What an app still has on a cluster that it leaves.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// The set that was applied.
    pub set: Arc<ManifestSet>,
    /// The set that it was edited from; `None` where it was not, and where that cannot be read.
    pub base: Option<Arc<ManifestSet>>,
}

/// Everything [`crate::plan::plan`] reads.
pub struct Snapshot {
    /// Keys of this installation.
    pub installation: Arc<Installation>,
    /// Name of the Project.
    pub project: String,
    /// Most objects that an app may have on one cluster, as the Project says.
    pub objects_per_app: Option<usize>,
    /// The group that is planned.
    pub dig: Arc<DeploymentIntentGroup>,
    /// `None`: not found.
    pub composite_app: Option<Arc<CompositeApp>>,
    /// `None` where the group names none or it was not found.
    pub profile: Option<Arc<CompositeProfile>>,
    /// Generic actions that the group lists and that were found, by name.
    pub intents: BTreeMap<String, Arc<GenericActionIntent>>,
    /// The same of those that say what is needed of nodes.
    pub hardware: BTreeMap<String, Arc<HardwareIntent>>,
    /// The same of traffic.
    pub traffic: BTreeMap<String, Arc<TrafficGroupIntent>>,
    /// `None`: not found.
    pub cloud: Option<CloudFacts>,
    /// All clusters of all providers that the cloud names, also those it may not use (for explanations).
    pub clusters: BTreeMap<ClusterId, ClusterFacts>,
    /// Charts by app name; absent while not fetched.
    pub charts: BTreeMap<String, ChartFacts>,
    /// What `valuesFrom`, profile files and intents found.
    pub sources: BTreeMap<SourceKey, Source>,
    /// `None` before the first revision.
    pub running: Option<Running>,
    /// A plan that was worked out beside the running revision and waits: what was rendered for it is not rendered again.
    pub waiting: Option<Arc<Running>>,
    /// Clusters where an app has a completely applied set, by app: there `.Release.IsInstall` is false.
    pub installed: BTreeSet<(ClusterId, String)>,
    /// What apps have on clusters where the running revision has none for them: they left, and are not removed yet. `None`
    /// where it could not be read.
    pub leaving: BTreeMap<(ClusterId, String), Option<Leaving>>,
    /// Unix seconds.
    pub now: i64,
}

/// UIDs of the clusters that have been identified.
pub fn uids(clusters: &BTreeMap<ClusterId, ClusterFacts>) -> BTreeMap<ClusterId, String> {
    clusters.iter().filter_map(|(id, facts)| Some((id.clone(), facts.uid.clone()?))).collect()
}
