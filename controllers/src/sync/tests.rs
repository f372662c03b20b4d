//! The engine against servers in memory: a hub with packs, `AppContexts` and shards, and edges that can be lost.

mod answers;
mod crash;
mod drift;
mod early;
mod errors;
mod hooks;
mod install;
mod lost;
mod notes;
mod rig;
mod silence;
mod together;
mod world;
