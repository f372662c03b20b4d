//! Abandons removal on clusters that stay unreachable, and remembers what is left there.

mod ledger;
mod retarget;
mod rows;

pub use ledger::{abandoned, owners_on, reconcile as reconcile_ledger};
pub use retarget::retarget;
pub use rows::{AbandonPolicy, abandon, annotation_error, command, next_abandon};
