//! Remembers revisions that were just targeted, until people are informed of them.
//!
//! What people read (statuses, Events, explanations) and what only tidies up is no part of the way to the clusters. It waits
//! until they had their turn: writing it takes processor time from the applies. All of it follows from what is stored; what is
//! remembered here only delays it, and a process that begins remembers nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// What was targeted and not reported yet, by owner hash.
#[derive(Default)]
pub struct PendingReports(Mutex<BTreeMap<String, Pending>>);

struct Pending {
    /// The owner's generation that was planned.
    generation: i64,
    until: Instant,
    /// Revisions that were targeted, with what is new in them.
    revisions: BTreeMap<i64, RevisionSummary>,
}

/// What is reported of a revision once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionSummary {
    /// What differs from the one before; empty where the process that knew it is gone.
    pub text: String,
    /// Sentences for people.
    pub warnings: Vec<String>,
}

impl PendingReports {
    /// A revision was targeted: its report waits for up to `delay`.
    pub fn mark(
        &self,
        owner: &str,
        generation: i64,
        revision: i64,
        summary: RevisionSummary,
        delay: Duration,
    ) {
        let mut all = self.0.lock();
        let mut revisions = all.remove(owner).map(|pending| pending.revisions).unwrap_or_default();
        revisions.insert(revision, summary);
        all.insert(owner.to_owned(), Pending { generation, until: Instant::now() + delay, revisions });
    }

    /// How long the report of this generation still waits at most.
    pub fn left(&self, owner: &str, generation: i64) -> Option<Duration> {
        let until = self.0.lock().get(owner).filter(|pending| pending.generation == generation)?.until;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Whether this process targeted the revision and did not report it yet.
    pub fn contains(&self, owner: &str, revision: i64) -> bool {
        self.0.lock().get(owner).is_some_and(|pending| pending.revisions.contains_key(&revision))
    }

    /// What is new in a revision that is reported now.
    pub fn take(&self, owner: &str, revision: i64) -> RevisionSummary {
        let mut all = self.0.lock();
        let Some(pending) = all.get_mut(owner) else { return RevisionSummary::default() };
        let summary = pending.revisions.remove(&revision).unwrap_or_default();
        if pending.revisions.is_empty() {
            all.remove(owner);
        }
        summary
    }

    /// Forgets an owner that ended.
    pub fn forget(&self, owner: &str) {
        self.0.lock().remove(owner);
    }
}
