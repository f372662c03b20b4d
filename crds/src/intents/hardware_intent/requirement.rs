//! One need of a container: an amount of a resource of a node, or labels.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Quantity;
use crate::schema;

/// One thing that a container needs of a node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "a requirement's name must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "has(self.resource) != has(self.nodeSelector)",
        "a requirement needs exactly one of resource, nodeSelector"
    ),
    validation = (
        "!has(self.weight) || (has(self.importance) && self.importance == 'Preferred')",
        "weight goes with importance: Preferred"
    )
)]
pub struct Requirement {
    /// Name of the requirement within the consumer, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// An amount of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceRequirement>,
    /// Labels of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// Required (if absent): there is no place without it. Preferred: clusters that have it come first, and no manifest asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<Importance>,
    /// Weight of what is preferred; 1 if absent.
    #[schemars(range(min = 1, max = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// An amount of a resource of nodes.
// quantity() reads texts alone, and only a text equals its string(); a whole number is added to 0. The API server knows the length of the
// field, and so what each rule costs.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "self.name in ['cpu', 'memory', 'ephemeral-storage'] || self.name.startsWith('hugepages-') || self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
        "name must be a resource that containers ask for: cpu, memory, ephemeral-storage, hugepages-SIZE, or DOMAIN/NAME such as nvidia.com/gpu"
    ),
    validation = (
        "(self.request == string(self.request) ? quantity(self.request) : quantity('0').add(self.request)).isGreaterThan(quantity('0'))",
        "request must be more than 0"
    ),
    validation = (
        "!has(self.limit) || !(self.limit == string(self.limit) ? quantity(self.limit) : quantity('0').add(self.limit)).isLessThan(self.request == string(self.request) ? quantity(self.request) : quantity('0').add(self.request))",
        "limit is smaller than request"
    ),
    validation = (
        "!has(self.limit) || !(self.name.startsWith('hugepages-') || self.name.contains('/')) || !(self.limit == string(self.limit) ? quantity(self.limit) : quantity('0').add(self.limit)).isGreaterThan(self.request == string(self.request) ? quantity(self.request) : quantity('0').add(self.request))",
        "huge pages and resources of devices have one amount: leave limit out, or set it to request"
    )
)]
pub struct ResourceRequirement {
    /// Name of the resource, such as cpu or nvidia.com/gpu.
    #[schemars(length(min = 1, max = 317))]
    pub name: String,
    /// The amount that the container requests.
    pub request: Quantity,
    /// The most that it may use; absent = it is not set, but of huge pages and resources of devices it is the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Quantity>,
}

/// Labels of nodes.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// A node has all of these labels.
    #[schemars(schema_with = "schema::match_labels")]
    pub match_labels: BTreeMap<String, String>,
}

/// The importance of a requirement.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Importance {
    /// There is no place without it.
    #[default]
    Required,
    /// Clusters that have it come first.
    Preferred,
}
