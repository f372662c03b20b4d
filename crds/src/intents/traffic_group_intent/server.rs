//! One server, its ports, and its clients.

use std::borrow::Cow;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::fields::{ClusterTerm, IntOrText, LabelSelector};
use crate::schema;

/// One server: a Service of an app, and who may reach it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "a server's name must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "has(self.clients) && size(self.clients) > 0",
        "a server without clients would be reachable by nobody: name clients, or remove the server"
    )
)]
pub struct Server {
    /// Name of the server within the intent: part of the name of its policy.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Name of the app whose chart makes its Service.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// Name of the Service; {{release}} in it stands for the release name. Absent: the only Service of the app.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Ports of the Service that clients may reach, by number or name; absent = all.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<PortRef>>,
    /// Those who may reach it, and nobody else.
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Client>,
}

/// A number from 1 to 65535, or the name of a port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortRef(pub IntOrText);

impl JsonSchema for PortRef {
    fn schema_name() -> Cow<'static, str> {
        "PortRef".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 1,
            "maximum": 65535,
            "maxLength": 63,
            "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        })
    }
}

impl std::fmt::Display for PortRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// One who may reach a server: an app of the deployment, pods of others, or addresses.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "a client's name must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "[has(self.app), has(self.podSelector), has(self.cidrs)].filter(x, x).size() == 1",
        "a client needs exactly one of app, podSelector, cidrs"
    ),
    validation = ("!has(self.workload) || has(self.app)", "workload needs app: the app that makes it"),
    validation = (
        "!has(self.namespaces) || has(self.podSelector)",
        "namespaces go with podSelector; pods of an app are in the logical cloud's namespace"
    ),
    validation = (
        "!has(self.cidrs) || self.cidrs.all(x, isCIDR(x))",
        "write a CIDR, for example 10.1.0.0/16 or 2001:db8::/48"
    )
)]
pub struct Client {
    /// Name of the client within the server, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Name of an app of the deployment: the pods of its workloads on the cluster of the server. It may be the server's own app.
    #[schemars(length(min = 1, max = 43))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// One workload of the app; absent = all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<ClientWorkload>,
    /// Labels of pods on the cluster of the server that others made; {} = all.
    #[schemars(schema_with = "schema::optional_label_selector")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // without `default` the field would be required
    pub pod_selector: Option<LabelSelector>,
    /// Namespaces of these pods, by name; absent = the namespace of the logical cloud.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Addresses: of other clusters, of load balancers, of people.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 49)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
    /// Clusters of the server on which the client counts; absent = all of them.
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterTerm>>,
}

/// A workload of an app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientWorkload {
    /// Kind, such as Deployment: every kind with a pod template, and Pod.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name; {{release}} in it stands for the release name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
