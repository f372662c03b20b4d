//! Reads and writes TOML as Helm's library does.
mod decode;
mod encode;

pub(crate) use decode::decode;
pub(crate) use encode::{Unwritten, encode};
