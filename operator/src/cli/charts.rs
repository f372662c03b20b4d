//! Commands on charts: what packs one for the hub, and what runs the tests of those that are deployed.

pub mod push;
pub mod tested;
