//! `LogicalCloud`: which clusters a project uses, in which namespace, with which rights.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{ClusterTerm, DurationText, Level, Quantity};
use crate::schema;

pub mod limit_range;
pub mod status;

pub use limit_range::{Limit, LimitRange, LimitType};
pub use status::{CloudClusters, Kubeconfigs, LogicalCloudStatus};

/// Clusters, a namespace on them, and rights in it.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "LogicalCloud",
    validation = Rule::new("size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 40 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "logicalclouds",
    shortname = "lc",
    category = "emco",
    namespaced,
    status = "LogicalCloudStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The clusters a project uses, its namespace on them and its rights there.",
    printcolumn(name = "Level", type_ = "string", json_path = ".spec.level"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespace"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.summary.clusters"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.level == oldSelf.level",
        "level cannot be changed: make a new logical cloud and move the deployments"
    ),
    validation = (
        "(has(self.__namespace__) ? self.__namespace__ : '') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : '')",
        "namespace cannot be changed: workloads live there; make a new logical cloud and move the deployments"
    ),
    validation = (
        "self.level != 'Admin' || (!has(self.user) && !has(self.permissions) && !has(self.quotas) && !has(self.limitRanges))",
        "an Admin logical cloud acts with the cluster's registered credentials: remove user, permissions, quotas and limitRanges, or use level Standard or Privileged"
    ),
    validation = (
        "self.level != 'Standard' || !has(self.permissions) || self.permissions.all(p, !has(p.scope) && !has(p.namespaces))",
        "permissions of a Standard logical cloud apply to its own namespace: remove namespaces and scope, or use level Privileged"
    ),
    validation = (
        "!has(self.__namespace__) || !(self.__namespace__.startsWith('kube-') || (self.__namespace__ == 'default' && self.level != 'Admin'))",
        "a logical cloud cannot claim the namespace default or kube-* on the clusters"
    ),
    validation = (
        "!has(self.__namespace__) || self.__namespace__.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "namespace must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "!has(self.credentials) || has(self.user)",
        "credentials are those of a person: say whose they are in user, or remove credentials"
    ),
    validation = (
        "!has(self.user) || !has(self.user.groups) || size(self.user.groups) == 0 || !has(self.credentials) || !has(self.credentials.type) || self.credentials.type != 'ServiceAccountToken'",
        "a token names no groups: remove user.groups, or use credentials of type ClientCertificate"
    )
)]
pub struct LogicalCloudSpec {
    /// How much may be done on the clusters. Cannot be changed.
    #[serde(default)]
    pub level: Level,
    /// Namespace on the clusters; default: the project's namespace. Cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Which clusters; absent = every cluster granted to the project.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterTerm>>,
    /// Whether clusters are prepared at once, or each while a deployment is placed there.
    #[serde(default)]
    pub provision: Provision,
    /// `ResourceQuotas` of the namespace on each cluster.
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<Quota>,
    /// `LimitRanges` of the namespace on each cluster: defaults and bounds of single containers, pods and volume claims.
    #[schemars(
        length(max = 4),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limit_ranges: Vec<LimitRange>,
    /// Pod security standard of the namespace: pods beyond it are refused on the clusters, and who makes them is warned. Absent = left
    /// alone. The namespace must be the logical cloud's own: one that exists on a cluster is not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,
    /// Whether pods of other namespaces may connect. `DefaultDeny` puts a `NetworkPolicy` `emco-isolation` into the namespace, which must be the
    /// logical cloud's own; it has effect where the cluster's network enforces policies. Closed is the same without those of the namespace:
    /// nobody connects but by another policy, such as those of a `TrafficGroupIntent`.
    #[serde(default)]
    pub isolation: Isolation,
    /// A person or team with the rights of `permissions` and credentials of its own. Kubeconfigs are in Secrets beside the logical cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<CloudUser>,
    /// Rights of the account that deployments are applied as; default: `ClusterRole` admin in the namespace.
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// What the credentials of `user` are. Absent: those of type Auto, for 24h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CloudCredentials>,
}

impl LogicalCloud {
    /// Its namespace on clusters.
    pub fn cluster_namespace(&self) -> &str {
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        self.spec.namespace.as_deref().unwrap_or(own)
    }
}

/// When clusters are prepared.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Provision {
    /// At once.
    #[default]
    Eager,
    /// Where and while something is placed.
    OnDemand,
}

/// Pod security standards.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodSecurity {
    /// No restriction.
    Privileged,
    /// Known escalations are refused.
    Baseline,
    /// Hardened pods only.
    Restricted,
}

/// Network isolation of the namespace.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// None.
    #[default]
    None,
    /// Connections from other namespaces are denied, unless another policy allows them.
    DefaultDeny,
    /// All connections are denied, unless another policy allows them.
    Closed,
}

/// One `ResourceQuota`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "the name of a quota must be a DNS label: lower-case letters, digits and '-'"
    )
)]
pub struct Quota {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Limits by resource.
    #[schemars(schema_with = "schema::quantities")]
    pub hard: BTreeMap<String, Quantity>,
}

/// A person, or a team.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!self.name.startsWith('system:') && (!has(self.groups) || self.groups.all(g, !g.startsWith('system:')))",
        "user and group names may not start with system:"
    ),
    validation = (
        "self.name.matches('^[A-Za-z0-9]([-A-Za-z0-9._@+:]*[A-Za-z0-9])?$') && (!has(self.groups) || self.groups.all(g, g.matches('^[A-Za-z0-9]([-A-Za-z0-9._@+:]*[A-Za-z0-9])?$')))",
        "user and group names are made of letters, digits and - . _ @ + : between them"
    )
)]
pub struct CloudUser {
    /// Last part of the user name that clusters see; the whole is `emco:PROJECT:LOGICALCLOUD:NAME`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Groups that client certificates name, each as `emco:PROJECT:LOGICALCLOUD:GROUP`. Tokens name none.
    #[schemars(length(max = 8), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// A right on the clusters.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(has(self.clusterRole) ? 1 : 0) + (has(self.rules) ? 1 : 0) + (has(self.derived) && self.derived ? 1 : 0) == 1",
        "a permission needs exactly one of clusterRole, rules, derived"
    ),
    validation = (
        "!has(self.scope) || self.scope != 'Cluster' || !has(self.namespaces)",
        "a permission with scope Cluster holds in every namespace: remove namespaces, or scope"
    ),
    validation = (
        "!has(self.namespaces) || self.namespaces.all(n, n.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
        "namespaces of a permission must be DNS labels: lower-case letters, digits and '-'"
    )
)]
pub struct Permission {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A `ClusterRole` of the clusters.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_role: Option<String>,
    /// Or rules.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<PolicyRule>>,
    /// Or, if true, just what the deployments of the logical cloud have on each cluster: it grows before an update is applied, and becomes
    /// less when the objects of the old revision are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// Namespace if absent. `Cluster`, at level Privileged: in all namespaces, and for objects of the whole cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<PermissionScope>,
    /// More namespaces where it holds, at level Privileged. They have to be there.
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// Where a permission holds.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermissionScope {
    /// In namespaces.
    #[default]
    Namespace,
    /// On the whole cluster.
    Cluster,
}

/// A rule as in a Role.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// API groups; "" is the core group.
    #[schemars(
        length(min = 1, max = 32), inner(length(max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub api_groups: Vec<String>,
    /// Resources.
    #[schemars(
        length(min = 1, max = 64), inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub resources: Vec<String>,
    /// Verbs.
    #[schemars(
        length(min = 1, max = 16), inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub verbs: Vec<String>,
    /// Only these objects.
    #[schemars(
        length(max = 64), inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// What people's credentials are.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!has(self.duration) || duration(self.duration) >= duration('10m')",
        "duration must be at least 10m: clusters issue no shorter credentials"
    )
)]
pub struct CloudCredentials {
    /// Their kind; Auto if absent.
    #[serde(default, rename = "type")]
    pub type_: CredentialType,
    /// How long they are asked for; 24h if absent, at least 10m. They are renewed before, and a cluster may issue shorter ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}

/// Kinds of credentials.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CredentialType {
    /// A client certificate where the cluster signs one, else a token.
    #[default]
    Auto,
    /// A client certificate: the key is made on the hub, and the cluster signs it.
    ClientCertificate,
    /// A token of a service account that the logical cloud has on each cluster.
    ServiceAccountToken,
}
