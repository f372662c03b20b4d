//! The pure half of EMCO: a snapshot of what people wrote and what is known of the clusters becomes a plan; a plan
//! becomes packs and shard rows; what was observed becomes health, counts and conditions. No client, no runtime, no
//! clock: Cargo enforces it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Refusals travel boxed everywhere: a result is mostly no refusal, and should not be as large as one.
#![allow(clippy::unnecessary_box_returns, clippy::vec_box)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod act;
pub mod adopt;
pub mod apis;
pub mod approval;
pub mod canonical;
pub mod changes;
pub mod cloud;
pub mod cluster_maps;
pub mod conditions;
pub mod depends;
pub mod drift;
pub mod edits;
pub mod explain;
pub mod git;
pub mod hardware;
pub mod health;
pub mod hold;
pub mod holders;
pub mod identity;
pub mod inputs;
pub mod manifests;
pub mod marks;
pub mod normalise;
pub mod order;
pub mod pack;
pub mod path;
pub mod people;
pub mod pin;
pub mod place;
pub mod plan;
pub mod recreate;
pub mod refusal;
pub mod resolve;
pub mod role;
pub mod rollout;
pub mod rollup;
pub mod selector;
pub mod set;
pub mod shard;
pub mod snapshot;
pub mod terms;
pub mod text;
pub mod traffic;
pub mod unsupported;
pub mod values;

pub use place::placement;
pub use plan::written;
