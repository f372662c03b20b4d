//! `Cluster`: one remote cluster: how to reach it, what people say about it, what was seen.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{KeyRef, NameRef, Summary, Time};
use crate::schema;

pub mod git_target;

/// One remote cluster. Lives in its provider's namespace.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "Cluster",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "clusters",
    shortname = "ecl",
    category = "emco",
    namespaced,
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    selectable = ".spec.scheduling",
    doc = "One remote cluster, in the namespace of its provider. Placement selects it by its labels.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".status.provider"),
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
    printcolumn(name = "Version", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.summary.nodes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Uses", type_ = "string", json_path = ".status.inUse.example", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// How to reach the cluster.
    pub access: Access,
    /// Facts that templates read as {{cluster.properties.x}}.
    #[schemars(schema_with = "schema::properties")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// Whether it may take work.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Abilities of its network, as its owner states them: what is stated wins over what is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// Abilities of a cluster's network.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Effect of NetworkPolicies: Enforced or `NotEnforced`. Absent: Enforced where an API of a network is served that enforces them
    /// (cilium.io, crd.projectcalico.org, crd.antrea.io, k8s.ovn.org, kubeovn.io), else not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<PolicySupport>,
}

/// Effect of NetworkPolicies on a cluster.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicySupport {
    /// They do.
    #[default]
    Enforced,
    /// They are stored and have none.
    NotEnforced,
}

/// How to reach a cluster: exactly one member.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.kubeconfigSecretRef) != has(self.gitOps)",
        "access needs exactly one of kubeconfigSecretRef, gitOps"
    ),
    validation = (
        "has(self.gitOps) == has(oldSelf.gitOps) && (!has(self.gitOps) || self.gitOps.targetRef.name == oldSelf.gitOps.targetRef.name)",
        "access cannot change to or from gitOps, or to another target: what is on the cluster was put there the other way; drain it, delete it, and register it again"
    )
)]
pub struct Access {
    /// A Secret of the same namespace; key: value, value.yaml or kubeconfig, the first found, if not named. A Secret that Argo CD
    /// knows the cluster by (label argocd.argoproj.io/secret-type: cluster) is read as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KeyRef>,
    /// Nothing is written to the cluster: its objects are files on a branch, and an agent there pulls them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_ops: Option<GitOps>,
}

impl Access {
    /// The Secret with the kubeconfig that the cluster is read with, whichever way it is written to.
    pub fn kubeconfig(&self) -> Option<&KeyRef> {
        let observed = || self.git_ops.as_ref()?.observe.as_ref()?.kubeconfig_secret_ref.as_ref();
        self.kubeconfig_secret_ref.as_ref().or_else(observed)
    }

    /// The field that names that Secret, for messages.
    pub const fn kubeconfig_field(&self) -> &'static str {
        if self.git_ops.is_some() {
            "spec.access.gitOps.observe.kubeconfigSecretRef"
        } else {
            "spec.access.kubeconfigSecretRef"
        }
    }

    /// The `GitTarget` that the cluster is written to through, if it is.
    pub fn git_target(&self) -> Option<&str> {
        self.git_ops.as_ref().map(|git| git.target_ref.name.as_str())
    }
}

/// A cluster whose agent pulls from a branch.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.observe) && has(self.observe.kubeconfigSecretRef)",
    "say how the cluster is observed: observe.kubeconfigSecretRef, a Secret with a kubeconfig that may only read"
))]
pub struct GitOps {
    /// The `GitTarget` of the same namespace whose branch the agent follows.
    pub target_ref: NameRef,
    /// The way EMCO looks at the cluster. It is needed: without it nobody knows what is true there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
}

/// The way a cluster is looked at that is written to through a branch.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observe {
    /// A Secret of the same namespace with a kubeconfig that may only read; key: value, value.yaml or kubeconfig, the first found, if
    /// not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KeyRef>,
}

/// Whether a cluster may take work.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduling {
    /// Yes.
    #[default]
    Enabled,
    /// It keeps what it has and takes nothing new.
    Cordoned,
    /// What it has moves away where that is possible.
    Drained,
}

/// What was seen of a cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the provider.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The text users see everywhere: provider/cluster.
    #[schemars(length(max = 127))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// UID of the cluster's kube-system namespace: its identity.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Version of its API server, such as v1.36.3.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Digest of the list of what it serves; the list itself is a `ConfigMap` of the operator.
    #[schemars(length(max = 71))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_groups_digest: Option<String>,
    /// Numbers as text, for columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// Sum over its ready nodes, at most 16 resources.
    #[schemars(schema_with = "schema::allocatable")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// Resources beyond those 16, by name only.
    #[schemars(length(max = 64), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_resources: Vec<String>,
    /// The credentials in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CredentialFacts>,
    /// Present while a deployment has something there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<ClusterInUse>,
    /// Present while something is left there that was given up; it is removed when the cluster returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<ClusterAbandoned>,
    /// Present while this hub, restored from a backup, knows less of the cluster than it did, until somebody confirms that what it
    /// knows is to be put there: nothing is done there meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub_restored: Option<HubRestored>,
    /// Present where the cluster is written to through a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFacts>,
    /// Echo of the annotation emco.io/requestedAt.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The place of a cluster's files.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFacts {
    /// The folder of the repository that the agent of the cluster follows.
    #[schemars(length(max = 512))]
    pub path: String,
    /// The agent.
    pub agent: GitAgent,
}

/// The agent on clusters that applies what the branch has.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GitAgent {
    /// Flux: source-controller and kustomize-controller.
    #[default]
    Flux,
}

/// Nodes, counted.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Ready ones.
    pub ready: i64,
    /// All.
    pub total: i64,
}

/// What is known of the credentials.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CredentialFacts {
    /// When they end, where they say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
}

/// Whether something holds a cluster. Written only when that becomes or ceases to be true.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInUse {
    /// `InUse`.
    #[schemars(length(max = 16))]
    pub state: String,
    /// The first holder, such as DeploymentIntentGroup/team-a/shop.
    #[schemars(length(max = 300))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// What was given up on a cluster that could not be reached.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterAbandoned {
    /// Owners that left something there.
    pub owners: i64,
    /// The first of them, such as DeploymentIntentGroup/team-a/shop.
    #[schemars(length(max = 300))]
    pub example: String,
}

/// That a cluster was worked on by a later state of this hub than the one that was restored.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubRestored {
    /// The version of the hub's store that it was worked on at. The annotation emco.io/confirm has to say it, with @ and `since`
    /// in seconds, as the message of Ready does.
    #[schemars(length(max = 20))]
    pub seen: String,
    /// When that was noticed: an earlier restore's confirmation confirms nothing now. Absent where an earlier version noticed it,
    /// which `seen` alone confirms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}
