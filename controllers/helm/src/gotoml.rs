//! TOML as Helm's library reads and writes it: values come in, text goes out, and back.
mod decode;
mod encode;

pub(crate) use decode::decode;
pub(crate) use encode::{Unwritten, encode};
