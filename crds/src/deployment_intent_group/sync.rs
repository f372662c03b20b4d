//! How clusters are kept as wanted.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::DurationText;

/// How clusters are kept as wanted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sync {
    /// What is done about changes by others.
    #[serde(default)]
    pub drift: DriftPolicy,
    /// What is done about objects of the same name that EMCO did not make: Fail (default) sends nothing, `AdoptIfSame` takes over what
    /// equals the manifest, Adopt what no other manager holds with other values, Force takes over everything. What was taken over is
    /// released when the deployment goes, never deleted. Objects of another deployment are never taken over.
    #[serde(default)]
    pub conflicts: ConflictPolicy,
    /// What is done where a cluster's API server refuses a change because a field cannot be changed: Fail (default), or Recreate,
    /// which deletes the object and makes it again. `PersistentVolumeClaims`, `PersistentVolumes`, Namespaces and
    /// `CustomResourceDefinitions` are never made again.
    #[serde(default)]
    pub immutable_fields: ImmutablePolicy,
    /// When objects that a revision does not have any more are removed: `AfterReady` (default) once everything of the revision is
    /// applied and ready, `AfterApply` once it is applied, `Before` anything of it is applied. A change takes effect at once.
    #[serde(default)]
    pub prune: PrunePolicy,
    /// Fields left alone after the first apply.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
}

/// What is done about changes by others.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftPolicy {
    /// They are undone.
    #[default]
    Correct,
    /// They are reported.
    Report,
}

/// What is done about objects of others.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConflictPolicy {
    /// Nothing is sent; who has the object is named.
    #[default]
    Fail,
    /// An object that equals the manifest is taken over; of another one the fields that differ are named.
    AdoptIfSame,
    /// The object is taken over, unless another manager holds a field with another value.
    Adopt,
    /// The object is taken over, and other managers lose their fields.
    Force,
}

/// What is done where a field cannot be changed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImmutablePolicy {
    /// The object fails with the server's words.
    #[default]
    Fail,
    /// The object is deleted and made again; its Pods restart.
    Recreate,
}

/// When objects that a revision does not have any more are removed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrunePolicy {
    /// Once everything of the revision is applied and ready.
    #[default]
    AfterReady,
    /// Once everything of the revision is applied.
    AfterApply,
    /// Before anything of the revision is applied.
    Before,
}

/// Fields of objects that are left alone after the first apply.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.jsonPointers.all(p, p.startsWith('/'))",
        "a JSON pointer starts with '/', for example /spec/replicas"
    )
)]
pub struct IgnoreRule {
    /// API group; any if absent.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name; any if absent.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON pointers, such as /spec/replicas.
    #[schemars(
        length(min = 1, max = 32), inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub json_pointers: Vec<String>,
}

/// What termination does about a cluster that cannot be reached.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "self.action != 'Abandon' || has(self.after)",
        "unreachable.action Abandon needs after, for example 24h"
    )
)]
pub struct Unreachable {
    /// Wait, or give up.
    #[serde(default)]
    pub action: UnreachableAction,
    /// After how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<DurationText>,
}

/// Wait, or give up.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnreachableAction {
    /// Wait until it returns.
    #[default]
    Wait,
    /// Give up after a while; what is left is noted and cleaned when the cluster returns.
    Abandon,
}
