//! What became of a `DeploymentIntentGroup`. Its size has a ceiling that does not depend on the number of clusters.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reachability::Reachability;
use super::rollout::RolloutStatus;
use crate::conditions::Condition;
use crate::fields::{Failing, Summary, Time};
use crate::schema;
use crate::state::State;

/// What became of it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentIntentGroupStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State on the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Release name in effect.
    #[schemars(length(max = 53))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The running revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// `AppContext` of the running revision.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_context: Option<String>,
    /// Digest of the running revision.
    #[schemars(length(max = 71))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What approved the running revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// A plan that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// How far the running revision is with its waves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Clusters, counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<DeploymentClusters>,
    /// Objects, counted by what was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<DeployedCounts>,
    /// Objects, counted by what they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyCounts>,
    /// By app: those of the composite application, then generated apps in the order of their intents.
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppStatus>,
    /// Chosen clusters that have nothing yet, because nothing is known of them: the first 64. They count while a change is refused.
    #[schemars(length(max = 64), inner(length(max = 127)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<String>,
    /// Clusters that are not as wanted, oldest first, at most ten.
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<Failing>,
    /// What each listed intent does in the running revision; absent where a part of it was stored by a version that did not keep that.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<IntentStatus>,
    /// The proof of who reaches its servers, while it lists a `TrafficGroupIntent`: of the newest plan that was not refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachability: Option<Reachability>,
    /// Changes by others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftCounts>,
    /// Objects that were to be removed and stay on clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<NotRemoved>,
    /// Revisions, newest first.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Echo of the annotation emco.io/requestedAt.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Objects that were to be removed and stay: others took the label emco.io/owner off them and have them now, or they stay for the reason
/// in parentheses, such as helm.sh/resource-policy: keep.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRemoved {
    /// The generation of their owner under which they were to be removed.
    pub generation: i64,
    /// The first ten of them, each with its cluster.
    #[schemars(length(max = 10), inner(length(max = 730)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
}

/// What approved a revision.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    /// Inputs, Plan or Nothing.
    #[schemars(length(max = 32))]
    pub required: String,
    /// Name of the `DeploymentApproval`.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// A plan that waits.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// Approve exactly this.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// Its first twelve digits.
    #[schemars(length(max = 12))]
    pub short_digest: String,
    /// The revision it would become; 0 where the deployment is deleted and everything would be removed.
    pub revision: i64,
    /// What it waits for.
    pub requires: PendingRequires,
    /// What would change, in one sentence.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Clusters that get, keep with changes, and lose apps; one counts for each of its apps.
    #[serde(default)]
    pub clusters: ChangeCounts,
    /// Objects on all clusters.
    #[serde(default)]
    pub resources: ChangeCounts,
    /// Rights that the account of the logical cloud gains by it, where a permission is derived: those to Secrets, roles, accounts, Pods,
    /// webhooks and nodes, and the first others.
    #[schemars(length(max = 11), inner(length(max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<String>,
    /// What would change, by app.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<PendingApp>,
    /// Why each cluster was chosen or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// Where each object that would change is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<PendingDetails>,
}

/// Where all of a plan that waits is written down, as `kubectl emco plan` prints it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingDetails {
    /// `ConfigMap` of the same namespace.
    #[schemars(length(max = 253))]
    pub config_map: String,
    /// Digest of its content: another one is of a plan before.
    #[schemars(length(max = 71))]
    pub digest: String,
}

/// What a plan waits for.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingRequires {
    /// An approval.
    #[default]
    Approval,
    /// An approval of exactly this plan: it removes much.
    RemovalConfirmation,
    /// The annotation emco.io/confirm with the digest: the deployment is deleted, and everything of it would be removed.
    DeletionConfirmation,
    /// Nothing: the deployment is suspended, pinned to another revision, or only planned.
    Nothing,
}

/// What would change for one app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApp {
    /// Name of the app.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Clusters that get it, keep it with changes, and lose it.
    pub clusters: ChangeCounts,
    /// Objects on all of its clusters.
    pub resources: ChangeCounts,
    /// The first objects that are changed, added or removed.
    #[schemars(length(max = 5), inner(length(max = 400)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    /// The first clusters that get the app.
    #[schemars(length(max = 3), inner(length(max = 127)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<String>,
    /// The first clusters that lose the app.
    #[schemars(length(max = 3), inner(length(max = 127)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The first hooks that would run, each with its event.
    #[schemars(length(max = 5), inner(length(max = 400)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// What clusters would refuse, the first three: cluster, object, reason and the words of its API server. They are asked where
    /// spec.desiredState is Planned.
    #[schemars(length(max = 3), inner(length(max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What clusters cannot change because a field is immutable, and spec.sync.immutableFields: Recreate would delete and make again: the
    /// first three with cluster, object and what is lost, and how many more. They are asked where spec.desiredState is Planned; elsewhere it is
    /// what the manifests alone tell, of kinds of Kubernetes.
    #[schemars(length(max = 4), inner(length(max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recreated: Vec<String>,
}

/// Changes, counted.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    /// New ones.
    pub added: i64,
    /// Changed ones.
    pub changed: i64,
    /// Removed ones.
    pub removed: i64,
}

/// Where explanations are.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explain {
    /// `ConfigMaps` of the same namespace.
    #[schemars(length(max = 64), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<String>,
}

/// Clusters of a deployment, counted. Each counts once.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentClusters {
    /// All.
    pub total: i64,
    /// Ready with the running revision.
    pub ready: i64,
    /// On their way.
    pub progressing: i64,
    /// Failed.
    pub failed: i64,
    /// Unreachable.
    pub unreachable: i64,
    /// Given up.
    pub abandoned: i64,
}

/// Objects by what was done.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployedCounts {
    /// Applied.
    pub applied: i64,
    /// Refused or failed.
    pub failed: i64,
    /// Not sent yet.
    pub pending: i64,
    /// Deleted.
    pub deleted: i64,
}

/// Objects by what they are.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCounts {
    /// Ready.
    pub ready: i64,
    /// There, not ready.
    pub not_ready: i64,
    /// Not there.
    pub not_present: i64,
    /// On clusters that cannot be seen.
    pub unknown: i64,
}

/// One app of a deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStatus {
    /// Name of the app.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// On how many clusters it shall be.
    pub clusters: i64,
    /// On how many it is ready.
    pub ready: i64,
    /// At most three of its clusters.
    #[schemars(length(max = 3), inner(length(max = 127)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<String>,
    /// Clusters that were not chosen when it was last planned, by reason, at most four.
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedStatus>,
    /// Values that were set for the app and that its chart neither reads nor knows, at most sixteen: most often misspelt names.
    #[schemars(length(max = 16), inner(length(max = 160)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_values: Vec<String>,
}

/// What one intent does.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentStatus {
    /// Kind of the intent.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Name of the intent.
    #[schemars(length(max = 253))]
    pub name: String,
    /// On how many clusters it adds, changes or leaves out something.
    pub clusters: i64,
    /// How many objects, on all of them together.
    pub objects: i64,
}

/// Clusters that were not chosen for one reason.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedStatus {
    /// The reason.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// How many.
    pub clusters: i64,
    /// One of them.
    #[schemars(length(max = 127))]
    pub example: String,
    /// The smallest change that would admit it.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub needs: String,
}

/// Changes by others.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriftCounts {
    /// How many were seen and undone.
    #[serde(default)]
    pub corrected: i64,
    /// How many objects differ now and are only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<i64>,
    /// When the last one was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
}

/// One revision.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its number.
    pub revision: i64,
    /// Its digest.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// Why it was made.
    pub cause: Cause,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// Why a revision was made.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It is the first.
    #[default]
    Create,
    /// Something people wrote changed.
    Update,
    /// The group names another composite application.
    Migrate,
    /// An earlier one was pinned.
    Rollback,
    /// Only the clusters changed.
    Placement,
}

impl Cause {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Migrate => "Migrate",
            Self::Rollback => "Rollback",
            Self::Placement => "Placement",
        }
    }
}
