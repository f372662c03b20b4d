//! The engine against servers in memory: a hub with packs, `AppContexts` and shards, and edges that can be lost.

mod absence;
mod adopt;
mod answers;
mod crash;
mod deaths;
mod drift;
mod early;
mod errors;
mod fairness;
mod hooks;
mod install;
mod lost;
mod namespaces;
mod notes;
mod prune;
mod recreate;
mod restored;
mod rig;
mod rivals;
mod scope;
mod silence;
mod suspended;
mod together;
mod unready;
mod unwatched;
mod world;
