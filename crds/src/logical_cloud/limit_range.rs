//! `spec.limitRanges` of a `LogicalCloud`, in the words of a `LimitRange`.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Quantity;
use crate::schema;

/// One `LimitRange`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "the name of a limit range must be a DNS label: lower-case letters, digits and '-'"
    )
)]
pub struct LimitRange {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What holds for each type.
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub limits: Vec<Limit>,
}

/// Defaults and bounds of one object of a type.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.type == 'Container' || (!has(self.default) && !has(self.defaultRequest))",
        "only containers have defaults: remove default and defaultRequest, or use type Container"
    ),
    validation = (
        "self.type != 'PersistentVolumeClaim' || (has(self.max) && 'storage' in self.max) || (has(self.min) && 'storage' in self.min)",
        "a limit of type PersistentVolumeClaim needs storage in max or in min"
    )
)]
pub struct Limit {
    /// Of what.
    #[serde(rename = "type")]
    pub kind: LimitType,
    /// Limits of a container that names none.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default: BTreeMap<String, Quantity>,
    /// Requests of a container that names none.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_request: BTreeMap<String, Quantity>,
    /// The most.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max: BTreeMap<String, Quantity>,
    /// The least.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub min: BTreeMap<String, Quantity>,
    /// How many times its request a limit may be.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_limit_request_ratio: BTreeMap<String, Quantity>,
}

/// What a limit is of.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitType {
    /// Each container of a pod.
    #[default]
    Container,
    /// All containers of a pod together.
    Pod,
    /// Each claim.
    PersistentVolumeClaim,
}
