//! Stores revisions on the hub and reads them back: AppContexts, packs and shards.
//!
//! The write-ahead order is kept here and where rows are targeted, above: contents are acknowledged before a shard names them, and a shard names
//! them before a worker acts.

use std::time::Duration;

mod cache;
mod caches;
mod collect;
mod commit;
mod content;
mod context;
mod explain;
mod forget;
mod history;
mod limit;
mod load;
mod outcome;
pub(crate) mod own_shards;
mod packs;
mod pending_report;
pub mod plan_details;
mod recent_placements;
mod release_proofs;
mod shards;
mod taken_back;
mod turns;
mod write_cache;

pub(crate) use cache::waiting_key;
pub use caches::{RevisionSettings, Revisions};
pub(crate) use collect::each_of;
pub use collect::{Collector, request as request_collection};
pub(crate) use commit::store_pack;
pub use commit::{Draft, OfDeployment, commit};
pub(crate) use content::{Contents, contents as contents_of};
pub use context::StoreContext;
pub use explain::explain;
pub(crate) use explain::sweep as sweep_explanations;
pub use forget::{forget_gone, run as give_back};
pub(crate) use history::remove_context;
pub use history::{prune_history, same_place};
pub use limit::{Bound, Limit, TooMuch, mebibytes};
pub(crate) use load::load;
pub use load::{
    Stored, Unavailable, are_of, contexts, mixed, newest, of_a_later_format, revision, targeted, targets,
};
pub use outcome::{
    RevisionCounts, Seen, is_unreported, mark_targeted, record_outcome, report_delay, take_summary,
    was_complete,
};
pub use own_shards::all_shown;
pub(crate) use packs::read_pack;
pub use pending_report::RevisionSummary;
pub use recent_placements::recent_placements;
pub(crate) use release_proofs::ListedHolders;
pub(crate) use shards::{
    all_shards, empty, live_shards, replace, shards_with_row, shards_within, stored_shards,
};
pub use shards::{named_by_shards, shards};
pub use taken_back::{is_taken_back, take_back};
pub use turns::Turn;

/// What the hub has and the watch did not show is looked for again after this time.
pub const SHOWN: Duration = Duration::from_secs(1);
