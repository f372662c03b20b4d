//! `GitTarget`: a branch of a Git repository that agents on clusters pull from, and the folder of it that is EMCO's.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::HubRestored;
use crate::conditions::Condition;
use crate::fields::{DurationText, InUse, NameRef, Summary, Time};
use crate::schema;

/// A branch of a Git repository that clusters are written to through. Lives in its provider's namespace.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "GitTarget",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "gittargets",
    shortname = "gitt",
    category = "emco",
    namespaced,
    status = "GitTargetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A branch of a Git repository, in the namespace of its provider: clusters whose agent pulls from it are written to through it.",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(name = "Branch", type_ = "string", json_path = ".spec.branch"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.summary.clusters"),
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
    printcolumn(name = "Commit", type_ = "string", json_path = ".status.branch.commit", priority = 1),
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
        "self.url.matches('^https?://[^/@?#[:space:]]+/[^?#[:space:]]+$')",
        "url must be https://host/path (or http), without a login: addresses such as git@host:path are ssh, which is not spoken"
    ),
    validation = (
        "self.branch.matches('^[A-Za-z0-9_][A-Za-z0-9_.+=,/-]*$') && !self.branch.matches('[.][.]|//|/[.]|[.]lock(/|$)|[./]$|^refs/|^HEAD$')",
        "branch must be a name that Git takes, such as main: letters, digits and '_.+=,/-', no '..' or '//', not ending with '.', '/' or '.lock', without refs/heads/"
    ),
    validation = (
        "self.folder == '' || (self.folder.matches('^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$') && !self.folder.matches('(^|/)([.]|[.][.]|[.][gG][iI][tT])(/|$)'))",
        "folder must stay inside the repository: names of letters, digits, '.', '_' and '-' with '/' between, none of them '.', '..' or '.git'"
    ),
    validation = (
        "self.url == oldSelf.url && self.branch == oldSelf.branch && self.folder == oldSelf.folder",
        "url, branch and folder cannot be changed: clusters read from there; make another GitTarget and move the clusters"
    ),
    validation = (
        "duration(self.interval) >= duration('10s') && duration(self.interval) <= duration('1h')",
        "interval must be between 10s and 1h"
    )
)]
pub struct GitTargetSpec {
    /// Address of the repository: `https://host/path`, without a login. It cannot be changed.
    #[schemars(length(min = 1, max = 512))]
    pub url: String,
    /// Name of the branch that agents follow, such as main. It cannot be changed. An empty repository gets it with the first commit.
    #[schemars(length(min = 1, max = 255))]
    pub branch: String,
    /// Folder of the repository below which `clusters` and `.emco` are EMCO's alone; the root if absent. It cannot be changed.
    #[schemars(length(max = 255))]
    #[serde(default)]
    pub folder: String,
    /// A Secret of the same namespace with the login: username and password, or bearerToken; and ca.crt, where the server's certificate
    /// needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// Time between two looks at the branch, from 10s to 1h; 1m if absent. Files that are due are published at once.
    #[serde(default = "one_minute")]
    pub interval: DurationText,
    /// Settings of the agents' objects on the clusters.
    #[serde(default)]
    pub edge: GitTargetEdge,
}

impl Default for GitTargetSpec {
    fn default() -> Self {
        Self {
            url: String::new(),
            branch: String::new(),
            folder: String::new(),
            secret_ref: None,
            interval: one_minute(),
            edge: GitTargetEdge::default(),
        }
    }
}

fn one_minute() -> DurationText {
    DurationText::from("1m")
}

/// Settings of the agents' objects on clusters.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.__namespace__.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "edge.namespace must be the name of a namespace: lower-case letters, digits and '-'"
    )
)]
pub struct GitTargetEdge {
    /// Namespace on the clusters in which the agent's source and the objects of level Admin are; flux-system if absent.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default = "flux_system")]
    pub namespace: String,
    /// Time after which the agent applies again what it has; 1m if absent.
    #[serde(default = "one_minute")]
    pub interval: DurationText,
}

impl Default for GitTargetEdge {
    fn default() -> Self {
        Self { namespace: flux_system(), interval: one_minute() }
    }
}

fn flux_system() -> String {
    "flux-system".to_owned()
}

/// The state of the branch, as it was seen.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitTargetStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last commit that had all of EMCO's files as wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<PublishedCommit>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Present once somebody else changed EMCO's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<BranchDrift>,
    /// Present while this hub, restored from a backup, knows less than what it published, until somebody confirms that what it knows is
    /// to be published: nothing is published meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub_restored: Option<HubRestored>,
    /// Echo of the annotation emco.io/requestedAt.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,
    /// Clusters that are written to through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A commit of the branch.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedCommit {
    /// Its name.
    #[schemars(length(max = 64))]
    pub commit: String,
    /// The time at which it was first seen with all files as wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// Changes of others to EMCO's files, which were undone.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchDrift {
    /// Number of such changes.
    pub corrected: i64,
    /// Time of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
}
