//! Removes objects of an earlier revision before anything of the target is applied, where the owner wants it so, and names the
//! object that keeps such a removal from its end.

use std::time::Duration;

use emco_crds::deployment_intent_group::sync::PrunePolicy;
use emco_crds::sync_shard::status::RowError;
use emco_engine::identity::Identity;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::work::Work;
use super::Job;
use super::desired::{App, PruneSet};
use super::row::Facts;

/// A removal takes its time: it is named after this time without progress.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// What waits, and why.
const WAITS: &str = "nothing of this revision is applied before it is gone (spec.sync.prune: Before): ";

impl Job {
    /// Whether what the target does not have goes before anything of the target comes.
    pub(super) fn prunes_first(&self) -> bool {
        !self.memory.settled && self.memory.pace.prune == PrunePolicy::Before
    }

    /// Removes what the target does not have; true when nothing of it is left. Lost content blocks, too: what has to go is not
    /// known then.
    pub(super) async fn make_room(
        &mut self,
        work: &Work,
        apps: &[App],
        pruned: &mut PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        if pruned.lost || !self.find_unowned(work, apps, pruned, session, facts).await {
            return false;
        }
        let pruned = &self.spare_waiting(work, apps, pruned);
        if pruned.objects.is_empty() {
            return true;
        }
        let mut removal = Facts::default();
        if self.retire(work, apps, pruned, session, &mut removal).await {
            return true;
        }
        let waited = self.memory.progress.0.elapsed() >= PATIENCE;
        match &mut removal.error {
            Some(error) if removal.failure || waited => name_block(error, &mut removal.words),
            Some(_) => {}
            None => self.name_leaving_of(WAITS, BLOCKED, &mut removal),
        }
        facts.absorb(removal);
        false
    }

    /// Names the first object that a removal found on its way out, once it did not get there for a while.
    fn name_leaving_of(&self, what: &str, reason: &'static str, removal: &mut Facts) {
        if let Some((id, text)) = removal.leaving.take() {
            self.name_late(None, &id, &Trouble::new(reason, &format!("{what}{text}"), Retry::Soon), removal);
        }
    }

    /// The same of a removal that holds up nothing but its own end: that takes as long as a finalizer wants, and fails with
    /// `spec.progressDeadline`.
    pub(super) fn name_unended(&self, facts: &mut Facts) {
        if facts.error.is_none() {
            self.name_leaving_of("", LEAVES, facts);
        }
    }

    /// Names an object whose end is awaited, once nothing went forward for a while.
    pub(super) fn name_late(&self, app: Option<&str>, id: &Identity, trouble: &Trouble, facts: &mut Facts) {
        let due = self.memory.progress.0 + PATIENCE;
        if Instant::now() < due {
            facts.wake_at(due);
        } else {
            facts.trouble(app, Some(id), trouble, 1);
        }
    }
}

/// The reason where everything else waits for a removal.
pub(super) const BLOCKED: &str = "BlockedByPrune";
/// The reason where nothing else does.
pub(super) const LEAVES: &str = "Terminating";

/// Says of an object whose removal fails that everything else waits for it. What is said of hooks and of the cluster stays.
fn name_block(error: &mut RowError, words: &mut Option<String>) {
    if error.resource.is_none() || matches!(error.reason.as_str(), "HookFailed" | "Unreachable") {
        return;
    }
    let text = format!("{WAITS}{}: {}", error.reason, words.as_ref().unwrap_or(&error.message));
    let said = Trouble::new(BLOCKED, &text, Retry::Slowly);
    *words = said.whole.filter(|_| words.is_some());
    error.message = said.message;
    BLOCKED.clone_into(&mut error.reason);
}
