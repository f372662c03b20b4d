//! Brings the objects of each kind to what they ask for: one module per kind, and what reconcilers share.

pub mod approval;
pub mod cluster;
pub mod cluster_maps;
pub mod cluster_provider;
pub mod composite_app;
pub mod composite_profile;
pub mod context;
pub mod deployment;
pub mod deployment_view;
pub mod generic_action_intent;
pub mod git_target;
pub mod hardware;
pub mod hardware_intent;
pub mod health_rules;
mod in_use;
pub mod kind;
pub mod logical_cloud;
pub mod members;
mod not_removed;
pub mod orphans;
pub mod project;
mod restored;
pub mod results;
pub mod revision;
pub mod sources;
pub mod suspension;
mod traffic_group_intent;
