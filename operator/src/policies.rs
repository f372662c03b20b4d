//! Reads from the stores what the sync engine asks of owners: how what they have is kept, and which Project they are of.

use emco_controllers::object::Owner;
use emco_controllers::producer::Producers;
use emco_controllers::stores::Stores;
use emco_controllers::sync::{Policies, Policy};
use emco_crds::names::label;

/// Answers out of the stores, with what is known of each kind of owner.
pub struct StoredPolicies {
    stores: Stores,
    producers: Producers,
}

impl StoredPolicies {
    /// Of all kinds that this process knows.
    pub fn new(stores: Stores) -> Self {
        Self { stores, producers: Producers::default() }
    }
}

impl Policies for StoredPolicies {
    fn policy(&self, owner: &Owner) -> Policy {
        self.producers.policy(&self.stores, owner)
    }

    fn is_suspended(&self, owner: &Owner) -> bool {
        self.producers.is_suspended(&self.stores, &owner.kind, &owner.namespace, &owner.name)
    }

    fn project(&self, namespace: &str) -> Option<String> {
        let found = self.stores.namespaces.named("", namespace)?;
        found.metadata.labels.as_ref()?.get(label::PROJECT).cloned()
    }

    fn tenant(&self, namespace: &str) -> Option<String> {
        self.stores.namespaces.named("", namespace)?.metadata.uid.clone()
    }
}

#[cfg(test)]
mod tests {
    use emco_controllers::stores::{Writers, stores};
    use emco_crds::deployment_intent_group::sync::DriftPolicy;
    use emco_crds::{DeploymentIntentGroup, OwnerKind, Project};
    use emco_engine::snapshot::Installation;
    use kube::runtime::watcher::Event;

    use super::*;

    fn owner(kind: &str, namespace: &str, name: &str) -> Owner {
        let of = Installation { id: "inst".to_owned(), digest_key: [7; 32], random_key: [8; 32] };
        Owner::new(&of, OwnerKind::from(kind), namespace, name, "")
    }

    fn see(stores: &Stores, writers: &mut Writers, project: &Project) {
        writers.projects.apply_watcher_event(&Event::Apply(project.clone()));
        stores.suspended.note(project, false);
    }

    fn till(suspend: Option<bool>) -> DeploymentIntentGroup {
        let mut dig = DeploymentIntentGroup::default();
        (dig.metadata.namespace, dig.metadata.name) = (Some("tills".to_owned()), Some("till".to_owned()));
        dig.spec.suspend = suspend;
        dig
    }

    fn suspended(suspend: Option<bool>) -> Project {
        let mut project = Project::new("shop", emco_crds::project::ProjectSpec::default());
        (project.spec.namespace, project.spec.suspend) = (Some("tills".to_owned()), suspend);
        project
    }

    /// Also for what has no object any more: an owner that is gone, and what was given up.
    #[test]
    fn a_suspended_project_suspends_all_owners_in_its_namespace() {
        let (stores, mut writers) = stores();
        let policies = StoredPolicies::new(stores.clone());
        writers.digs.apply_watcher_event(&Event::Apply(till(None)));
        let owners = [
            owner("DeploymentIntentGroup", "tills", "till"),
            owner("DeploymentIntentGroup", "tills", "gone"),
            owner("LogicalCloud", "tills", "default"),
        ];
        for (suspend, holds) in [(None, false), (Some(true), true), (Some(false), false)] {
            see(&stores, &mut writers, &suspended(suspend));
            for owner in &owners {
                assert_eq!(policies.policy(owner).suspended, holds, "{owner:?} {suspend:?}");
                assert_eq!(policies.is_suspended(owner), holds, "{owner:?} {suspend:?}");
            }
            assert!(
                !policies.is_suspended(&owner("LogicalCloud", "shop", "default")),
                "of another's namespace"
            );
        }
    }

    #[test]
    fn what_others_change_is_reported_while_the_deployment_is_missing() {
        let (stores, mut writers) = stores();
        let policies = StoredPolicies::new(stores);
        let till_ = owner("DeploymentIntentGroup", "tills", "till");
        assert_eq!(policies.policy(&till_).drift, DriftPolicy::Report);
        writers.digs.apply_watcher_event(&Event::Apply(till(None)));
        assert_eq!(policies.policy(&till_).drift, DriftPolicy::Correct, "as it says");
        assert_eq!(policies.policy(&owner("LogicalCloud", "tills", "default")).drift, DriftPolicy::Correct);
    }

    #[test]
    fn a_deployment_that_is_suspended_itself_suspends_no_other_owner() {
        let (stores, mut writers) = stores();
        let policies = StoredPolicies::new(stores);
        writers.digs.apply_watcher_event(&Event::Apply(till(Some(true))));
        assert!(policies.is_suspended(&owner("DeploymentIntentGroup", "tills", "till")));
        assert!(!policies.is_suspended(&owner("LogicalCloud", "tills", "till")));
    }
}
