//! A lease that is always held, and what deployments say of their pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emco_crds::OwnerKind;

use crate::object::Owner;
use crate::producer::Producers;
use crate::stores::Stores;
use crate::sync::{Fence, Policies, Policy};

/// Always held.
pub struct Open;
impl Fence for Open {
    fn may_write(&self) -> bool {
        true
    }
}

/// As the owners say that the watch showed.
pub struct Usual {
    pub stores: Stores,
    pub producers: Producers,
    /// As if all deployments were suspended.
    pub suspended: Arc<AtomicBool>,
}

impl Policies for Usual {
    fn policy(&self, owner: &Owner) -> Policy {
        let is_deployment = owner.kind == OwnerKind::DeploymentIntentGroup
            && self.stores.digs.named(&owner.namespace, &owner.name).is_some();
        let says = self.producers.policy(&self.stores, owner);
        Policy {
            // The default logical cloud's.
            namespace: Some(owner.namespace.clone()),
            suspended: is_deployment && self.suspended.load(Ordering::SeqCst) || says.suspended,
            ..says
        }
    }

    fn project(&self, namespace: &str) -> Option<String> {
        Some(namespace.to_owned())
    }

    fn tenant(&self, namespace: &str) -> Option<String> {
        self.stores.namespaces.named("", namespace)?.metadata.uid.clone()
    }
}
