//! What an action adds, what it changes, and how.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::{LabelSelector, RawJson, SourceKind};
use crate::schema;

/// A resource: written here, or in a `ConfigMap` or Secret.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = ("has(self.inline) != has(self.from)", "add needs exactly one of inline, from")
)]
pub struct AddedResource {
    /// The resource itself. Without a namespace it gets that of the logical cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<RawJson>,
    /// Where the resource is written as YAML or JSON: one resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ResourceFrom>,
}

/// A key of a `ConfigMap` or Secret in the namespace of the intent.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = schema::OBJECT_NAME,
    validation = schema::DATA_KEY
)]
pub struct ResourceFrom {
    /// `ConfigMap` or Secret.
    pub kind: SourceKind,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in its data; resource.yaml if absent.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl ResourceFrom {
    /// The key, with its default.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("resource.yaml")
    }
}

/// Picks resources of the app by kind, and by name or labels.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.name) != has(self.selector)", "target needs exactly one of name, selector"),
    validation = (
        "self.kind != 'CustomResourceDefinition'",
        "a CustomResourceDefinition is no target: it belongs to everybody on the cluster, change it in the chart"
    )
)]
pub struct Target {
    /// API version of the kind, such as apps/v1; the version does not count, the group does.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Kind, such as Deployment.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the resource; {{release}} in it stands for the release name, also without templating.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels of resources, as their charts write them; {} = all of the kind.
    #[schemars(schema_with = "schema::optional_label_selector")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // without `default` the field would be required
    pub selector: Option<LabelSelector>,
}

/// One operation of a JSON patch.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = ("!(self.op == 'move' || self.op == 'copy') || has(self.from)", "op move and copy need from")
)]
pub struct JsonPatchOperation {
    /// What it does: add, remove, replace, move, copy or test.
    pub op: JsonPatchOp,
    /// JSON pointer to what it changes: /spec/replicas.
    #[schemars(length(max = 1024))]
    pub path: String,
    /// JSON pointer to where move and copy take the value from.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value that add and replace set, and that test compares with; null if absent.
    #[schemars(schema_with = "schema::any")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// What an operation of a JSON patch does.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonPatchOp {
    /// Sets a field, or puts a value into a list.
    #[default]
    Add,
    /// Takes away what is there.
    Remove,
    /// Sets what is there already.
    Replace,
    /// Takes a value from one place to another.
    Move,
    /// Sets a field to the value of another.
    Copy,
    /// Goes on only where the value is this one.
    Test,
}

impl JsonPatchOp {
    /// As RFC 6902 writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Replace => "replace",
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Test => "test",
        }
    }
}

/// What happens where no resource is the target.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnMissing {
    /// The plan is refused.
    #[default]
    Fail,
    /// Nothing.
    Ignore,
}
