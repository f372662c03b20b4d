//! Lists the statuses that carry conditions.

use super::{Condition, Conditioned};

macro_rules! conditioned {
    ($($status:ty $(: $revision:ident)?),+ $(,)?) => {$(
        impl Conditioned for $status {
            fn conditions(&self) -> &[Condition] {
                &self.conditions
            }
            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                &mut self.conditions
            }
            fn observed_generation(&self) -> Option<i64> {
                self.observed_generation
            }
            fn set_observed_generation(&mut self, generation: i64) {
                self.observed_generation = Some(generation);
            }
            $(fn revision(&self) -> Option<i64> {
                self.$revision
            })?
        }
    )+};
}

conditioned!(
    crate::ClusterProviderStatus,
    crate::ClusterStatus,
    crate::GitTargetStatus,
    crate::ProjectStatus,
    crate::LogicalCloudStatus,
    crate::CompositeAppStatus,
    crate::CompositeProfileStatus,
    crate::GenericActionIntentStatus,
    crate::HardwareIntentStatus,
    crate::TrafficGroupIntentStatus,
    crate::DeploymentIntentGroupStatus: revision,
    crate::DeploymentApprovalStatus,
    crate::DeploymentViewStatus,
    crate::AppContextStatus,
    crate::SyncShardStatus,
);
