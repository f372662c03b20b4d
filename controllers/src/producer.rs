//! Says what differs between the kinds of owners. Storing, targeting, removal and orphans are the same for all of them.

use std::sync::Arc;

use emco_crds::OwnerKind;
use emco_engine::path::ApiPath;

use crate::object::Owner;
use crate::stores::Stores;
use crate::sync::Policy;

mod deployment;
mod logical_cloud;

use deployment::Deployments;
use logical_cloud::LogicalClouds;

/// A kind of objects that produce revisions.
pub trait Producer: Send + Sync + 'static {
    /// The kind, as stored objects name it.
    fn kind(&self) -> OwnerKind;

    /// Path of all objects of the kind in a namespace of the hub.
    fn collection(&self, namespace: &str) -> ApiPath;

    /// Whether the object is there, as the watch saw it.
    fn exists(&self, stores: &Stores, namespace: &str, name: &str) -> bool;

    /// Whether the object itself says that nothing is written to its clusters. A Project says it for all owners of its namespace.
    fn suspends_itself(&self, stores: &Stores, namespace: &str, name: &str) -> bool;

    /// How what the owner has is kept as wanted: as the object says it, and otherwise as is usual for its kind. Whether it is suspended is
    /// asked besides.
    fn policy(&self, stores: &Stores, owner: &Owner) -> Policy;
}

/// All kinds of owners that this process knows.
#[derive(Clone)]
pub struct Producers(Vec<Arc<dyn Producer>>);

impl Default for Producers {
    fn default() -> Self {
        Self(vec![Arc::new(Deployments), Arc::new(LogicalClouds)])
    }
}

impl Producers {
    /// These and another one.
    #[must_use]
    pub fn and(mut self, another: Arc<dyn Producer>) -> Self {
        self.0.push(another);
        self
    }

    /// What is known of a kind; `None` of one that only a later version knows.
    pub fn of(&self, kind: &OwnerKind) -> Option<&dyn Producer> {
        self.0.iter().map(AsRef::as_ref).find(|producer| producer.kind() == *kind)
    }

    /// Whether nothing may be written to the clusters of an owner: it says so, or its project does.
    pub fn is_suspended(&self, stores: &Stores, kind: &OwnerKind, namespace: &str, name: &str) -> bool {
        self.of(kind).is_some_and(|producer| producer.suspends_itself(stores, namespace, name))
            || stores.suspended.project(namespace).is_some()
    }

    /// How what an owner has is kept as wanted. What a later version stored is kept as is usual.
    pub fn policy(&self, stores: &Stores, owner: &Owner) -> Policy {
        let says = self.of(&owner.kind).map(|producer| producer.policy(stores, owner));
        Policy {
            suspended: self.is_suspended(stores, &owner.kind, &owner.namespace, &owner.name),
            ..says.unwrap_or_else(|| Policy::of(owner))
        }
    }
}
