//! Paces corrections of one object that others change, delete or strip of our marks again and again, and names who does it.

use std::time::Duration;

use emco_crds::deployment_intent_group::sync::DriftPolicy;
use emco_engine::identity::Identity;
use tokio::time::Instant;

use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::desired::Item;
use super::row::{self, Facts};
use super::{Job, Key};

/// Corrections of one object after which it is a fight: from then on with long pauses, and reported.
const FIGHT: u32 = 5;
/// After this time without a round a fight counts as over.
const CALM: Duration = Duration::from_mins(10);

impl Job {
    /// Whether an object of a complete row may be made again now. Each round of a fight has a longer pause; where changes are
    /// only reported, the object stays away until another revision, unless it was deleted to be made again.
    pub(super) fn may_restore(&mut self, item: &Item, facts: &mut Facts) -> bool {
        if !self.memory.settled {
            return true;
        }
        if self.memory.pace.drift == DriftPolicy::Report {
            return self.memory.drift.is_awaited(&item.id);
        }
        let key = Key::Again(item.id.clone());
        if let Some(tries) = self.memory.backoff.waiting(&key) {
            facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
            return false;
        }
        true
    }

    /// Notes that an object was applied again because of others; false where it was not.
    pub(super) fn restored(&mut self, item: &Item) -> bool {
        let differed = self.memory.drift.differ.remove(&item.id.to_string());
        if differed.is_none() && !self.memory.settled {
            return false;
        }
        if differed.is_none() {
            count(&self.ctx.edge.metrics.drifts);
        }
        self.memory.drift.count_restored(&item.id);
        self.memory.drift.last = row::now(self);
        match differed.map(|differs| differs.by).filter(|by| !by.is_empty()) {
            Some(by) => self.again(item, "changed", &by),
            None => self.again(item, "deleted or replaced", "others"),
        }
        true
    }

    /// Counts one more round over an object, and says who is in it.
    pub(super) fn again(&mut self, item: &Item, what: &str, by: &str) {
        let key = Key::Again(item.id.clone());
        if self.memory.backoff.last(&key).is_some_and(|tries| tries.due + CALM < Instant::now()) {
            self.memory.backoff.worked(&key);
        }
        let times = self.memory.backoff.last(&key).map_or(1, |tries| tries.count + 1);
        let trouble = if times < FIGHT {
            let text = format!("{} was {what} by {by} and is applied again", item.id);
            Trouble::new("Conflict", &text, Retry::Soon)
        } else {
            let ways = if self.has_sync_policy() {
                "stop that, list the fields under spec.sync.ignore, or set spec.sync.drift: Report"
            } else {
                "stop that"
            };
            let text = format!(
                "{} is {what} again and again by {by}, and was put right {times} times: {ways}",
                item.id
            );
            Trouble::new("DriftFight", &text, Retry::Slowly)
        };
        self.memory.backoff.failed(key, trouble);
    }

    /// Fights that are not over, in the row.
    pub(super) fn tell_fights(&self, facts: &mut Facts) {
        let now = Instant::now();
        let fights = self.memory.backoff.all().filter_map(|(key, tries)| match key {
            Key::Again(id) if tries.trouble.reason == "DriftFight" && tries.due + CALM > now => {
                Some((id, tries))
            }
            _ => None,
        });
        let mut fights: Vec<_> = fights.collect();
        // The row has room for one: the first by name.
        fights.sort_by(|(a, _), (b, _)| Identity::cmp(a, b));
        for (id, tries) in fights {
            facts.trouble(None, Some(id), &tries.trouble, tries.count);
            facts.wake_at(tries.due + CALM);
        }
    }
}
