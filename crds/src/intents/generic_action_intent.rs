//! `GenericActionIntent`: resources that are added to an app, and changes of those that its chart makes.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{ClusterTerm, InUse, RawJson, Templating};
use crate::schema;

pub mod change;

pub use change::{AddedResource, JsonPatchOp, JsonPatchOperation, OnMissing, ResourceFrom, Target};

/// Adds resources to apps, and changes those that their charts make.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "GenericActionIntent",
    validation = Rule::new("size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 53 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "genericactionintents",
    shortname = "gai",
    category = "emco",
    namespaced,
    status = "GenericActionIntentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Adds resources to the apps of the deployments that list it, and changes those that their charts make.",
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
pub struct GenericActionIntentSpec {
    /// Carried out in this order, on what the charts made.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// One resource that is added, or one change.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "an action's name must be a DNS label: lower-case letters, digits and '-'"
    ),
    validation = (
        "has(self.add) == (self.type == 'Add') && has(self.jsonPatch) == (self.type == 'JSONPatch') && has(self.strategicMerge) == (self.type == 'StrategicMerge') && has(self.jsonMerge) == (self.type == 'JSONMerge')",
        "fill exactly the field that type names (Add: add, JSONPatch: jsonPatch, StrategicMerge: strategicMerge, JSONMerge: jsonMerge)"
    ),
    validation = ("self.type == 'Add' || has(self.app)", "app is needed by every type but Add"),
    validation = ("self.type == 'Add' || has(self.target)", "target is needed by every type but Add"),
    validation = (
        "self.type != 'Add' || !(has(self.target) || has(self.onMissing))",
        "type Add takes neither target nor onMissing: the resource that it adds names itself"
    )
)]
pub struct Action {
    /// Name of the action within the intent, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Name of the app whose resources it concerns. Without it, a resource that type Add adds belongs to no chart: it is there before the
    /// apps of the deployment, on every cluster where it has any, and leaves after them.
    #[schemars(length(min = 1, max = 43))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// What it does: Add, `JSONPatch`, `StrategicMerge`, `JSONMerge` or Delete.
    #[serde(rename = "type")]
    pub type_: ActionType,
    /// Whether Handlebars runs over the texts of the resource, the patch and the target's name; None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templating: Option<Templating>,
    /// The resource that type Add adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<AddedResource>,
    /// Which resources of the app every other type changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Operations of a JSON patch (RFC 6902), in order: either all succeed, or the plan is refused.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_patch: Option<Vec<JsonPatchOperation>>,
    /// A strategic merge patch, with the merge keys of Kubernetes. For kinds of Kubernetes alone: others have no merge keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategic_merge: Option<RawJson>,
    /// A JSON merge patch (RFC 7386): maps are merged, null takes a key away, lists are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_merge: Option<RawJson>,
    /// What happens where no resource of the app is the target: the plan is refused (Fail, also if absent) or nothing (Ignore).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_missing: Option<OnMissing>,
    /// Clusters on which it is carried out; absent = all clusters of the app, without app all of the deployment.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<ClusterTerm>>,
    /// Clusters on which it is not carried out, also where allow names them.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<ClusterTerm>>,
}

/// What an action does.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionType {
    /// A resource is added to those of the app.
    #[default]
    Add,
    /// A JSON patch.
    JSONPatch,
    /// A strategic merge patch.
    StrategicMerge,
    /// A JSON merge patch.
    JSONMerge,
    /// The resource is left out.
    Delete,
}

/// What is true of an intent in itself. Its effect on a deployment is a condition of that deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenericActionIntentStatus {
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
