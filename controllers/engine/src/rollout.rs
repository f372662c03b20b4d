//! Takes a revision to its clusters in waves: which cluster goes when ([`Waves::freeze`]), and how far a rollout may go now
//! ([`step`]).
//!
//! Both are functions of what is stored and observed. What a step remembers is how far the rollout was ([`Progress`], in the
//! deployment's status) and since when; where that is lost, nothing that was given is taken away, and soaks begin anew.

mod freeze;
mod standing;
mod step;

#[cfg(test)]
mod tests;

pub use freeze::{Earlier, Frozen, LAST, Outline, Waves};
pub use standing::{Standings, standings};
pub use step::{Bounds, Gate, Halt, Phase, Progress, Standing, Step, step};
