//! In: `kubectl emco` as people run it, on a real hub with real edges. Out: what it says and makes, with its exit code; what it
//! refuses, with a sentence.

mod add;
mod adopt;
mod answers;
mod check;
mod decide;
mod digest;
mod edges;
mod files;
mod hold;
mod intents;
mod least;
mod listed;
mod looks;
mod members;
mod now;
mod objects;
mod past;
mod plan;
mod pushed;
mod reach;
mod refused;
mod remove;
mod renewed;
mod rig;
mod rights;
mod role;
mod rotate;
mod shells;
mod silence;
mod tab;
mod tested;
mod through_git;
mod untested;
mod waves;
