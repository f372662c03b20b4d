//! Deployments as owners: they say themselves how they are kept, and whether they are suspended.

use emco_crds::deployment_intent_group::sync::DriftPolicy;
use emco_crds::names::annotation;
use emco_crds::{DeploymentIntentGroup, OwnerKind};
use emco_engine::path::ApiPath;
use emco_engine::role::{Derived, Reach};

use super::Producer;
use crate::object::{Owner, meta};
use crate::stores::Stores;
use crate::sync::Policy;

/// Deployments.
pub(super) struct Deployments;

impl Producer for Deployments {
    fn kind(&self) -> OwnerKind {
        OwnerKind::DeploymentIntentGroup
    }

    fn collection(&self, namespace: &str) -> ApiPath {
        meta::collection::<DeploymentIntentGroup>(Some(namespace))
    }

    fn exists(&self, stores: &Stores, namespace: &str, name: &str) -> bool {
        stores.digs.named(namespace, name).is_some()
    }

    fn suspends_itself(&self, stores: &Stores, namespace: &str, name: &str) -> bool {
        stores.digs.named(namespace, name).is_some_and(|dig| dig.spec.is_suspended())
    }

    fn policy(&self, stores: &Stores, owner: &Owner) -> Policy {
        let usual = Policy::of(owner);
        // By name, as shards and labels are: one that was made again, as by a restore, has another uid than its shards say until
        // they follow, and what it wants holds at once.
        let Some(dig) = stores.digs.named(&owner.namespace, &owner.name) else {
            // Nobody knows then which changes by others it allowed: they are reported, and stay.
            return Policy { drift: DriftPolicy::Report, ..usual };
        };
        let cloud = stores.clouds.named(&owner.namespace, &dig.spec.logical_cloud_ref.name);
        Policy {
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
            requested: meta::annotation(dig.as_ref(), annotation::REQUESTED_AT).map(str::to_owned),
            pinned: dig.spec.revision,
            ..usual
        }
    }
}
