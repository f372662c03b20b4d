//! `TrafficGroupIntent`: servers of a deployment, and who may reach them.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::InUse;
use crate::schema;

pub mod server;

pub use server::{Client, ClientWorkload, PortRef, Server};

/// Names servers of a deployment and their clients.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "TrafficGroupIntent",
    validation = Rule::new("size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 53 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "trafficgroupintents",
    shortname = "tgi",
    category = "emco",
    namespaced,
    status = "TrafficGroupIntentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Names servers of the deployments that list it, and who may reach them: each cluster that has a server gets a NetworkPolicy that lets in those and nobody else.",
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
pub struct TrafficGroupIntentSpec {
    /// NetworkPolicies that are made: one for each server (Servers, also if absent) or none (None: those of the charts are judged alone).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<MadePolicies>,
    /// Treatment of clusters that state networkPolicy: `NotEnforced`: apps of servers are not placed there, and stay where they run
    /// (Exclude, also if absent), or they are placed there without a policy (Ignore).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<Unsupported>,
    /// Consequence where others than the clients may reach a server, or a client may not: the plan is refused (Fail, also if absent), or
    /// status.reachability of the deployment says so (Report).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_violation: Option<OnViolation>,
    /// The servers.
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub servers: Vec<Server>,
}

/// NetworkPolicies that are made.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MadePolicies {
    /// One for each server.
    #[default]
    Servers,
    /// None.
    None,
}

impl MadePolicies {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Servers => "Servers",
            Self::None => "None",
        }
    }
}

/// Treatment of clusters that enforce no `NetworkPolicy`.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unsupported {
    /// Nothing new is placed there.
    #[default]
    Exclude,
    /// Servers are placed there all the same.
    Ignore,
}

impl Unsupported {
    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exclude => "Exclude",
            Self::Ignore => "Ignore",
        }
    }
}

/// Consequence where the proof finds more, or less, than the clients.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnViolation {
    /// The plan is refused.
    #[default]
    Fail,
    /// It is reported.
    Report,
}

impl TrafficGroupIntentSpec {
    /// Policies that are made, with the default.
    pub fn made(&self) -> MadePolicies {
        self.network_policy.unwrap_or_default()
    }

    /// Treatment of clusters that enforce none, with the default.
    pub fn unsupported(&self) -> Unsupported {
        self.unsupported.unwrap_or_default()
    }

    /// Consequence of a violation, with the default.
    pub fn on_violation(&self) -> OnViolation {
        self.on_violation.unwrap_or_default()
    }
}

/// State of an intent in itself. Its effect on a deployment is a condition of that deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficGroupIntentStatus {
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
