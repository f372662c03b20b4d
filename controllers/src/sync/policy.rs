//! What an owner says about how it is kept as wanted.

use std::time::Duration;

use emco_crds::deployment_intent_group::sync::{
    ConflictPolicy, DriftPolicy, IgnoreRule, ImmutablePolicy, PrunePolicy,
};
use emco_engine::role::Derived;

use crate::object::Owner;

/// What a deployment says about its own pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a hook may run.
    pub hook_timeout: Duration,
    /// After this time without progress the row counts as failed. Work goes on.
    pub progress_deadline: Duration,
    /// For people on the cluster: `project/name`.
    pub placed_by: String,
    /// What is done about changes by others.
    pub drift: DriftPolicy,
    /// Fields left alone after the first apply.
    pub ignore: Vec<IgnoreRule>,
    /// What is done about objects of others.
    pub conflicts: ConflictPolicy,
    /// What is done where a field cannot be changed.
    pub immutable: ImmutablePolicy,
    /// When objects of an earlier revision are removed.
    pub prune: PrunePolicy,
    /// Namespace on clusters that its logical cloud makes.
    pub namespace: Option<String>,
    /// Objects that belong to the whole cluster are allowed.
    pub whole_cluster: bool,
    /// The rights of its logical cloud's account follow what it has, and are waited for.
    pub derived: Option<Derived>,
    /// The last request to look now: a new text has what failed tried again at once.
    pub requested: Option<String>,
    /// Nothing is written to any cluster.
    pub suspended: bool,
    /// The stored revision that it is pinned to.
    pub pinned: Option<i64>,
}

impl Policy {
    /// What holds where an owner says nothing else.
    pub fn of(owner: &Owner) -> Self {
        Self {
            hook_timeout: Duration::from_mins(5),
            progress_deadline: Duration::from_mins(10),
            placed_by: format!("{}/{}", owner.namespace, owner.name),
            drift: DriftPolicy::Correct,
            ignore: Vec::new(),
            conflicts: ConflictPolicy::Fail,
            immutable: ImmutablePolicy::Fail,
            prune: PrunePolicy::AfterReady,
            namespace: None,
            whole_cluster: false,
            derived: None,
            requested: None,
            suspended: false,
            pinned: None,
        }
    }

    /// Whether what failed under another policy may work now.
    pub fn tries_again(&self, before: &Self) -> bool {
        self.requested != before.requested
            || self.immutable != before.immutable
            || self.conflicts != before.conflicts
    }
}

/// What the hub's objects say of owners.
pub trait Policies: Send + Sync + 'static {
    /// The policy of an owner, also where the hub has no such object.
    fn policy(&self, owner: &Owner) -> Policy;
    /// Whether nothing may be written to the owner's clusters. Asked right before every write.
    fn is_suspended(&self, owner: &Owner) -> bool {
        self.policy(owner).suspended
    }
    /// The Project that owns a namespace of the hub, for the log.
    fn project(&self, namespace: &str) -> Option<String>;
    /// The UID of a namespace of the hub, which tells a tenant from one who is given the same name later.
    fn tenant(&self, namespace: &str) -> Option<String>;
}
