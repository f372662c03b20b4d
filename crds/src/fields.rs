//! Field types that several kinds share: cluster terms and references here, values and reports below.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod owner_kind;
pub mod reports;
pub mod values;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, Time};

pub use owner_kind::OwnerKind;
pub use reports::{Failing, InUse, Summary};
pub use values::{DurationText, IntOrText, PercentOrCount, Quantity, RawJson};

use crate::schema;

/// Picks clusters: one by name, some by label, or all of a provider. A list of terms is a union.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.provider) || has(self.cluster) || has(self.selector)",
        "say which clusters: provider, cluster or selector (selector: {} means all)"
    ),
    validation = (
        "!has(self.cluster) || has(self.provider)",
        "cluster needs its provider: {provider: acme, cluster: berlin-1}"
    ),
    validation = ("!(has(self.cluster) && has(self.selector))", "cluster and selector exclude each other")
)]
pub struct ClusterTerm {
    /// Name of a `ClusterProvider`; absent = any the logical cloud has.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Name of one Cluster of that provider.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Labels of Clusters, with the virtual ones emco.io/provider, emco.io/cluster and emco.io/kubernetes-minor; {} = all.
    #[schemars(schema_with = "schema::optional_label_selector")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // without `default` the field would be required
    pub selector: Option<LabelSelector>,
}

/// Reference to an object of the same namespace; the field's name says which kind.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[x_kube(
    validation = schema::OBJECT_NAME
)]
pub struct NameRef {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Reference to one key of a `ConfigMap` or Secret of the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[x_kube(
    validation = schema::OBJECT_NAME,
    validation = schema::DATA_KEY
)]
pub struct KeyRef {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in its data.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Whether an object's text or secret is behind a reference.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SourceKind {
    /// A `ConfigMap`.
    #[default]
    ConfigMap,
    /// A Secret.
    Secret,
}

impl SourceKind {
    /// `ConfigMap` or `Secret`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// Whether Handlebars runs over an entry's text before use. Absent = None.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Templating {
    /// The text is taken as it is.
    #[default]
    None,
    /// Strict Handlebars: an unknown variable is an error.
    Handlebars,
}

/// How much an owner may do on clusters, from least to most.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Its own namespace.
    #[default]
    Standard,
    /// Its own namespace and what `permissions` lists.
    Privileged,
    /// Everything the cluster's registered credentials may do.
    Admin,
}

impl Level {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::Privileged => "Privileged",
            Self::Admin => "Admin",
        }
    }
}
