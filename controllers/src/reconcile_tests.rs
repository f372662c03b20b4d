//! Objects as administrators make them in, reconcilers run to rest against a hub in memory, what is stored out.

mod abandoned;
mod clocks;
mod clusters;
mod collection;
mod connected;
mod crashes;
mod credentials;
mod deaths;
mod deployments;
mod explained;
mod faults;
mod growing;
mod life;
mod lost;
mod many;
mod orders;
mod orphans;
mod quiet;
mod renamed;
mod restored;
mod rig;
mod rights;
mod shop;
mod stored;
mod thousand;

pub use rig::Rig;
mod world;
