//! `DeploymentView`: a question of a member about one deployment, which the operator answers with what it may read there.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fields::{NameRef, Time};
use crate::schema;

/// Asks the operator about one `DeploymentIntentGroup`. Cannot be edited, but for released.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "DeploymentView",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name must be a DNS label of at most 63 characters: lower-case letters, digits and '-'")
        .field_path(".metadata.name"),
    plural = "deploymentviews",
    shortname = "dview",
    category = "emco-generated",
    namespaced,
    status = "DeploymentViewStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A question of a member of the project about one deployment: the command line asks it, the operator answers in its status, and it is deleted within a minute.",
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.deploymentIntentGroupRef.name"),
    printcolumn(name = "What", type_ = "string", json_path = ".spec.question.what"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "self.deploymentIntentGroupRef == oldSelf.deploymentIntentGroupRef && self.question == oldSelf.question",
        "a question cannot be edited: create another one"
    )
)]
pub struct DeploymentViewSpec {
    /// The group.
    pub deployment_intent_group_ref: NameRef,
    /// The question about it.
    pub question: Question,
    /// Lets the command of a question Exec run. It counts only as a change of the object, which takes the right to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<bool>,
}

/// A question about a deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(self.what == 'Exec') == (has(self.command) && size(self.command) > 0)",
        "command goes with what: Exec, and with nothing else"
    )
)]
pub struct Question {
    /// The kind of answer.
    pub what: ViewOf,
    /// Only these clusters, as PROVIDER/CLUSTER; all of the deployment's if absent. Logs and Exec are of one.
    #[schemars(length(max = 64), inner(length(max = 127)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Only these apps; all if absent.
    #[schemars(length(max = 64), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<String>,
    /// A stored revision instead of the one that clusters get, of Manifests, Differences and Explanation.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Asks every cluster, of Objects, also where the operator says that all is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// The workload, of Logs and Exec, as NAME or KIND/NAME; the only one if absent.
    #[schemars(length(max = 317))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The container, of Logs and Exec.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// At most so many lines of each container, the last ones; 2000 if absent.
    #[schemars(range(min = 0, max = 2000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<i64>,
    /// Only what was written within so many seconds.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_seconds: Option<i64>,
    /// Logs of containers before their last restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<bool>,
    /// Begins each line of logs with its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// The command and its arguments, of Exec.
    #[schemars(length(max = 64), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// Kinds of answers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewOf {
    /// The reasons why apps are on clusters, or are not.
    #[default]
    Explanation,
    /// Stored manifests, without the values of Secrets.
    Manifests,
    /// Every object with its health.
    Objects,
    /// Fields in which clusters differ from what is stored, without the values of Secrets.
    Differences,
    /// Events of the deployment's objects and of what they made.
    Events,
    /// Logs of the Pods of a workload.
    Logs,
    /// Output of a command in a container of a workload.
    Exec,
}

/// The answer to a question.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentViewStatus {
    /// The generation this status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ViewState>,
    /// Time of the state by the operator's clock: half a minute later the operator deletes the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The answer: JSON, compressed with gzip, in base64.
    #[schemars(length(max = 700_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The reason why there is no answer.
    #[schemars(length(max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Conditions.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// State of a question.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewState {
    /// A command waits until somebody releases it who may change the object.
    #[default]
    Waiting,
    /// The command runs. It is never run twice.
    Running,
    /// The answer is there.
    Answered,
    /// There is none.
    Refused,
}

impl ViewState {
    /// Tells whether nothing more becomes of it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Answered | Self::Refused)
    }
}
