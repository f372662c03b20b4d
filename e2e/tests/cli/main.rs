//! In: `kubectl emco` as people run it, on a real hub with real edges. Out: what it says and makes, with its exit code; what it
//! refuses, with a sentence.

mod add;
mod adopt;
mod check;
mod decide;
mod digest;
mod edges;
mod files;
mod hold;
mod looks;
mod now;
mod objects;
mod past;
mod plan;
mod refused;
mod remove;
mod rig;
mod rights;
mod role;
mod rotate;
mod shells;
mod silence;
mod tab;
mod tested;
mod untested;
