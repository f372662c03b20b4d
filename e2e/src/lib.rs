//! Runs real control planes on this machine for tests, the demo and benchmarks.
//!
//! [`bed::Bed`] is the way in: it finds or builds the programs, starts them under a supervisor that leaves nothing behind,
//! and answers once every plane is ready for objects.

pub mod audit;
pub mod bed;
pub mod before;
mod diagnose;
pub mod fake_edges;
pub mod git_server;
pub mod hostile;
pub mod https;
pub mod kubectl;
pub mod launch;
pub mod operator;
pub mod package;
pub mod patches;
pub mod programs;
pub mod public;
pub mod random;
pub mod registry;
pub mod repository;
pub mod secrets;
pub mod skip;
pub mod starts;
pub mod supervisor;
pub mod tls_proxy;
pub mod tokens;
pub mod usage;
pub mod wait;
