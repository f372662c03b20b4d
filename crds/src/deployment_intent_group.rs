//! `DeploymentIntentGroup`: which application goes where, how, and what became of it.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{ClusterTerm, DurationText, NameRef, PercentOrCount, RawJson, Templating};

pub mod placement;
pub mod reachability;
pub mod rollout;
pub mod status;
pub mod sync;
pub mod view;

use placement::Placement;
use rollout::Rollout;
use status::DeploymentIntentGroupStatus;
use sync::{Sync, Unreachable};

/// Puts a composite application on clusters.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "DeploymentIntentGroup",
    validation = Rule::new("size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 53 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    validation = Rule::new("(has(self.spec.release) ? self.spec.release : self.metadata.name) == (has(oldSelf.spec.release) ? oldSelf.spec.release : oldSelf.metadata.name)")
        .message("release cannot be changed: it is part of the names on the clusters; make a new deployment intent group")
        .field_path(".spec"),
    plural = "deploymentintentgroups",
    shortname = "dig",
    category = "emco",
    namespaced,
    status = "DeploymentIntentGroupStatus",
    derive = "Default",
    derive = "PartialEq",
    selectable = ".status.state",
    doc = "Puts a composite application on clusters: which, where, with which values and intents, and how it is changed there.",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
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
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.summary.clusters"),
    printcolumn(name = "Rev", type_ = "integer", json_path = ".status.revision"),
    printcolumn(name = "Pending", type_ = "string", json_path = ".status.pending.shortDigest"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "App", type_ = "string", json_path = ".spec.compositeAppRef.name", priority = 1),
    printcolumn(name = "Cloud", type_ = "string", json_path = ".spec.logicalCloudRef.name", priority = 1),
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
        "!has(self.revision) || self.desiredState != 'Terminated'",
        "revision cannot be pinned while desiredState is Terminated"
    ),
    validation = (
        "!has(self.release) || self.release.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "release must be a DNS label of at most 53 characters: lower-case letters, digits and '-'"
    )
)]
pub struct DeploymentIntentGroupSpec {
    /// The composite application. Another one = migration.
    pub composite_app_ref: NameRef,
    /// Values for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composite_profile_ref: Option<NameRef>,
    /// The logical cloud it runs in.
    #[serde(default = "default_logical_cloud")]
    pub logical_cloud_ref: NameRef,
    /// Helm release name; default: its own name. Cannot be changed.
    #[schemars(length(min = 1, max = 53))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Which clusters.
    pub placement: Placement,
    /// Values after those of the profile, merged in this order.
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub override_values: Vec<OverrideValues>,
    /// Intents of the same namespace, carried out by the priority of their kind, then in this order. Kinds GenericActionIntent,
    /// HardwareIntent and TrafficGroupIntent are known; others are refused.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "name"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<IntentRef>,
    /// Desired lifecycle state: Instantiated (default), Planned (plans are made, tried as dry runs and shown in status.pending, and not
    /// carried out) or Terminated.
    #[serde(default)]
    pub desired_state: DesiredState,
    /// Waves (experimental); absent = all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// How clusters are kept as wanted.
    #[serde(default)]
    pub sync: Sync,
    /// Per app and cluster: after that it counts as failed, with the last cause; work goes on. 10m if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline: Option<DurationText>,
    /// How long one hook may take; 5m if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_timeout: Option<DurationText>,
    /// What termination does about a cluster that cannot be reached.
    #[serde(default)]
    pub unreachable: Unreachable,
    /// Share of clusters that must be ready for Ready=True.
    #[serde(default = "all_clusters")]
    pub ready_clusters: PercentOrCount,
    /// How many earlier revisions are kept.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "default_history")]
    pub revision_history_limit: i32,
    /// true: nothing is written to any cluster until it is unset, not even to undo what others change; what is there is still
    /// watched. false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Another number renders all charts again though nothing else changed, for example after an upgrade of the operator. 0 if
    /// absent.
    #[schemars(range(min = 0, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_serial: Option<i64>,
    /// Number of a stored revision that is put on the clusters again and kept there, whatever the other fields say, until it is
    /// unset (status.history lists them). Absent: the newest.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

fn default_logical_cloud() -> NameRef {
    NameRef { name: crate::names::object::DEFAULT_LOGICAL_CLOUD.to_owned() }
}

fn all_clusters() -> PercentOrCount {
    PercentOrCount::percent(100)
}

const fn default_history() -> i32 {
    10
}

impl Default for DeploymentIntentGroupSpec {
    fn default() -> Self {
        Self {
            composite_app_ref: NameRef::default(),
            composite_profile_ref: None,
            logical_cloud_ref: default_logical_cloud(),
            release: None,
            placement: Placement::default(),
            override_values: Vec::new(),
            intents: Vec::new(),
            desired_state: DesiredState::default(),
            rollout: None,
            sync: Sync::default(),
            progress_deadline: None,
            hook_timeout: None,
            unreachable: Unreachable::default(),
            ready_clusters: all_clusters(),
            revision_history_limit: default_history(),
            suspend: None,
            render_serial: None,
            revision: None,
        }
    }
}

impl DeploymentIntentGroup {
    /// The release name, with its default.
    pub fn release(&self) -> &str {
        self.spec.release.as_deref().or(self.metadata.name.as_deref()).unwrap_or_default()
    }

    /// What the annotation `emco.io/confirm` says to have this very deletion carried out, with the digest of what runs; `None` where it is
    /// not being deleted. One that was set before, or that a backup brought back, confirms no later deletion.
    pub fn deletion_confirmation(&self, digest: &str) -> Option<String> {
        let since = self.metadata.deletion_timestamp.as_ref()?;
        Some(format!("{digest}@{}", since.0.as_second()))
    }
}

impl DeploymentIntentGroupSpec {
    /// How long an app may take on a cluster, with its default.
    pub fn progress_deadline(&self) -> std::time::Duration {
        self.progress_deadline
            .as_ref()
            .and_then(DurationText::parse)
            .unwrap_or(std::time::Duration::from_mins(10))
    }

    /// Whether nothing is written to its clusters.
    pub fn is_suspended(&self) -> bool {
        self.suspend.unwrap_or_default()
    }

    /// Whether plans are made and not carried out.
    pub fn is_planned(&self) -> bool {
        self.desired_state == DesiredState::Planned
    }

    /// Whether nothing new is put on its clusters, whatever is planned.
    pub fn is_held(&self) -> bool {
        self.is_suspended() || self.is_planned()
    }

    /// How long a hook may take, with its default.
    pub fn hook_timeout(&self) -> std::time::Duration {
        self.hook_timeout.as_ref().and_then(DurationText::parse).unwrap_or(std::time::Duration::from_mins(5))
    }
}

/// Values for one app, everywhere or on some clusters.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverrideValues {
    /// Name of the app.
    #[schemars(length(min = 1, max = 43))]
    pub app: String,
    /// Which of its clusters; absent = all.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterTerm>>,
    /// The values.
    pub values: RawJson,
    /// Whether Handlebars runs over the values; None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templating: Option<Templating>,
}

/// An intent, by kind and name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentRef {
    /// API group of the kind; emco.io if absent.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Desired lifecycle state of a deployment.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DesiredState {
    /// It runs.
    #[default]
    Instantiated,
    /// Plans are made and tried as dry runs, and not carried out; what runs stays as it is.
    Planned,
    /// It is removed from all clusters; the definition stays.
    Terminated,
}
