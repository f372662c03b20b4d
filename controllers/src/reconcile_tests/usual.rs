//! A lease that is always held, and what deployments say of their pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emco_crds::OwnerKind;
use emco_engine::role::Derived;

use crate::object::Owner;
use crate::reconcile::suspension;
use crate::stores::Stores;
use crate::sync::{Fence, Policies, Policy};

/// Always held.
pub struct Open;
impl Fence for Open {
    fn may_write(&self) -> bool {
        true
    }
}

/// As the deployments say that the watch showed.
pub struct Usual(pub Stores, pub Arc<AtomicBool>);
impl Policies for Usual {
    fn policy(&self, owner: &Owner) -> Policy {
        let dig = self.0.digs.named(&owner.namespace, &owner.name);
        let dig = dig.filter(|_| owner.kind == OwnerKind::DeploymentIntentGroup);
        let usual = match &dig {
            None if owner.kind == OwnerKind::DeploymentIntentGroup => Policy::of_missing(owner),
            None => Policy::of(owner),
            Some(dig) => Policy {
                drift: dig.spec.sync.drift,
                ignore: dig.spec.sync.ignore.clone(),
                ..Policy::of(owner)
            },
        };
        Policy {
            // The default logical cloud's.
            namespace: Some(owner.namespace.clone()),
            suspended: dig.is_some() && self.1.load(Ordering::SeqCst)
                || suspension::holds(&self.0, &owner.kind, &owner.namespace, &owner.name),
            derived: dig.as_ref().and_then(|dig| {
                let cloud = self.0.clouds.named(&owner.namespace, &dig.spec.logical_cloud_ref.name)?;
                Derived::of(&cloud.spec, cloud.cluster_namespace())
            }),
            pinned: dig.and_then(|dig| dig.spec.revision),
            ..usual
        }
    }

    fn project(&self, namespace: &str) -> Option<String> {
        Some(namespace.to_owned())
    }
}
