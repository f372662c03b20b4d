//! What is true of a `LogicalCloud`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::deployment_intent_group::status::NotRemoved;
use crate::fields::{Failing, InUse, Summary, Time};
use crate::schema;
use crate::state::State;

/// What is true of a logical cloud.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogicalCloudStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State on the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Namespace on the clusters.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What the clusters see.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The running revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Plan digest of the running revision.
    #[schemars(length(max = 71))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// `AppContext` of the running revision.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_context: Option<String>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<CloudClusters>,
    /// Clusters that are not as wanted, oldest first, at most ten.
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<Failing>,
    /// Namespaces that were to be removed and stay on clusters, for what they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<NotRemoved>,
    /// Where the kubeconfigs of `spec.user` are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfigs: Option<Kubeconfigs>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Clusters of a logical cloud, counted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudClusters {
    /// All it has.
    pub total: i64,
    /// Ready ones.
    pub ready: i64,
    /// Failed ones.
    pub failed: i64,
    /// Unreachable ones.
    pub unreachable: i64,
    /// Named, but not granted.
    pub not_granted: i64,
}

/// Where the kubeconfigs of a person are.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubeconfigs {
    /// The Secret of this name has one kubeconfig of up to 200 clusters. Those whose names go on with a slot have one for each cluster, under
    /// the key `PROVIDER.CLUSTER`.
    #[schemars(length(max = 253))]
    pub secret_prefix: String,
    /// When the first of them is renewed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_at: Option<Time>,
}
