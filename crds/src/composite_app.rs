//! `CompositeApp`: the charts that make one application, and which waits for which.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{DurationText, InUse, Summary};
use crate::schema;

pub mod chart;

pub use chart::{ChartSource, GitChart, GitRef, OciChart, RepositoryChart};

/// A set of Helm charts that make one application.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "CompositeApp",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "compositeapps",
    shortname = "capp",
    category = "emco",
    namespaced,
    status = "CompositeAppStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The Helm charts that make one application, and which of them waits for which.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Apps", type_ = "string", json_path = ".status.summary.apps"),
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
    printcolumn(name = "Uses", type_ = "integer", json_path = ".status.inUse.total", priority = 1),
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
        "self.apps.all(a, !has(a.dependsOn) || a.dependsOn.all(d, self.apps.exists(b, b.name == d.app)))",
        "dependsOn names an app that is not in this composite app"
    ),
    validation = (
        "self.apps.all(a, self.apps.all(b, a.name == b.name || !(has(a.dependsOn) && has(b.dependsOn) && a.dependsOn.exists(d, d.app == b.name) && b.dependsOn.exists(d, d.app == a.name))))",
        "two apps depend on each other"
    )
)]
pub struct CompositeAppSpec {
    /// For people.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The apps.
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub apps: Vec<App>,
}

/// One chart.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!has(self.dependsOn) || self.dependsOn.all(d, d.app != self.name)",
        "an app cannot depend on itself"
    ),
    validation = (
        "size(self.name) <= 43 && self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "an app's name must be a DNS label of at most 43 characters: lower-case letters, digits and '-'"
    )
)]
pub struct App {
    /// Name within the composite application, at most 43 characters.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Where the chart comes from.
    pub chart: ChartSource,
    /// Apps that must be there first.
    #[schemars(
        length(max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["app"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
}

/// Another app that must be there first.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its name.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// What it must have reached; Ready if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<DependencyState>,
    /// How long to wait after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DurationText>,
    /// Where; Cluster if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<DependencyScope>,
}

/// What a dependency must have reached.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DependencyState {
    /// All its objects are applied.
    Deployed,
    /// All its objects are ready.
    #[default]
    Ready,
}

/// Where a dependency is looked at.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DependencyScope {
    /// On the same cluster; on all of the other app's where they share none.
    #[default]
    Cluster,
    /// On all clusters of the other app.
    All,
}

/// What is true of a composite application.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositeAppStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The charts, pinned.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<ChartPin>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Echo of the annotation emco.io/requestedAt.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What a chart source gave when it was first fetched. The same source must give the same bytes ever after; an edit of that
/// app's chart accepts it anew.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartPin {
    /// Name of the app.
    #[schemars(length(max = 43))]
    pub name: String,
    /// Name of the chart, from Chart.yaml.
    #[schemars(length(max = 253))]
    pub chart: String,
    /// Version of the chart, from Chart.yaml.
    #[schemars(length(max = 128))]
    pub version: String,
    /// appVersion, from Chart.yaml.
    #[schemars(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// SHA-256 of the archive.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// The commit, of a chart from Git.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Digest of the `chart` field the pin was made for: another one means the pin is made anew.
    #[schemars(length(max = 71))]
    pub source: String,
    /// What the last look at the source found that was asked for (emco.io/requestedAt), where that is not this chart, which goes
    /// on being used. Absent once the source gives this chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_look: Option<SourceLook>,
}

/// What a look at a chart's source found instead of the pinned chart.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceLook {
    /// Reason of the condition Ready; `BranchMoved`, which refuses nothing, where a branch points to another commit.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What was found, and what to do.
    #[schemars(length(max = 1024))]
    pub message: String,
}
