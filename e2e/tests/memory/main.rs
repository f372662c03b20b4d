//! In: the same requests to a real API server and to the one in memory. Out: whether the second answers as the first, so that
//! what reconcilers are shown in fast tests is what they meet.

// Paths are whole texts here.
#![allow(clippy::disallowed_methods)]

mod more;
mod pair;
mod random;
mod scripts;
