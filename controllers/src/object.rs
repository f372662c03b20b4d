//! Reads and writes what objects of all kinds have: metadata, status, Events and finalizers.

pub mod context;
pub mod events;
pub mod failing;
pub mod finalizers;
mod log_fields;
pub mod meta;
pub mod newborn;
mod owner;
pub mod refusals;
pub mod stamp;
pub mod status;
pub mod transitions;

pub use log_fields::{LogFields, one_line};
pub use owner::Owner;
