//! What the watches show of our objects in, changes by others out: counted once each. Fields are not corrected yet;
//! deleted objects and other manifests are, at a pace that ends no fight by force.

use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::desired::{App, Item};
use super::row::Facts;
use super::{Job, Key};

impl Job {
    /// Counts objects whose fields of ours others took or changed since our apply, or since they were first seen.
    pub(super) fn drifted(&mut self, apps: &[App]) {
        for item in apps.iter().flat_map(|app| &app.items) {
            let Some(seen) = self.ctx.edge.observed.get(&item.id) else { continue };
            if seen.owner.as_ref() != Some(&self.ctx.hash) || seen.manifest.as_ref() != Some(&item.token) {
                continue;
            }
            let Some(fields) = seen.fields.clone() else { continue };
            let before = self.memory.baseline.insert(item.id.clone(), fields.clone());
            if before.is_some_and(|before| before != fields) {
                count(&self.ctx.edge.metrics.drifts);
            }
        }
    }

    /// Whether an object of a complete row may be made again now. Whoever keeps deleting it meets longer and longer pauses.
    pub(super) fn may_restore(&mut self, item: &Item, facts: &mut Facts) -> bool {
        if !self.memory.settled {
            return true;
        }
        let key = Key::Again(item.id.clone());
        if let Some(tries) = self.memory.backoff.waiting(&key) {
            facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
            return false;
        }
        true
    }

    /// Notes that an object of a complete row was made again.
    pub(super) fn restored(&mut self, item: &Item) {
        if self.memory.settled {
            count(&self.ctx.edge.metrics.drifts);
            let text = format!("{} was deleted or replaced by others and is made again", item.id);
            self.memory
                .backoff
                .failed(Key::Again(item.id.clone()), Trouble::new("Conflict", &text, Retry::Soon));
        }
    }
}
