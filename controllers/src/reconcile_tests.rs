//! Objects as administrators make them in, reconcilers run to rest against a hub in memory, what is stored out.

mod clusters;
mod rig;
mod stored;
