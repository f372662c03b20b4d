//! Where apps go: one rule for all, and exceptions per app.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::ClusterTerm;

/// One rule for all apps and exceptions by app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.allOf) || has(self.anyOf) || has(self.apps)",
        "placement needs allOf, anyOf or apps"
    )
)]
pub struct Placement {
    /// Every cluster that matches.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<ClusterTerm>,
    /// Groups of candidates; each gives some.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<AnyOf>,
    /// Whether labels and new clusters are followed; Follow if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// What makes a candidate better (experimental).
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Weight>,
    /// Exceptions; each replaces the rule as a whole for its app.
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["app"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppRule>,
}

/// The rule of one app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.allOf) || has(self.anyOf)", "the placement of an app needs allOf or anyOf")
)]
pub struct AppRule {
    /// Name of the app.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// Every cluster that matches.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<ClusterTerm>,
    /// Groups of candidates; each gives some.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<AnyOf>,
    /// Whether labels and new clusters are followed; Follow if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// What makes a candidate better (experimental).
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Weight>,
}

/// Some of many.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!has(self.min) || self.min <= (has(self.count) ? self.count : 1)",
        "min cannot be larger than count (1 if absent)"
    )
)]
pub struct AnyOf {
    /// How many; 1 if absent.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
    /// With how few the plan is still carried out; count if absent.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i32>,
    /// Of which.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub from: Vec<ClusterTerm>,
}

impl AnyOf {
    /// How many, with its default.
    pub fn count(&self) -> i32 {
        self.count.unwrap_or(1)
    }

    /// How few will do, with its default.
    pub fn min(&self) -> i32 {
        self.min.unwrap_or_else(|| self.count())
    }
}

/// Whether the set of clusters changes by itself.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Membership {
    /// It follows labels and new clusters.
    #[default]
    Follow,
    /// It changes only with the spec.
    Frozen,
}

/// How much a score counts.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Name of the score.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How much.
    #[schemars(range(min = 0, max = 100))]
    pub weight: i32,
}
