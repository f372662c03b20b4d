//! The shell around the engine: watches, gathering, the store, synchronising with remote clusters, status.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]
// Tests write whole paths, as texts and as references to them.
#![cfg_attr(test, allow(clippy::needless_borrows_for_generic_args))]

pub mod abandon;
pub mod api;
pub mod chart;
#[cfg(test)]
mod crash_points;
pub mod driver;
pub mod git;
pub mod kinds;
#[cfg(any(test, feature = "memory"))]
pub mod memory;
pub mod object;
pub mod people;
pub mod producer;
pub mod publish;
pub mod reconcile;
#[cfg(test)]
mod reconcile_tests;
pub mod remote;
pub mod rows;
pub mod store;
pub mod stores;
pub mod sync;
pub mod tenancy;
pub mod triggers;
