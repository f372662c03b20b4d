//! `AppContext`: one revision of one owner, written once by the operator.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composite_app::{ChartPin, Dependency};
use crate::conditions::Condition;
use crate::deployment_intent_group::status::{Cause, ChangeCounts, Explain};
use crate::fields::{Level, OwnerKind};
use crate::names::annotation;
use crate::schema;
use crate::state::State;

/// The format of what is stored now. Readers take it and the one before, and refuse later ones.
pub const FORMAT: i32 = 1;

/// One revision: apps, variants, which packs hold them. Cannot be edited.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "AppContext",
    plural = "appcontexts",
    shortname = "actx",
    category = "emco-generated",
    namespaced,
    status = "AppContextStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Generated: one revision of what a deployment intent group or logical cloud puts on clusters.",
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner.name"),
    printcolumn(name = "Rev", type_ = "integer", json_path = ".spec.revision"),
    printcolumn(name = "Cause", type_ = "string", json_path = ".spec.cause"),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.outcome"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Deleted", type_ = "date", json_path = ".metadata.deletionTimestamp"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("self == oldSelf", "an AppContext cannot be edited: the operator makes a new revision")
)]
pub struct AppContextSpec {
    /// Format of the spec and the packs.
    #[schemars(range(min = 1))]
    pub format: i32,
    /// Whose revision.
    pub owner: OwnerRef,
    /// Its number.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// The plan digest.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// The inputs digest.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs_digest: Option<String>,
    /// The revision before.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<i64>,
    /// Why it was made.
    pub cause: Cause,
    /// Release name, for hooks at removal; absent for logical clouds.
    #[schemars(length(max = 53))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Namespace on the clusters.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// With which rights it was applied, and is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The logical cloud it runs in.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_cloud: Option<String>,
    /// The composite application it was made of.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composite_app: Option<String>,
    /// The apps.
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<ContextApp>,
    /// The charts it was made of, as the composite application had them pinned. Their archives stay on the hub with it.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<ChartPin>,
    /// The waves it reaches its clusters in; none = all at once. Which cluster goes with which is in a pack.
    #[schemars(length(max = 17), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<ContextWave>,
    /// Where the manifests are: objects of the operator's namespace.
    #[schemars(length(max = 2048), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packs: Vec<PackRef>,
    /// Which cluster gets which variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<AssignmentRef>,
    /// Verdict and reason for every cluster considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// Counts of what differs from the revision before; absent where that is not known, and for logical clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<RevisionChanges>,
}

impl AppContext {
    /// A rollback may go to it. Of one that an older release stored is known that it was on all its clusters, ready or not.
    pub fn is_good(&self) -> bool {
        let Some(status) = &self.status else { return false };
        let was_complete = matches!(status.outcome, Some(State::Instantiated | State::Updated));
        !self.is_taken_back() && status.good.unwrap_or(was_complete)
    }

    /// Too many clusters failed with it. It is never good, whatever it becomes later.
    pub fn is_taken_back(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(annotation::TAKEN_BACK))
    }
}

/// Whose: an object of the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnerRef {
    /// `DeploymentIntentGroup` or `LogicalCloud`.
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub kind: OwnerKind,
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Its uid when this was written; another one after a restore of the hub.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// One app of a revision.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextApp {
    /// Its name; that of a generated app has a dot: `gai.banner`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Apps that must be there first.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// Its sets, at most sixteen; more are in the packs only.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}

/// One wave of a revision.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextWave {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many clusters go with it.
    pub clusters: i64,
}

/// One manifest set of an app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Keyed digest of the set, hexadecimal.
    #[schemars(length(min = 1, max = 64))]
    pub set: String,
    /// How many objects.
    pub resources: i64,
    /// How many clusters get it.
    pub clusters: i64,
}

/// A pack: an immutable `ConfigMap` or Secret that holds sets.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `ConfigMap` or Secret.
    pub kind: PackKind,
    /// Its length.
    pub bytes: i64,
    /// SHA-256 of its content, hexadecimal.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
}

/// What a pack is stored as.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PackKind {
    /// Manifests of every kind but Secret.
    #[default]
    ConfigMap,
    /// Manifests of kind Secret.
    Secret,
}

impl PackKind {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// Where the assignment is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentRef {
    /// Name of a pack.
    #[schemars(length(min = 1, max = 253))]
    pub pack: String,
}

/// Counts of the changes of a revision.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionChanges {
    /// Clusters that got it, something else, and nothing any more.
    pub clusters: ChangeCounts,
    /// Objects of all these clusters together.
    pub objects: ChangeCounts,
}

/// What is true of a revision.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppContextStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// All packs were acknowledged. For readers and recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<bool>,
    /// Written when it is complete, when it fails before it was good, or when it is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<State>,
    /// It was ready everywhere, or with the failures that its rollout bears: a rollback goes to such a one. Absent where an older
    /// release stored it, whose outcome tells, and for logical clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
