//! Kinds of intents: they change what charts make, or add to it, and deployments list them.

pub mod generic_action_intent;
pub mod hardware_intent;
pub mod traffic_group_intent;
