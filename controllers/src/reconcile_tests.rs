//! Runs reconcilers to rest against a hub in memory, on objects as administrators make them.

mod abandoned;
mod behind;
mod chart_sources;
mod clocks;
mod clusters;
mod collection;
mod connected;
mod copied;
mod crashes;
mod credentials;
mod deaths;
mod deployments;
mod explained;
mod faults;
mod forgotten;
mod growing;
mod kept_charts;
mod life;
mod log;
mod logged;
mod long_plans;
mod lost;
mod many;
mod orders;
mod orphans;
mod pinned;
mod planted;
mod quiet;
mod remarks;
mod renamed;
mod restored;
mod rig;
mod rights;
mod shop;
mod stored;
mod suspended;
mod taken;
mod thousand;
mod unseen;
mod upgrades;
mod usual;
mod warned;

mod world;

pub use log::Log;
pub use rig::Rig;
