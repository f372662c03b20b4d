//! Logical clouds as owners: they say nothing of how they are kept, and only their project suspends them.

use emco_crds::deployment_intent_group::sync::ImmutablePolicy;
use emco_crds::{LogicalCloud, OwnerKind};
use emco_engine::path::ApiPath;

use super::Producer;
use crate::object::{Owner, meta};
use crate::stores::Stores;
use crate::sync::Policy;

/// Logical clouds.
pub(super) struct LogicalClouds;

impl Producer for LogicalClouds {
    fn kind(&self) -> OwnerKind {
        OwnerKind::LogicalCloud
    }

    fn collection(&self, namespace: &str) -> ApiPath {
        meta::collection::<LogicalCloud>(Some(namespace))
    }

    fn exists(&self, stores: &Stores, namespace: &str, name: &str) -> bool {
        stores.clouds.named(namespace, name).is_some()
    }

    fn suspends_itself(&self, _: &Stores, _: &str, _: &str) -> bool {
        false
    }

    fn policy(&self, _: &Stores, owner: &Owner) -> Policy {
        Policy {
            // A binding cannot be given another role: it is made anew. (What holds something never is.)
            immutable: ImmutablePolicy::Recreate,
            // It is a namespace on its clusters.
            whole_cluster: true,
            ..Policy::of(owner)
        }
    }
}
