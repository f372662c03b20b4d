//! Waves of a rollout, and how far it is.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{ClusterTerm, DurationText, PercentOrCount, Time};

/// How a new revision reaches the clusters (experimental).
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// In this order; what matches no wave comes last.
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Wave>,
    /// How many clusters at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<PercentOrCount>,
    /// How many failed clusters are borne.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<PercentOrCount>,
    /// What happens beyond that; Pause if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

/// A group of clusters that goes together.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = ("has(self.clusters) != has(self.size)", "a wave needs exactly one of clusters, size"),
    validation = ("self.name != 'the rest'", "the rest is the name of the last wave, of clusters that match none: name this one otherwise")
)]
pub struct Wave {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Which clusters.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterTerm>>,
    /// Or how many of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<PercentOrCount>,
    /// How long to watch it before the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<DurationText>,
    /// Whether it waits for an approval; None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<WaveApproval>,
}

/// When a wave waits for an approval.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaveApproval {
    /// Never.
    #[default]
    None,
    /// Before it begins.
    Before,
    /// Before the next one begins.
    After,
}

/// What happens when too many clusters failed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// The rollout waits for a person.
    #[default]
    Pause,
    /// The last good revision comes back.
    Rollback,
    /// It goes on.
    Continue,
}

/// How far a revision is with its waves.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Its inputs digest: a revision of the same inputs goes on where the one before was.
    #[schemars(length(max = 71))]
    pub inputs_digest: String,
    /// The wave that is under way.
    #[schemars(length(max = 63))]
    pub wave: String,
    /// Its place, from 1; one more than there are when all are done.
    pub place: i64,
    /// How many waves there are, with that of all other clusters.
    pub waves: i64,
    /// Clusters of the wave.
    pub clusters: i64,
    /// How many of them are done.
    pub done: i64,
    /// Clusters of all waves that failed.
    pub failed: i64,
    /// When the wave was done; it is watched from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Time>,
    /// Too many clusters failed, and the revision was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_back: bool,
    /// Clusters that the revision did not change take part as well: they had something else meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
    /// What it waits for.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waits_for: String,
}
