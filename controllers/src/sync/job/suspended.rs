//! Turns a job from working to looking and back, as its owner is suspended and resumed.

use std::time::Duration;

use tokio::time::Instant;

use super::super::edge::Session;
use super::super::suspension::PassEnd;
use super::super::work::Work;
use super::desired::{App, Item};
use super::look::{Found, by_kind};
use super::row::Facts;
use super::{Job, Key};

/// Another try to look at objects that could not be read.
const AGAIN: Duration = Duration::from_secs(30);

impl Job {
    /// A new request to look now, or an edit of what may be done: what failed is tried again at once. Pauses of a fight over an
    /// object stay.
    pub(super) fn heed_policy(&mut self, work: &Work) {
        let policy = self.policy();
        if policy.tries_again(&self.memory.pace) {
            self.memory.backoff.retry_now(|key| !matches!(key, Key::Again(_)));
        }
        // Suspended and resumed within one pass: what was held back did not fail.
        let held_back = self.ctx.suspension.begin() && !policy.suspended;
        let turned = policy.suspended != self.memory.pace.suspended;
        self.memory.pace = policy;
        if turned {
            self.time.wish(self.waits_for_nobody(work));
        }
        if turned || held_back {
            self.begin_anew();
        }
    }

    /// The owner was suspended or resumed: what failed before counts no more, and no time ran meanwhile.
    fn begin_anew(&mut self) {
        self.memory.backoff.forget(|key| !matches!(key, Key::Again(_)));
        self.memory.gone.clear();
        self.memory.taken.clear();
        self.memory.early = None;
        let now = Instant::now();
        self.memory.progress.0 = now;
        for begun in self.memory.running.values_mut() {
            *begun = now;
        }
    }

    /// Whether nobody waits for the row: it is as wanted, or only a person or the return of its cluster lets it go on.
    pub(super) fn waits_for_nobody(&self, work: &Work) -> bool {
        self.ctx.abandoned || self.memory.pace.suspended || self.is_complete(work)
    }

    /// Whether the owner was suspended or resumed since the pass began.
    pub(super) fn suspension_changed(&self) -> bool {
        let suspended = self.memory.pace.suspended;
        self.ctx.suspension.holds() != suspended || (!suspended && self.ctx.suspension.held_back())
    }

    /// Finds objects of others that the target takes as they are, by reading: the owner's label does not show them, and nothing is
    /// applied that would.
    pub(super) async fn find_taken(&mut self, apps: &[App], session: &Session, facts: &mut Facts) {
        let ours = |item: &Item| {
            self.ctx
                .edge
                .observed
                .get(&item.id)
                .is_some_and(|seen| seen.owner.as_ref() == Some(&self.ctx.owner.hash))
        };
        let items = apps.iter().flat_map(App::items).filter(|item| {
            (self.left_alone(item) || self.take_existing(item))
                && !self.memory.taken.contains_key(&item.id)
                && !ours(item)
        });
        for group in by_kind(items.cloned().collect()) {
            if self.stale() {
                return;
            }
            let Ok(found) = self.find(&group, session).await else {
                facts.wake_at(Instant::now() + AGAIN);
                continue;
            };
            let there = |item: &Item| matches!(found.get(&item.id.name), Some(Found::Object(_)));
            for item in group.iter().filter(|item| there(item)) {
                self.take(&item.id);
            }
        }
    }

    /// Whether the pass is over, for requests that are on their way to be sent.
    pub(super) fn pass_end(&self) -> PassEnd {
        let (input, suspension) = (self.input.clone(), self.ctx.suspension.clone());
        PassEnd { input, suspension, suspended: self.memory.pace.suspended }
    }
}
