//! Writes what clusters are to have into shards, and keeps that true: growth, repair, removal.

mod grow;
mod leaving;
mod lost_content;
mod removal;
mod repair;
mod retarget;
pub mod shard_sums;

pub use leaving::leaving;
pub use lost_content::{lost_content, search_confirmed};
pub(crate) use removal::remove_shard;
pub use removal::{Removal, has_rows, remove_all};
pub use repair::{invalidate_lost, repair_packs};
pub use retarget::keep;
pub(crate) use retarget::{Retargeted, retarget};
