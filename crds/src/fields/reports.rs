//! What several statuses say: holders, failing clusters, numbers for columns.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// Who holds an object: while somebody does, it is not deleted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InUse {
    /// How many hold it.
    pub total: i64,
    /// The first ten, sorted: `DeploymentIntentGroup/team-a/shop`.
    #[schemars(length(max = 10), inner(length(max = 300)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
}

/// One cluster that is not as wanted, for people.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failing {
    /// `provider/cluster`.
    #[schemars(length(max = 127))]
    pub cluster: String,
    /// The app it is about, if one.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// From the closed set of reasons.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The API server's or our words, at most 256 bytes.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// Numbers as text, for columns: `41/42`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Ready and all clusters, `41/42`.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<String>,
    /// Ready and all resources, `838/840`.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<String>,
    /// Number of apps, `2`.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apps: Option<String>,
    /// Ready and all nodes, `3/3`.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
}
