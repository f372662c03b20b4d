//! Runs the process: watches and queues, the hub and its Lease, clocks, metrics.

pub mod account;
pub mod api;
pub mod context;
pub mod driver;
pub(crate) mod each_key;
pub mod hub;
pub mod installation;
pub mod key_queue;
pub mod lease;
pub mod metrics;
pub(crate) mod places;
pub mod plan_turns;
pub(crate) mod priority;
pub mod renders;
pub(crate) mod shares;
pub mod stores;
pub mod triggers;
pub(crate) mod turns;
pub mod unreachable;
pub mod world;
