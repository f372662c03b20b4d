//! What the publisher asks of a repository: the tip of a branch, what a commit has, and to move the branch from one commit to another.

use std::collections::BTreeMap;

use async_trait::async_trait;
use emco_engine::git::object::{Format, Id};

/// Why a repository could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `Unauthorized`, `Forbidden`, `RepositoryNotFound`, `TLSFailed`, `DNSFailed`, `Timeout`, `ConnectionRefused`, `AddressNotAllowed`,
    /// `ServerError`, `NotGit`, `RepositoryTooLarge`, `BranchNotFound`, `PushRefused`, `PushConflict`.
    pub reason: &'static str,
    /// A sentence without secrets.
    pub message: String,
}

impl Fault {
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Where a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// How the repository names objects.
    pub format: Format,
    /// None: the branch is not there.
    pub commit: Option<Id>,
    /// The repository has no branch at all.
    pub empty: bool,
}

/// What a commit has.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The commit itself.
    pub commit: Vec<u8>,
    /// All of its trees.
    pub trees: BTreeMap<Id, Vec<u8>>,
}

/// A move of the branch.
#[derive(Clone, Debug)]
pub struct Push {
    pub format: Format,
    /// The branch is there now; none: it is to be made.
    pub old: Option<Id>,
    pub new: Id,
    pub pack: Vec<u8>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    Done,
    /// In the server's words: the branch is elsewhere, or the server wants no such push.
    Refused(String),
}

/// A branch of a repository.
#[async_trait]
pub trait Remote: Send + Sync + 'static {
    /// Where the branch is now.
    async fn tip(&self) -> Result<Tip, Fault>;

    /// What a commit has.
    async fn snapshot(&self, commit: Id) -> Result<Snapshot, Fault>;

    /// The content of a file.
    async fn blob(&self, id: Id) -> Result<Vec<u8>, Fault>;

    /// Moves the branch, if it is where it is said to be. After an error nobody knows whether it moved.
    async fn push(&self, push: &Push) -> Result<Pushed, Fault>;
}
