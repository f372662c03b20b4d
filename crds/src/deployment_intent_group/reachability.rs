//! The proof of who reaches the servers of a deployment.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The proof of the servers that its `TrafficGroupIntents` name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reachability {
    /// Proven: the clients reach their servers, and nobody else does. Assumed: so it is if the assumptions hold. Violated: it is not so.
    pub verdict: ReachabilityVerdict,
    /// Pairs of a client, workload or stranger and a port of a server that were judged, on all clusters.
    pub pairs: i64,
    /// Things that manifests cannot tell, the first five.
    #[schemars(length(max = 5), inner(length(max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// Differences from what the intents say, the first five.
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ReachabilityViolation>,
    /// Number of further ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<i64>,
}

/// A verdict.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReachabilityVerdict {
    /// It is so.
    #[default]
    Proven,
    /// It is so if the assumptions hold.
    Assumed,
    /// It is not so.
    Violated,
}

impl ReachabilityVerdict {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "Proven",
            Self::Assumed => "Assumed",
            Self::Violated => "Violated",
        }
    }
}

/// One difference from what the intents say.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityViolation {
    /// Extra: somebody else reaches the server. Missing: a client does not.
    pub kind: Difference,
    /// The one end of it.
    #[schemars(length(max = 256))]
    pub from: String,
    /// The server.
    #[schemars(length(max = 63))]
    pub to: String,
    /// The port of its pods, or so many that no graph names them all.
    #[schemars(length(max = 64))]
    pub port: String,
    /// The rule that decides, and who makes it.
    #[schemars(length(max = 256))]
    pub by: String,
    /// On how many clusters.
    pub clusters: i64,
    /// One of them.
    #[schemars(length(max = 127))]
    pub example: String,
}

/// Kinds of differences.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Difference {
    /// More than the intents say.
    #[default]
    Extra,
    /// Less.
    Missing,
}
