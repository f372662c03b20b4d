//! Writes to a cluster through its branch: files are put and taken off, and nothing else is written at all.

use std::sync::Arc;

use emco_engine::git::files::OwnerText;
use emco_engine::identity::Identity;

use super::super::errors::{Retry, Trouble};
use super::super::suspension::HELD_BACK;
use super::{Edge, NoSession, Session};
use crate::api::{ApiError, Request};
use crate::publish::remote::Fault;
use crate::publish::{Branch, File, NotReady};

/// What a write through Git came to that could not be handed over.
fn refused(why: NotReady) -> Trouble {
    match why {
        NotReady::Awaited => Trouble::new("Progressing", AWAITED, Retry::Soon),
        NotReady::Failed(fault) => trouble(&fault),
    }
}

/// The trouble of a row whose branch cannot be written.
fn trouble(fault: &Fault) -> Trouble {
    Trouble::new("TargetNotReady", &fault.message, Retry::Soon)
}

const AWAITED: &str = "the branch of the cluster is being read";

impl Edge {
    /// The branch that the cluster is written to; none where it is written directly.
    pub(super) fn branch(&self) -> Result<Option<Arc<Branch>>, NoSession> {
        let Some(branch) = self.publishers.branch(&self.id) else { return Ok(None) };
        match branch.ready() {
            Ok(()) => Ok(Some(Arc::new(branch))),
            Err(NotReady::Awaited) => Err(NoSession::Awaited),
            Err(NotReady::Failed(fault)) => Err(NoSession::Refused(trouble(&fault))),
        }
    }

    /// Whether the cluster is written through Git. Its mark is in the claim of the branch.
    pub fn is_on_git(&self) -> bool {
        self.publishers.branch(&self.id).is_some()
    }

    /// Wakes the jobs of a cluster whose branch can be written now, or cannot any more.
    pub fn refresh_branch(&self) {
        let now = self.publishers.branch(&self.id).map(|branch| (branch.publisher(), branch.ready()));
        let mut before = self.branch_ready.lock();
        if *before != now {
            *before = now;
            drop(before);
            self.link.send_modify(|_| {});
        }
    }

    /// Why a request is not sent: the cluster is written through Git.
    pub(super) fn not_on_git(&self, request: &Request) -> Option<ApiError> {
        self.publishers.branch(&self.id)?;
        let message = format!(
            "NotSupportedByGit: {:?} {} is not sent, since cluster {} is written through Git",
            request.method,
            request.path.as_str(),
            self.id
        );
        let reason = "NotSupportedByGit".to_owned();
        Some(ApiError::Status { code: 405, reason, message, retry_after: None, causes: Vec::new() })
    }
}

impl Session {
    /// The branch that the cluster is written to; none where it is written directly.
    pub fn branch(&self) -> Option<&Branch> {
        self.branch.as_deref()
    }

    /// Hands a file over; answers what [`Self::settled`] waits for.
    pub fn put(&self, file: &File<'_>, text: impl FnOnce() -> String) -> Result<u64, Trouble> {
        let branch = self.writable()?;
        branch.put(file, text).map_err(refused)
    }

    /// Takes files off; answers what [`Self::settled`] waits for.
    pub fn take_off<'a>(
        &self,
        owner: &OwnerText,
        ids: impl IntoIterator<Item = &'a Identity>,
        revision: i64,
    ) -> Result<u64, Trouble> {
        let branch = self.writable()?;
        branch.take_off(owner, ids, revision).map_err(refused)
    }

    /// Waits until the branch has what an owner handed over.
    pub async fn answered(&self, owner: &OwnerText, wish: u64) -> Result<(), Trouble> {
        match self.branch() {
            Some(branch) => branch.settled(owner, wish).await.map_err(|fault| trouble(&fault)),
            None => Ok(()),
        }
    }

    /// The branch, if the owner may write now.
    fn writable(&self) -> Result<&Branch, Trouble> {
        if self.suspension.holds_back() {
            return Err(Trouble::new("Progressing", HELD_BACK, Retry::Soon));
        }
        self.branch().ok_or_else(|| refused(NotReady::Awaited))
    }
}
