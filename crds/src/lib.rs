//! The API of EMCO: its custom resources and the rules each states about itself. Light on purpose: usable as a client
//! library.

#![warn(missing_docs)]
#![allow(clippy::duplicated_attributes)] // `printcolumn(...)` of the kube derive is repeated by design

pub mod app_context;
pub mod cluster;
pub mod cluster_provider;
pub mod composite_app;
pub mod composite_profile;
pub mod conditions;
pub mod crds;
pub mod deployment_approval;
pub mod deployment_intent_group;
pub mod fields;
pub mod intents;
pub mod logical_cloud;
pub mod names;
pub mod project;
pub mod reasons;
mod schema;
pub mod state;
pub mod sync_shard;

pub use app_context::{AppContext, AppContextSpec, AppContextStatus};
pub use cluster::git_target::{GitTarget, GitTargetSpec, GitTargetStatus};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use cluster_provider::{ClusterProvider, ClusterProviderSpec, ClusterProviderStatus};
pub use composite_app::{CompositeApp, CompositeAppSpec, CompositeAppStatus};
pub use composite_profile::{CompositeProfile, CompositeProfileSpec, CompositeProfileStatus};
pub use conditions::{Condition, Conditioned};
pub use crds::{all, kinds, later};
pub use deployment_approval::{DeploymentApproval, DeploymentApprovalSpec, DeploymentApprovalStatus};
pub use deployment_intent_group::status::DeploymentIntentGroupStatus;
pub use deployment_intent_group::view::{DeploymentView, DeploymentViewSpec, DeploymentViewStatus};
pub use deployment_intent_group::{DeploymentIntentGroup, DeploymentIntentGroupSpec};
pub use fields::{
    ClusterTerm, DurationText, Failing, InUse, IntOrText, KeyRef, LabelSelector, LabelSelectorRequirement,
    Level, NameRef, OwnerKind, PercentOrCount, Quantity, RawJson, SourceKind, Summary, Templating, Time,
};
pub use intents::generic_action_intent::{
    self, GenericActionIntent, GenericActionIntentSpec, GenericActionIntentStatus,
};
pub use intents::hardware_intent::{self, HardwareIntent, HardwareIntentSpec, HardwareIntentStatus};
pub use intents::traffic_group_intent::{
    self, TrafficGroupIntent, TrafficGroupIntentSpec, TrafficGroupIntentStatus,
};
pub use logical_cloud::{LogicalCloud, LogicalCloudSpec, LogicalCloudStatus};
pub use project::{Project, ProjectSpec, ProjectStatus};
pub use state::State;
pub use sync_shard::status::{RowStatus, SyncShardStatus};
pub use sync_shard::{SyncShard, SyncShardSpec};
