//! Owns all programs and proxies of a bed in one process, and takes them along when it ends.
//!
//! The supervisor is this crate's own binary. It ends when its standard input closes, whatever closed it: the end of the
//! tests, a panic, Ctrl-C or `kill -9`. Then every program is killed and the folder with all data is removed. Should
//! the supervisor itself be killed, the kernel ends the programs, and the next supervisor removes the folder.

mod client;
mod protocol;
mod proxy;
mod root;
mod serve;
mod slots;

pub use client::{Process, Proxy, Supervisor};
pub use protocol::{Line, ProgramSpec};
pub use serve::serve;
