//! `DeploymentApproval`: somebody's word on one plan.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::NameRef;
use crate::schema;

/// Approves or rejects one `DeploymentIntentGroup` at one digest. Cannot be edited.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "DeploymentApproval",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "deploymentapprovals",
    shortname = "dappr",
    category = "emco",
    namespaced,
    status = "DeploymentApprovalStatus",
    derive = "Default",
    derive = "PartialEq",
    selectable = ".spec.deploymentIntentGroupRef.name",
    doc = "Approves or rejects one deployment intent group at one digest.",
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.deploymentIntentGroupRef.name"),
    printcolumn(name = "Decision", type_ = "string", json_path = ".spec.decision"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "By", type_ = "string", json_path = ".spec.approvedBy"),
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
    validation = ("self == oldSelf", "an approval cannot be edited: create another one")
)]
pub struct DeploymentApprovalSpec {
    /// The group.
    pub deployment_intent_group_ref: NameRef,
    /// Its `status.pending.digest`.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Only for the gate of this wave.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<String>,
    /// Yes or no.
    #[serde(default)]
    pub decision: Decision,
    /// User name of who creates it.
    #[schemars(length(min = 1, max = 253))]
    pub approved_by: String,
    /// For people.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Yes or no.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Yes.
    #[default]
    Approved,
    /// No.
    Rejected,
}

/// What became of an approval.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentApprovalStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ApprovalState>,
    /// The revision it let pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What became of an approval.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalState {
    /// Its digest was not seen yet.
    #[default]
    Waiting,
    /// It holds.
    InEffect,
    /// The plan moved on.
    Stale,
    /// Another approval of the same digest took its place.
    Superseded,
}
