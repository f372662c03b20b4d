//! `CompositeProfile`: values and files for the charts of a composite application.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{InUse, KeyRef, RawJson, SourceKind, Templating};
use crate::schema;

/// Values and files for the charts of a composite application.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "CompositeProfile",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "compositeprofiles",
    shortname = "cprof",
    category = "emco",
    namespaced,
    status = "CompositeProfileStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Values and chart files for the apps of a composite application.",
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
pub struct CompositeProfileSpec {
    /// By app.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["app"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<ProfileApp>,
}

/// Values and files for one app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileApp {
    /// Name of the app.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// Values, on top of `valuesFrom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<RawJson>,
    /// Values from `ConfigMaps` and Secrets, merged in order.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<ValuesFrom>,
    /// Whether Handlebars runs over the values; None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templating: Option<Templating>,
    /// Files put into the chart, or over its own.
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ProfileFile>,
}

/// Values in a `ConfigMap` or Secret.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = schema::OBJECT_NAME,
    validation = schema::DATA_KEY
)]
pub struct ValuesFrom {
    /// `ConfigMap` or Secret.
    pub kind: SourceKind,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in its data; values.yaml if absent.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl ValuesFrom {
    /// The key, with its default.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("values.yaml")
    }
}

/// A file put into a chart.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!self.path.matches('^/|(^|/)[.][.](/|$)')", "path must stay inside the chart")
)]
pub struct ProfileFile {
    /// Path in the chart.
    #[schemars(length(min = 1, max = 255))]
    pub path: String,
    /// Where its text is; the key is the path's last part if absent.
    pub config_map_key_ref: KeyRef,
}

/// What is true of a profile.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositeProfileStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
