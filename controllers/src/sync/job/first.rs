//! Removes objects of an earlier revision before anything of the target is applied, where the owner wants it so, and names the
//! object that keeps such a removal from its end.

use std::time::Duration;

use emco_crds::deployment_intent_group::sync::PrunePolicy;
use emco_crds::sync_shard::status::RowError;
use emco_engine::identity::Identity;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble, cut};
use super::super::observe::Seen;
use super::super::work::Work;
use super::Job;
use super::desired::{App, PruneSet};
use super::row::Facts;

/// A removal takes its time: it is named after this time without progress.
const PATIENCE: Duration = Duration::from_secs(10);
/// What waits, and why.
const WAITS: &str = "nothing of this revision is applied before it is gone (spec.sync.prune: Before)";

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
            Some(error) if removal.failure || waited => name_block(error),
            Some(_) => {}
            None => self.name_unended(pruned, &mut removal),
        }
        facts.absorb(removal);
        false
    }

    /// Names the first object that is on its way out and does not get there.
    fn name_unended(&self, pruned: &PruneSet, removal: &mut Facts) {
        let open = pruned.objects.keys().filter(|id| !self.memory.gone.contains(id));
        let mut leaving = open.filter_map(|id| Some((id, self.ctx.edge.observed.get(id)?)));
        if let Some((id, seen)) = leaving.find(|(_, seen)| seen.deleting) {
            let text = format!("{WAITS}: {}", going(&seen));
            self.name_late(None, id, &text, removal);
        }
    }

    /// Names an object whose end is awaited, once nothing went forward for a while.
    pub(super) fn name_late(&self, app: Option<&str>, id: &Identity, text: &str, facts: &mut Facts) {
        let due = self.memory.progress.0 + PATIENCE;
        if Instant::now() < due {
            facts.wake_at(due);
        } else {
            facts.trouble(app, Some(id), &Trouble::new(BLOCKED, text, Retry::Soon), 1);
        }
    }
}

/// The reason.
const BLOCKED: &str = "BlockedByPrune";

/// How an object leaves.
pub(super) fn going(seen: &Seen) -> String {
    match &seen.held_by {
        Some(finalizers) => format!("it is being deleted and waits for its finalizers: {finalizers}"),
        None => "it is being deleted, and its end is awaited".to_owned(),
    }
}

/// Says of an object whose removal fails that everything else waits for it. What is said of hooks and of the cluster stays.
fn name_block(error: &mut RowError) {
    if error.resource.is_none() || matches!(error.reason.as_str(), "HookFailed" | "Unreachable") {
        return;
    }
    error.message = cut(&format!("{WAITS}: {}: {}", error.reason, error.message));
    BLOCKED.clone_into(&mut error.reason);
}
