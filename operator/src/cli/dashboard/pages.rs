//! Pages as pure functions: what is known of the hub becomes markup.

pub mod clusters;
pub mod deployment;
pub mod deployments;
pub mod failure;
mod plan;
pub mod reasons;
mod record;
#[cfg(test)]
mod tests;
