//! What was found of objects that others made: by cluster, each with the least that takes it over.

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::adopt::Tool;
use serde::Serialize;

use crate::cli::diff::Field;

/// The answer, as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub deployment: String,
    /// `spec.sync.conflicts` as it was looked at.
    pub conflicts: ConflictPolicy,
    /// The least value that takes over all that can be; absent where nothing can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<ConflictPolicy>,
    /// Why nothing is written at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    pub clusters: Vec<OnCluster>,
    /// What was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// One cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnCluster {
    pub cluster: String,
    pub revision: i64,
    /// Objects that were looked for.
    pub compared: usize,
    pub objects: Vec<Listed>,
    /// Why it cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An object that is there and is not the deployment's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub app: String,
    /// `group/kind/namespace/name`
    pub object: String,
    /// Who has it, as its own marks say.
    pub holder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    /// The least value of `spec.sync.conflicts` that takes it over; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<ConflictPolicy>,
    /// Why none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What an apply would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Fields that others hold with other values, and lose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// Whether the change starts its Pods anew.
    pub restarts_pods: bool,
}

/// Why no value of `spec.sync.conflicts` takes an object over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Obstacle {
    /// Another deployment has it.
    OtherDeployment,
    /// It has the name of a hook's object, which is deleted between runs.
    Hook,
    /// The cluster refuses the apply.
    Refused,
}

/// A field that another manager holds.
#[derive(Debug, Serialize)]
pub struct Held {
    pub field: String,
    /// The server's words.
    pub by: String,
}

/// What became of the field.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub field: &'static str,
    pub before: ConflictPolicy,
    pub now: ConflictPolicy,
    pub changed: bool,
    /// What becomes of it in Git.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
}

/// How much a value takes over: each takes all that the ones before it take.
pub const fn reach(policy: ConflictPolicy) -> u8 {
    match policy {
        ConflictPolicy::Fail => 0,
        ConflictPolicy::AdoptIfSame => 1,
        ConflictPolicy::Adopt => 2,
        ConflictPolicy::Force => 3,
    }
}

impl Listed {
    /// Whether a value takes it over.
    pub fn is_taken_by(&self, policy: ConflictPolicy) -> bool {
        self.needs.is_some_and(|needs| reach(needs) <= reach(policy))
    }
}

impl Answer {
    /// The objects, each with its cluster.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Listed)> {
        self.clusters.iter().flat_map(|one| one.objects.iter().map(|object| (one.cluster.as_str(), object)))
    }

    /// Clusters that cannot be asked.
    pub fn silent(&self) -> Vec<String> {
        self.clusters.iter().filter(|one| one.error.is_some()).map(|one| one.cluster.clone()).collect()
    }

    /// The least value that takes over all that can be.
    pub fn least(clusters: &[OnCluster]) -> Option<ConflictPolicy> {
        let objects = clusters.iter().flat_map(|one| &one.objects);
        objects.filter_map(|object| object.needs).max_by_key(|needs| reach(*needs))
    }
}
