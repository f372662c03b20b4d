//! Speaks Git's protocol, version 2 for reading and `receive-pack` for writing: packets, packs, and the messages of both. What is asked
//! goes out as bytes, what is answered comes in as bytes; who carries them is the caller's.

mod limits;
pub mod pack;
pub mod packet;
pub mod packing;
pub mod receive;
#[cfg(test)]
pub(crate) mod testing;
pub mod upload;

pub use limits::GitLimits;
