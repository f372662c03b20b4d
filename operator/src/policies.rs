//! Reads from the stores what the sync engine asks of owners: how patient it is with a deployment, and which Project it is of.

use std::sync::Arc;

use emco_controllers::reconcile::logical_cloud;
use emco_controllers::runtime::stores::{StoreExt, Stores};
use emco_controllers::sync::{Owner, Policies, Policy};
use emco_crds::names::{annotation, label};
use emco_crds::{DeploymentIntentGroup, Level, LogicalCloud};
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
        if owner.kind != "DeploymentIntentGroup" {
            return default;
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
                namespace: cloud.as_ref().map(|cloud| logical_cloud::namespace(cloud)),
                whole_cluster: cloud.is_some_and(|cloud| cloud.spec.level == Level::Admin),
                requested: dig.annotations().get(annotation::REQUESTED_AT).cloned(),
                suspended: dig.spec.is_suspended(),
                pinned: dig.spec.revision,
                ..default
            },
            None => default,
        }
    }

    fn is_suspended(&self, owner: &Owner) -> bool {
        let of_group = owner.kind == "DeploymentIntentGroup";
        of_group
            && self.0.digs.named(&owner.namespace, &owner.name).is_some_and(|dig| dig.spec.is_suspended())
    }

    fn project(&self, namespace: &str) -> Option<String> {
        let found = self.0.namespaces.named("", namespace)?;
        found.metadata.labels.as_ref()?.get(label::PROJECT).cloned()
    }
}
