//! The dashboard as people use it: real Chromium on a real hub with two real edges, for users with different rights.

mod approving;
mod away;
mod everybody;
mod failing;
mod hostile;
mod input;
mod program;
mod rights;
mod screen;
mod soak;
mod stage;
