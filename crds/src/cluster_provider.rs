//! `ClusterProvider`: owner of clusters, and who may use them.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{ClusterTerm, InUse, LabelSelector, Level, Summary};
use crate::schema;

/// Owns clusters and the namespace they live in; says which projects may use which of them, at which level.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "ClusterProvider",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    validation = Rule::new("(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name) == (has(oldSelf.spec.__namespace__) ? oldSelf.spec.__namespace__ : oldSelf.metadata.name)")
        .message("a provider's namespace cannot be changed: its clusters live there")
        .field_path(".spec"),
    validation = Rule::new("(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name) != 'default' && !(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name).startsWith('kube-')")
        .message("a provider cannot own the namespace default or kube-*")
        .field_path(".spec"),
    plural = "clusterproviders",
    shortname = "cprov",
    category = "emco",
    status = "ClusterProviderStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Owner of clusters and of the namespace they live in; its grants say which projects may use which clusters, at which level.",
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
        "!has(self.__namespace__) || self.__namespace__.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "namespace must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "!has(self.reservedNamespaces) || self.reservedNamespaces.all(n, n.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') || n.matches('^[a-z0-9][-a-z0-9]*[*]$'))",
        "reservedNamespaces are names of namespaces, or their beginning with a '*': monitoring, openshift-*"
    )
)]
pub struct ClusterProviderSpec {
    /// Namespace its Clusters live in; default: its own name. Cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Who may use its clusters. No grant = nobody.
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Namespaces of its clusters that no logical cloud gets, whatever a grant says: by name, or by their beginning, as in `openshift-*`. The
    /// operator's own is always one.
    #[schemars(length(max = 100), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_namespaces: Vec<String>,
}

/// Lets projects use clusters.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.projects) != has(self.projectSelector)",
    "a grant needs exactly one of projects, projectSelector (projectSelector: {} means all)"
))]
pub struct Grant {
    /// Name of the grant.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Names of Projects.
    #[schemars(length(max = 500), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// Labels of Projects; {} = all.
    #[schemars(schema_with = "schema::optional_label_selector")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // without `default` the field would be required
    pub project_selector: Option<LabelSelector>,
    /// Highest level a logical cloud may have there; Standard if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_level: Option<Level>,
    /// Which of this provider's clusters; absent = all.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterTerm>>,
}

/// What is true of a provider.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProviderStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The namespace it owns.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ProviderClusters>,
    /// Who holds it: its clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Clusters of a provider, counted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderClusters {
    /// All.
    pub total: i64,
    /// Reachable with valid credentials.
    pub ready: i64,
    /// Cordoned or Drained.
    pub cordoned: i64,
}
