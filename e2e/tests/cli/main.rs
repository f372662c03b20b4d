//! In: `kubectl emco` as people run it, on a real hub with real edges. Out: what it says and makes, with its exit code; what it
//! refuses, with a sentence.

mod add;
mod looks;
mod rig;
mod shells;
mod silence;
