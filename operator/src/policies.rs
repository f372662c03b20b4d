//! Reads from the stores what the sync engine asks of owners: how patient it is with a deployment, and which Project it is of.

use std::sync::Arc;

use emco_controllers::object::Owner;
use emco_controllers::reconcile::suspension;
use emco_controllers::stores::Stores;
use emco_controllers::sync::{Policies, Policy};
use emco_crds::names::{annotation, label};
use emco_crds::{DeploymentIntentGroup, LogicalCloud, OwnerKind};
use emco_engine::role::{Derived, Reach};
use kube::ResourceExt as _;

/// Answers out of the stores.
pub struct StoredPolicies(pub Stores);

impl StoredPolicies {
    fn cloud(&self, dig: &DeploymentIntentGroup) -> Option<Arc<LogicalCloud>> {
        let namespace = dig.metadata.namespace.as_deref().unwrap_or_default();
        self.0.clouds.named(namespace, &dig.spec.logical_cloud_ref.name)
    }
}

impl Policies for StoredPolicies {
    fn policy(&self, owner: &Owner) -> Policy {
        let default = Policy::of(owner);
        if owner.kind != OwnerKind::DeploymentIntentGroup {
            return Policy { suspended: self.is_suspended(owner), ..default };
        }
        // By name, as shards and labels are: one that was made again, as by a restore, has another uid than its shards say until
        // they follow, and what it wants holds at once.
        let found: Option<Arc<DeploymentIntentGroup>> = self.0.digs.named(&owner.namespace, &owner.name);
        let cloud = found.as_ref().and_then(|dig| self.cloud(dig));
        match found {
            Some(dig) => Policy {
                hook_timeout: dig.spec.hook_timeout(),
                progress_deadline: dig.spec.progress_deadline(),
                drift: dig.spec.sync.drift,
                ignore: dig.spec.sync.ignore.clone(),
                conflicts: dig.spec.sync.conflicts,
                immutable: dig.spec.sync.immutable_fields,
                prune: dig.spec.sync.prune,
                namespace: cloud.as_ref().map(|cloud| cloud.cluster_namespace().to_owned()),
                whole_cluster: cloud.as_ref().is_some_and(|cloud| Reach::of(&cloud.spec).cluster),
                derived: cloud.and_then(|cloud| Derived::of(&cloud.spec, cloud.cluster_namespace())),
                requested: dig.annotations().get(annotation::REQUESTED_AT).cloned(),
                suspended: self.is_suspended(owner),
                pinned: dig.spec.revision,
                ..default
            },
            None => Policy { suspended: self.is_suspended(owner), ..Policy::of_missing(owner) },
        }
    }

    fn is_suspended(&self, owner: &Owner) -> bool {
        suspension::holds(&self.0, &owner.kind, &owner.namespace, &owner.name)
    }

    fn project(&self, namespace: &str) -> Option<String> {
        let found = self.0.namespaces.named("", namespace)?;
        found.metadata.labels.as_ref()?.get(label::PROJECT).cloned()
    }
}

#[cfg(test)]
mod tests {
    use emco_controllers::stores::{Writers, stores};
    use emco_crds::deployment_intent_group::sync::DriftPolicy;
    use emco_crds::{DeploymentIntentGroup, Project};
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
        let policies = StoredPolicies(stores.clone());
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
        let policies = StoredPolicies(stores);
        let till_ = owner("DeploymentIntentGroup", "tills", "till");
        assert_eq!(policies.policy(&till_).drift, DriftPolicy::Report);
        writers.digs.apply_watcher_event(&Event::Apply(till(None)));
        assert_eq!(policies.policy(&till_).drift, DriftPolicy::Correct, "as it says");
        assert_eq!(policies.policy(&owner("LogicalCloud", "tills", "default")).drift, DriftPolicy::Correct);
    }

    #[test]
    fn a_deployment_that_is_suspended_itself_suspends_no_other_owner() {
        let (stores, mut writers) = stores();
        let policies = StoredPolicies(stores);
        writers.digs.apply_watcher_event(&Event::Apply(till(Some(true))));
        assert!(policies.is_suspended(&owner("DeploymentIntentGroup", "tills", "till")));
        assert!(!policies.is_suspended(&owner("LogicalCloud", "tills", "till")));
    }
}
