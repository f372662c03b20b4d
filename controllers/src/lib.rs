//! The shell around the engine: watches, gathering, the store, synchronising with remote clusters, status.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]
// Tests write whole paths, as texts and as references to them.
#![cfg_attr(test, allow(clippy::needless_borrows_for_generic_args))]

pub mod abandon;
pub mod chart;
#[cfg(test)]
mod crash_points;
#[cfg(any(test, feature = "memory"))]
pub mod memory;
pub mod object;
pub mod people;
pub mod reconcile;
#[cfg(test)]
mod reconcile_tests;
pub mod remote;
pub mod runtime;
pub mod store;
pub mod sync;
pub mod target;
pub mod tenancy;
