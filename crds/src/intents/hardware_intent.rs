//! `HardwareIntent`: what containers need of nodes. Clusters are chosen by it, and manifests ask for it.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::InUse;
use crate::schema;

pub mod requirement;

pub use requirement::{Importance, NodeSelector, Requirement, ResourceRequirement};

/// Has apps run where the hardware is, and ask for it.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "HardwareIntent",
    validation = Rule::new("size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 53 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "hardwareintents",
    shortname = "hwi",
    category = "emco",
    namespaced,
    status = "HardwareIntentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Has the apps of the deployments that list it run where the hardware is, and ask for it.",
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
    printcolumn(name = "Uses", type_ = "integer", json_path = ".status.inUse.total"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct HardwareIntentSpec {
    /// Containers that need something of nodes.
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<Consumer>,
}

/// One container that needs something of nodes.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "a consumer's name must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "!self.requirements.exists(r, has(r.resource)) || (has(self.target) && has(self.container))",
        "a resource requirement needs target and container, so that requests can be set on it"
    ),
    validation = (
        "!has(self.replicas) || !has(self.target) || !(self.target.kind in ['DaemonSet', 'Job', 'CronJob', 'Pod'])",
        "replicas goes with kinds that have spec.replicas: a DaemonSet, Job, CronJob or Pod has none"
    )
)]
pub struct Consumer {
    /// Name of the consumer within the intent, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Name of the app that it belongs to.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// The workload whose manifest asks for what is required; absent = clusters are chosen, and no manifest is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Workload>,
    /// Name of the container in it that gets requests and limits.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Replicas on each cluster, each of which needs a node: spec.replicas of the target is set to it. Absent = one is counted, and the
    /// target's are left as they are.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// All that is required has to be there on one node.
    #[schemars(
        length(min = 1, max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub requirements: Vec<Requirement>,
}

/// A workload of an app: of any kind that has Pods of its own, or of a custom kind with spec.template.spec.containers.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// API version of the kind, such as apps/v1; the version does not count, the group does.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Kind, such as Deployment.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name; {{release}} in it stands for the release name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What is true of an intent in itself. Its effect on a deployment is a condition of that deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareIntentStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Deployments that list it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
