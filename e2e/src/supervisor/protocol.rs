//! Defines the messages between the library and the supervisor, one JSON object per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// What messages call it, such as `edge-a/kube-apiserver`.
    pub name: String,
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables beside those inherited.
    pub env: BTreeMap<String, String>,
    /// The file that takes its output and its errors, appended.
    pub log: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub id: u64,
    pub wish: Wish,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Wish {
    /// Where is the folder for data?
    Root,
    /// Wait until the machine has room for this many control planes.
    Lease {
        planes: usize,
        /// The process has another bed, which waits for this one.
        #[serde(default)]
        beside: bool,
    },
    /// Start a program.
    Start(ProgramSpec),
    /// Send a signal; `Kill` and `Terminate` are answered when the program has ended.
    Signal { process: u64, signal: ProcessSignal },
    /// Listen on a port and hand bytes to another port of this machine.
    Proxy { to: u16 },
    /// What the line behaves like from now on.
    SetLine { proxy: u64, line: Line },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProcessSignal {
    Stop,
    Continue,
    Terminate,
    Kill,
}

/// What a network line behaves like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// Bytes pass.
    Good,
    /// Each piece of up to 16 KiB is this many milliseconds late, in both directions.
    Slow(u64),
    /// Nothing passes and nothing is closed: a black hole.
    Silent,
    /// Connections are closed, new ones too.
    Refusing,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The answer to a request.
    Answer { id: u64, result: Result<Answer, String> },
    /// A program ended.
    Ended { process: u64, how: String },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Root(PathBuf),
    Done,
    Started { process: u64, pid: u32 },
    Proxy { proxy: u64, port: u16 },
}
