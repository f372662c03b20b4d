//! What the clusters of a shard have.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::Time;
use crate::schema;
use crate::state::State;

/// What the clusters have: ranges of rows that are as wanted, and the other rows.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncShardStatus {
    /// The generation of the spec this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ShardSummary>,
    /// Rows that are as wanted and unremarkable.
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub as_wanted: Vec<AsWanted>,
    /// The other rows.
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<RowStatus>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Numbers as text.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSummary {
    /// Ready and all, `8/9`.
    #[schemars(length(max = 32))]
    #[serde(default)]
    pub clusters: String,
    /// Failed ones.
    #[schemars(length(max = 32))]
    #[serde(default)]
    pub failed: String,
    /// Unreachable ones.
    #[schemars(length(max = 32))]
    #[serde(default)]
    pub unreachable: String,
}

/// Rows that are as wanted, with the same numbers.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AsWanted {
    /// Ranges over row ids: `1-8,11`.
    #[schemars(length(min = 1, max = 32768))]
    pub ids: String,
    /// The combination they have.
    #[schemars(length(max = 32))]
    pub applied: String,
    /// The write of the shard (`spec.writes`) as of which it was completed.
    pub generation: i64,
    /// Ready objects of each.
    pub ready: i64,
    /// All objects of each.
    pub total: i64,
    /// Fields that these clusters do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Fields that these clusters rewrite while they are applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<LeftOut>,
}

/// Fields of manifests, named: those that a cluster's API server does not declare and that were left out, as they are of what
/// Helm installs; or those that its admission rewrote.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOut {
    /// How many.
    pub fields: i64,
    /// The first of them: object and path.
    #[schemars(length(max = 4), inner(length(max = 400)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
}

/// One cluster that is not as wanted, or remarkable.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowStatus {
    /// Number of the row.
    pub id: i64,
    /// `provider/cluster`.
    #[schemars(length(max = 127))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Whether it can be reached.
    #[serde(default)]
    pub connectivity: Connectivity,
    /// State of the owner's objects there.
    #[serde(default)]
    pub state: State,
    /// The combination that a state which says that something failed speaks of; absent = nothing is wanted, or nothing failed.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The last write of the shard (`writes`) that had given the row another target when it failed; absent = nothing failed. A target that
    /// comes back after another one has not failed before it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<i64>,
    /// The last combination completely applied, with everything else pruned; absent = none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
    /// Objects, counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<RowCounts>,
    /// Apps that are not as wanted.
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<RowApp>,
    /// Hooks that ran.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<RowHooks>,
    /// Apps of the target that waited for others, as far as that is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<RowGates>,
    /// All objects of the target.
    #[serde(default)]
    pub total: i64,
    /// How many of them are applied.
    #[serde(default)]
    pub applied_count: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i64,
    /// How many of them cannot be seen now.
    #[serde(default)]
    pub unknown: i64,
    /// Since when it is in this state and can be reached; of a cluster that cannot be reached, since when that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The first error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
    /// The first objects that are not ready, once they have not been for some seconds.
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unready: Vec<RowUnready>,
    /// Since when nothing of what is completely applied became ready although something is not: `progressDeadline` counts from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Time>,
    /// Changes by others since the target was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<RowDrift>,
    /// Fields that the cluster does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Fields that the cluster's admission rewrites while they are applied: how it leaves them counts as wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<LeftOut>,
    /// Objects that were to be removed and stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripped: Option<Stripped>,
    /// Objects of others were taken over here once: one without any mark may be one of them, and is not deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub took_over: bool,
}

/// Objects that were to be removed and stay: others took the owner label off them, or they stay for a reason that is named.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stripped {
    /// How many.
    pub objects: i64,
    /// The first of them: `group/kind/namespace/name`, and the reason in parentheses.
    #[schemars(length(max = 3), inner(length(max = 600)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
}

/// An object that is not ready.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowUnready {
    /// The app.
    #[schemars(length(max = 63))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app: String,
    /// `group/kind/namespace/name`.
    #[schemars(length(max = 600))]
    pub resource: String,
    /// What it says of itself, and its first Pod.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Changes by others on a cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowDrift {
    /// Objects that others deleted, replaced or changed, and that are again as they were applied; counted each time.
    #[serde(default)]
    pub corrected: i64,
    /// Objects that others changed or deleted, and that differ now.
    #[serde(default)]
    pub reported: i64,
    /// The first of those that differ.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<RowDrifted>,
    /// The first of those that are again as they were applied: `group/kind/namespace/name`.
    #[schemars(length(max = 3), inner(length(max = 600)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// When the last change was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
}

/// An object that differs from what was applied.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowDrifted {
    /// `group/kind/namespace/name`.
    #[schemars(length(max = 600))]
    pub resource: String,
    /// Managers that may have done it.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Hash of the fields that our own apply left us with: it differs until they are back.
    #[schemars(length(max = 64))]
    pub fields: String,
}

/// Whether a cluster can be reached.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Connectivity {
    /// Not known yet.
    #[default]
    Unknown,
    /// The last probe was answered.
    Reachable,
    /// The last probe was not answered.
    Unreachable,
}

/// What was completely applied.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Name of the combination; absent = nothing of this owner is left.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combination: Option<String>,
    /// The write of the shard (`spec.writes`) that was worked off.
    pub generation: i64,
}

/// Objects of one cluster, counted.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowCounts {
    /// Applied.
    #[serde(default)]
    pub applied: i64,
    /// Refused or failed.
    #[serde(default)]
    pub failed: i64,
    /// Not sent yet.
    #[serde(default)]
    pub pending: i64,
    /// Deleted.
    #[serde(default)]
    pub deleted: i64,
    /// Ready.
    #[serde(default)]
    pub ready: i64,
    /// There, not ready.
    #[serde(default)]
    pub not_ready: i64,
    /// Not there.
    #[serde(default)]
    pub not_present: i64,
    /// Cannot be seen now.
    #[serde(default)]
    pub unknown: i64,
}

/// One app on one cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowApp {
    /// Name of the app.
    #[schemars(length(max = 63))]
    pub app: String,
    /// What it waits for, of an app that depends on others, unless the error of the row says it.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Its state.
    #[serde(default)]
    pub state: State,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Ready objects.
    #[serde(default)]
    pub ready: i64,
    /// All objects.
    #[serde(default)]
    pub total: i64,
}

/// Hooks of a set that ran on a cluster: they do not run again after a restart.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowHooks {
    /// The set; `upgrade` or `installed` for what was found on a cluster after its record was lost.
    #[schemars(length(max = 64))]
    pub set: String,
    /// Digests of the hook manifests that finished. Of `upgrade` the apps that an earlier revision is there of, of `installed` the sets
    /// that are there.
    #[schemars(length(max = 256), inner(length(max = 128)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
}

/// What is decided of the dependencies of a target, until the row is complete.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowGates {
    /// The combination that delays are said of.
    #[schemars(length(min = 1, max = 32))]
    pub combination: String,
    /// Apps whose dependencies were all met, and that wait no more.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenGate>,
    /// Dependencies that are met and whose delay runs.
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<MetDependency>,
}

/// An app that waits no more.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenGate {
    /// Its name.
    #[schemars(length(max = 63))]
    pub app: String,
    /// The manifest set that may come. With another one the app waits again.
    #[schemars(length(max = 32))]
    pub set: String,
}

/// A dependency whose delay runs.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetDependency {
    /// The app that waits.
    #[schemars(length(max = 63))]
    pub app: String,
    /// The app that it waits for.
    #[schemars(length(max = 63))]
    pub depends_on: String,
    /// When the delay began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// What went wrong on a cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// The app.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// `group/kind/namespace/name`.
    #[schemars(length(max = 600))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// From the closed set of reasons.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The API server's words, at most 256 bytes.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: i64,
}
