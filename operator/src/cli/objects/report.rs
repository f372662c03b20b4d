//! The answer of `get`: apps, their clusters, and the objects there.

use emco_engine::identity::{Identity, split_api_version};
use emco_engine::shard::Row;
use emco_engine::text::counted;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Asked;
use crate::cli::args::objects::ObjectArgs;
use crate::cli::args::status::Verdict;
use crate::cli::pulse::Pulse;
use crate::cli::status::tree::{Group, There};

/// Everything that is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether the operator's reports are the present.
    #[serde(flatten)]
    pub pulse: Pulse,
    namespace: String,
    name: String,
    state: String,
    /// True, False or Unknown.
    ready: String,
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    /// How many objects are shown.
    pub counts: ObjectCounts,
    /// Its apps by name.
    pub apps: Vec<AppObjects>,
}

/// Objects, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// Those that are shown.
    pub shown: usize,
    /// All of the apps and clusters that are asked about.
    pub of: usize,
    /// Those of the shown ones that are ready.
    pub ready: usize,
    /// The others of them.
    pub not_ready: usize,
}

/// One app.
#[derive(Serialize)]
pub struct AppObjects {
    /// Its name; empty for what no app has any more.
    pub name: String,
    /// Where it is or is to be.
    pub clusters: Vec<ClusterObjects>,
}

/// One app on one cluster.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterObjects {
    /// `provider/cluster`
    pub cluster: String,
    /// How the app is there, as the operator reports it.
    pub verdict: Verdict,
    /// The revision whose manifests these are; absent where everything is to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Who says how the objects are.
    pub seen: Seen,
    /// Why the cluster cannot be asked, or the manifests not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many objects there are, shown or not.
    pub total: usize,
    /// In the order of applying.
    pub objects: Vec<Object>,
}

/// Who says how the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    /// The operator, which watches them.
    Operator,
    /// The cluster, just now.
    Cluster,
    /// Neither can.
    Nobody,
}

/// How an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectState {
    /// It does what it is for.
    Ready,
    /// Not yet.
    Progressing,
    /// Not, and by itself hardly ever; or its manifest was refused.
    Failed,
    /// It is not there.
    Missing,
    /// An object of this name is not of this deployment.
    NotOurs,
    /// It is there and no manifest has it any more.
    Removing,
    /// The cluster cannot be asked.
    Unknown,
}

impl ObjectState {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::Missing => "Missing",
            Self::NotOurs => "NotOurs",
            Self::Removing => "Removing",
            Self::Unknown => "Unknown",
        }
    }
}

/// One object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// As its manifest says.
    pub api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// How it is.
    pub state: ObjectState,
    /// What it says of itself, or what is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it stays when the deployment is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// When the cluster made it, where the cluster was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
    /// All that the cluster says where it refuses the object, if it was asked.
    #[serde(skip)]
    pub refusal: Option<String>,
    #[serde(skip, default = "unnamed")]
    id: Identity,
}

/// Until it is put back.
const fn unnamed() -> Identity {
    Identity { group: String::new(), kind: String::new(), namespace: String::new(), name: String::new() }
}

impl Answer {
    pub(super) fn of(pulse: Pulse, group: &Group, counts: ObjectCounts, apps: Vec<AppObjects>) -> Self {
        let Group { namespace, name, state, ready, reason, message, revision, .. } = group.clone();
        Self { pulse, namespace, name, state, ready, reason, message, revision, counts, apps }
    }

    /// True where every object that is shown is ready.
    pub fn is_as_wanted(&self) -> bool {
        let fine = |one: &ClusterObjects| {
            one.error.is_none()
                && one.revision.is_some()
                && one.objects.iter().all(|object| object.state == ObjectState::Ready)
        };
        self.apps.iter().flat_map(|app| &app.clusters).all(fine)
    }
}

impl ObjectCounts {
    /// Counts what is shown of all.
    pub(super) fn of(apps: &[AppObjects], of: usize) -> Self {
        let objects = || apps.iter().flat_map(|app| &app.clusters).flat_map(|one| &one.objects);
        let shown = objects().count();
        let ready = objects().filter(|object| object.state == ObjectState::Ready).count();
        Self { shown, of, ready, not_ready: shown - ready }
    }

    /// In a line; `None` where everything is shown.
    pub fn text(&self) -> Option<String> {
        (self.shown != self.of).then(|| format!("shown: {} of {}", self.shown, counted(self.of, "object")))
    }
}

impl ClusterObjects {
    pub(super) fn of(there: &There, row: &Row) -> Self {
        Self {
            cluster: there.cluster.clone(),
            verdict: there.verdict,
            revision: row.target.as_ref().map(|target| target.revision),
            seen: Seen::Nobody,
            error: None,
            total: 0,
            objects: Vec::new(),
        }
    }

    /// Puts back what is not handed on.
    pub(super) fn read_back(&mut self) {
        for object in &mut self.objects {
            object.id = Identity {
                group: split_api_version(&object.api_version).0.to_owned(),
                kind: object.kind.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
            };
        }
    }
}

impl Object {
    pub(super) fn of(asked: &Asked, state: ObjectState, message: String) -> Self {
        let id = asked.manifest.identity();
        Self {
            api_version: asked.manifest.json["apiVersion"].as_str().unwrap_or_default().to_owned(),
            kind: id.kind.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            state,
            message,
            stays: asked.manifest.keep || asked.manifest.crd_folder,
            made: None,
            refusal: None,
            id,
        }
    }

    /// Group, kind, namespace and name.
    pub(super) const fn identity(&self) -> &Identity {
        &self.id
    }

    /// Whether its kind, its name and how it is are asked for.
    pub(super) fn is_asked_for(&self, wanted: &ObjectArgs) -> bool {
        wanted.takes_identity(&self.id) && wanted.takes_readiness(self.state == ObjectState::Ready)
    }

    /// `apps/Deployment/shop/web`
    pub fn id(&self) -> String {
        self.id.to_string()
    }
}
