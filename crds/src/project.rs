//! `Project`: a tenant: its namespace, who may approve, what it may fetch, how much may leave at once.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{InUse, Level, PercentOrCount, Quantity};
use crate::schema;

/// A tenant. Owns a namespace of the hub.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "Project",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    validation = Rule::new("(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name) == (has(oldSelf.spec.__namespace__) ? oldSelf.spec.__namespace__ : oldSelf.metadata.name)")
        .message("a project's namespace cannot be changed")
        .field_path(".spec"),
    validation = Rule::new("(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name) != 'default' && !(has(self.spec.__namespace__) ? self.spec.__namespace__ : self.metadata.name).startsWith('kube-')")
        .message("a project cannot own the namespace default or kube-*")
        .field_path(".spec"),
    plural = "projects",
    shortname = "eproj",
    category = "emco",
    status = "ProjectStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A tenant: owns a namespace of the hub; says how plans are approved, where charts may come from and how much may be removed at once.",
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespace"),
    printcolumn(name = "Approval", type_ = "string", json_path = ".spec.approval.mode"),
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
        "!has(self.__namespace__) || self.__namespace__.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "namespace must be a DNS label: lower-case letters, digits and '-'"
    )
)]
pub struct ProjectSpec {
    /// Namespace of the hub that it owns; default: its own name. Cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// While true, nothing of any kind is written to clusters for this project: its deployments and logical clouds stay there as they are, once a request under way has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How plans are approved.
    #[serde(default)]
    pub approval: Approval,
    /// Keeps a `LogicalCloud` named default in the namespace, with every cluster granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_cloud: Option<ProjectLogicalCloud>,
    /// Addresses charts may come from, as prefixes; absent = public https and oci. Loopback, link-local and private addresses must be listed.
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "set"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_sources: Option<Vec<String>>,
    /// Share of an app's clusters (at least two) that may leave within 24 hours without an approval of exactly that plan.
    #[serde(default = "default_removal_budget")]
    pub removal_budget: PercentOrCount,
    /// Whether deleting a `DeploymentIntentGroup` waits for the annotation emco.io/confirm with its digest.
    #[serde(default)]
    pub confirm_deletion: ConfirmDeletion,
    /// Who may run commands in containers of its deployments through the hub: Nobody (also if absent), or Editors, which Admins are, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecBy>,
    /// Upper bounds for the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProjectLimits>,
    /// Who has which role in the namespace: the operator keeps a `RoleBinding` for each role.
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["role"])
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

impl Project {
    /// The namespace of the hub that it owns.
    pub fn owned_namespace(&self) -> &str {
        self.spec.namespace.as_deref().unwrap_or_else(|| self.metadata.name.as_deref().unwrap_or_default())
    }

    /// How many deployments it may have.
    pub fn most_deployments(&self) -> i32 {
        self.spec
            .limits
            .as_ref()
            .and_then(|limits| limits.deployment_intent_groups)
            .unwrap_or(USUAL_DEPLOYMENTS)
    }
}

/// Deployments of a project that says nothing of their number.
const USUAL_DEPLOYMENTS: i32 = 50;

fn default_removal_budget() -> PercentOrCount {
    PercentOrCount::percent(50)
}

impl Default for ProjectSpec {
    fn default() -> Self {
        Self {
            namespace: None,
            suspend: None,
            approval: Approval::default(),
            logical_cloud: None,
            chart_sources: None,
            removal_budget: default_removal_budget(),
            confirm_deletion: ConfirmDeletion::default(),
            exec: None,
            limits: None,
            members: Vec::new(),
        }
    }
}

/// How plans are approved.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Whether plans wait for a `DeploymentApproval`.
    #[serde(default)]
    pub mode: ApprovalMode,
    /// What an approval covers.
    #[serde(default)]
    pub scope: ApprovalScope,
}

/// Whether plans wait.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalMode {
    /// Plans are carried out at once.
    #[default]
    Automatic,
    /// Plans wait for a `DeploymentApproval` of their digest.
    Manual,
}

/// What an approval covers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalScope {
    /// Everything people wrote: new clusters that match an approved rule join without a new approval.
    #[default]
    Inputs,
    /// Also the chosen clusters, the manifests and the rollout.
    Plan,
}

/// The logical cloud a project keeps.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectLogicalCloud {
    /// Its level.
    #[serde(default)]
    pub level: Level,
}

/// Whether deletions wait.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfirmDeletion {
    /// Deleting is intent enough.
    #[default]
    Never,
    /// Deleting waits for the annotation emco.io/confirm.
    Always,
}

/// Who may run commands in containers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecBy {
    /// No member.
    #[default]
    Nobody,
    /// Members who may change deployments.
    Editors,
}

/// Upper bounds for a tenant.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectLimits {
    /// How many `DeploymentIntentGroup`s the namespace may have; 50 if absent. The oldest come first; one beyond the limit waits
    /// (`TooManyDeployments`), unless it has a revision already.
    #[schemars(range(min = 0, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_intent_groups: Option<i32>,
    /// How many objects one app may have on one cluster; 5000 if absent. A plan with more is refused, and what runs stays.
    #[schemars(range(min = 1, max = 5_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_per_app: Option<i32>,
    /// How much the stored revisions of one `DeploymentIntentGroup` may take together; 256Mi if absent. A plan that would
    /// exceed it is refused, and what runs goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<Quantity>,
    /// How much the stored revisions of all `DeploymentIntentGroup`s of the namespace may take together; 1Gi if absent. A plan that
    /// would exceed it is refused, and what runs goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_stored_bytes: Option<Quantity>,
}

/// A role and who has it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The role. Approver is never implied by Editor.
    pub role: MemberRole,
    /// Who has it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub subjects: Vec<Subject>,
}

/// What a member may do in the namespace.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MemberRole {
    /// Read.
    #[default]
    Viewer,
    /// Read, and write apps, profiles, intents and groups.
    Editor,
    /// Read, and create approvals.
    Approver,
    /// Read and write everything, logical clouds included, but approvals.
    Admin,
}

impl MemberRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Approver, Self::Admin];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "Viewer",
            Self::Editor => "Editor",
            Self::Approver => "Approver",
            Self::Admin => "Admin",
        }
    }

    /// The `ClusterRole` of the hub that says what it may do.
    pub const fn cluster_role(self) -> &'static str {
        match self {
            Self::Viewer => "emco-viewer",
            Self::Editor => "emco-editor",
            Self::Approver => "emco-approver",
            Self::Admin => "emco-admin",
        }
    }

    /// The `RoleBinding` of its members in the project's namespace.
    pub const fn binding(self) -> &'static str {
        match self {
            Self::Viewer => "emco-viewers",
            Self::Editor => "emco-editors",
            Self::Approver => "emco-approvers",
            Self::Admin => "emco-admins",
        }
    }
}

/// A person, a group or an account, as in a `RoleBinding`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!has(self.__namespace__) || self.kind == 'ServiceAccount'",
        "only a ServiceAccount has a namespace: remove namespace, or use kind ServiceAccount"
    ),
    validation = (
        "!(self.kind == 'User' && self.name == 'system:anonymous') && !(self.kind == 'Group' && self.name == 'system:unauthenticated')",
        "a member must be known to the hub: system:anonymous and system:unauthenticated are all who reach it"
    )
)]
pub struct Subject {
    /// User, Group or `ServiceAccount`.
    pub kind: SubjectKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of a `ServiceAccount`; the project's if absent.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What a subject is.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubjectKind {
    /// A user of the hub.
    #[default]
    User,
    /// A group of the hub.
    Group,
    /// A service account of the hub.
    ServiceAccount,
}

/// What is true of a project.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The namespace it owns.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<ProjectCounts>,
    /// Who holds it: its deployment intent groups and logical clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<InUse>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Objects of a project, counted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectCounts {
    /// Deployment intent groups.
    pub deployment_intent_groups: i64,
    /// Logical clouds.
    pub logical_clouds: i64,
}
