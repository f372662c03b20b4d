//! Holds every input that the planner may read, already fetched: values, without I/O behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::{CompositeApp, CompositeProfile, DeploymentIntentGroup, GenericActionIntent, Level};

use crate::apis::ApiList;
use crate::cloud::{self, Derived, Reach};
use crate::identity::{ClusterId, SetDigest};
use crate::rollout::Waves;
use crate::set::{Assignment, ManifestSet};

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

/// `Cluster.spec.scheduling`, and what deletion makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// May take new work.
    Enabled,
    /// Keeps what it has and takes nothing new: cordoned, or held while it is being deleted.
    Cordoned,
    /// Loses what it has where that is possible.
    Drained,
}

/// What is known of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// `provider/cluster`.
    pub id: ClusterId,
    /// The Cluster's labels. The virtual ones are added by the planner.
    pub labels: BTreeMap<String, String>,
    /// `spec.properties`.
    pub properties: BTreeMap<String, String>,
    /// Whether it may take work.
    pub scheduling: Scheduling,
    /// Whether the last probe reached it. Ranks choices of `anyOf`, nothing else.
    pub reachable: bool,
    /// UID of its `kube-system` namespace; `None` before the first contact.
    pub uid: Option<String>,
    /// `v1.36.3`; `None` before the first contact.
    pub kubernetes_version: Option<String>,
    /// What it serves; `None` before the first contact.
    pub apis: Option<Arc<ApiList>>,
}

/// The logical cloud a deployment runs in.
#[derive(Clone, Debug)]
pub struct CloudFacts {
    /// Name of the `LogicalCloud`.
    pub name: String,
    /// `Standard`, `Privileged` or `Admin`.
    pub level: String,
    /// Namespace on the clusters.
    pub namespace: String,
    /// Where its level and permissions let deployments have objects beside that.
    pub reach: Reach,
    /// Where the rights of its account follow what is deployed; `None` = they are listed.
    pub derived: Option<Derived>,
    /// Candidates: clusters that the cloud has and the project's grants allow.
    pub clusters: BTreeSet<ClusterId>,
}

impl CloudFacts {
    /// The account of the clusters that its deployments are applied as; none at level Admin.
    pub fn account(&self) -> Option<String> {
        (self.level != Level::Admin.as_str()).then(|| cloud::account(&self.namespace, &self.name))
    }

    /// Whether its deployments may have objects in a namespace; without one, of the whole cluster.
    pub fn reaches(&self, namespace: Option<&str>) -> bool {
        self.reach.cluster
            || namespace.is_some_and(|there| there == self.namespace || self.reach.namespaces.contains(there))
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
    /// Those that the group lists and that were found, by name.
    pub intents: BTreeMap<String, Arc<GenericActionIntent>>,
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
    pub leaving: BTreeMap<(ClusterId, String), Option<Arc<ManifestSet>>>,
    /// Unix seconds.
    pub now: i64,
}

/// UIDs of the clusters that have been identified.
pub fn uids(clusters: &BTreeMap<ClusterId, ClusterFacts>) -> BTreeMap<ClusterId, String> {
    clusters.iter().filter_map(|(id, facts)| Some((id.clone(), facts.uid.clone()?))).collect()
}
