//! The shell around the engine: watches, gathering, the store, synchronising with remote clusters, status.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod api;
pub mod approval;
pub mod chart;
pub mod cluster;
pub mod cluster_provider;
pub mod composite_app;
pub mod composite_profile;
pub mod context;
pub mod deployment;
pub mod dialer;
pub mod driver;
pub mod facts;
pub mod hub;
pub mod installation;
pub mod lease;
pub mod logical_cloud;
#[cfg(any(test, feature = "memory"))]
pub mod memory;
pub mod metrics;
pub mod namespace_access;
pub mod objects;
pub mod orphans;
pub mod owned_namespace;
pub mod project;
#[cfg(test)]
mod reconcile_tests;
pub mod remote;
pub mod results;
pub mod revisions;
pub mod sources;
pub mod stores;
pub mod sync;
pub mod wakes;
pub mod world;
