//! Deployments as the hub's watch saw them come in; how patient the sync engine is with each goes out.

use std::sync::Arc;

use emco_controllers::stores::{StoreExt, Stores};
use emco_controllers::sync::{Owner, Policies, Policy};
use emco_crds::DeploymentIntentGroup;

/// Policies out of the stores.
pub struct StoredPolicies(pub Stores);

impl Policies for StoredPolicies {
    fn policy(&self, owner: &Owner) -> Policy {
        let default = Policy::of(owner);
        if owner.kind != "DeploymentIntentGroup" {
            return default;
        }
        // One deleted and made anew under the same name is another: what the old one left goes at the default pace.
        let found: Option<Arc<DeploymentIntentGroup>> = self.0.digs.named(&owner.namespace, &owner.name);
        match found.filter(|dig| dig.metadata.uid.as_deref() == Some(owner.uid.as_str())) {
            Some(dig) => Policy {
                hook_timeout: dig.spec.hook_timeout(),
                progress_deadline: dig.spec.progress_deadline(),
                drift: dig.spec.sync.drift,
                ignore: dig.spec.sync.ignore.clone(),
                ..default
            },
            None => default,
        }
    }
}
