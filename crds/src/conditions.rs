//! What every status has in common: conditions and the generation they speak of.

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::reasons::RECONCILE_FAILED;

mod kinds;

/// Condition types.
pub mod types {
    /// The object does what it is for. Present on every kind.
    pub const READY: &str = "Ready";
    /// Present only while True: something that may come by itself is waited for.
    pub const RECONCILING: &str = "Reconciling";
    /// Present only while True: only an edit helps.
    pub const STALLED: &str = "Stalled";
    /// Present only while True: something holds the object.
    pub const IN_USE: &str = "InUse";
    /// Cluster: the API server accepts the credentials.
    pub const CREDENTIALS_VALID: &str = "CredentialsValid";
    /// Cluster: it answers, and as the cluster it was; how long it does not is what `unreachable.after` is about.
    pub const REACHABLE: &str = "Reachable";
    /// `DeploymentIntentGroup`: everything it refers to was found.
    pub const RESOLVED: &str = "Resolved";
    /// `DeploymentIntentGroup`: the plan may be carried out.
    pub const APPROVED: &str = "Approved";
    /// `DeploymentIntentGroup`: clusters were chosen.
    pub const PLACED: &str = "Placed";
    /// `DeploymentIntentGroup`: manifests were made.
    pub const RENDERED: &str = "Rendered";
    /// `DeploymentIntentGroup`: all clusters have the running revision.
    pub const DEPLOYED: &str = "Deployed";
    /// `DeploymentIntentGroup`: a stored revision is pinned.
    pub const PINNED: &str = "Pinned";
    /// Stages of a plan, in their order. One that refuses a change is False, those before it are True.
    pub const STAGES: [&str; 4] = [RESOLVED, APPROVED, PLACED, RENDERED];
}

/// A status that carries conditions.
pub trait Conditioned {
    /// The conditions.
    fn conditions(&self) -> &[Condition];
    /// The conditions, to be changed.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
    /// The `metadata.generation` this status was computed for.
    fn observed_generation(&self) -> Option<i64>;
    /// Sets the `metadata.generation` this status was computed for.
    fn set_observed_generation(&mut self, generation: i64);
    /// The running revision, of kinds whose status has one.
    fn revision(&self) -> Option<i64> {
        None
    }

    /// The condition of a type, if present.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions().iter().find(|c| c.type_ == type_)
    }

    /// Whether a condition is present and True.
    fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|c| c.status == "True")
    }

    /// The condition Ready where it says that the reconcile of this generation fails again and again; all else in the status may be
    /// about an older one.
    fn failing(&self, generation: Option<i64>) -> Option<&Condition> {
        let ready = self.condition(types::READY)?;
        (ready.reason == RECONCILE_FAILED && ready.observed_generation == generation).then_some(ready)
    }
}
