//! What the watches show of our objects in, changes by others out: told in the row. Changed fields are not corrected yet;
//! deleted objects and other manifests are, at a pace that ends no fight by force.

use std::collections::BTreeMap;

use emco_crds::RowStatus;
use emco_crds::fields::Time;
use emco_crds::sync_shard::status::{RowDrift, RowDrifted};
use emco_engine::drift;

use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::desired::{App, Item};
use super::row::Facts;
use super::{Job, Key};

/// Changes by others since the row was completed. A job that begins goes on with what the row says.
#[derive(Default)]
pub(super) struct Drift {
    corrected: i64,
    last: Option<Time>,
    /// By the text of the identity: objects that differ.
    differ: BTreeMap<String, Differs>,
}

struct Differs {
    /// What our own apply left us with.
    baseline: String,
    by: String,
}

impl Drift {
    pub fn of(status: &RowStatus) -> Self {
        let Some(RowDrift { corrected, reported: _, objects, last }) = status.drift.clone() else {
            return Self::default();
        };
        let differ = objects.into_iter().map(|object| {
            let RowDrifted { resource, by, fields } = object;
            (resource, Differs { baseline: fields, by })
        });
        Self { corrected, last, differ: differ.collect() }
    }

    /// For the row; `None` where nobody changed anything.
    pub fn row(&self) -> Option<RowDrift> {
        let Self { corrected, last, differ } = self;
        if *corrected == 0 && differ.is_empty() {
            return None;
        }
        let object = |(resource, Differs { baseline, by }): (&String, &Differs)| RowDrifted {
            resource: resource.clone(),
            by: by.clone(),
            fields: baseline.clone(),
        };
        Some(RowDrift {
            corrected: *corrected,
            reported: i64::try_from(differ.len()).unwrap_or(i64::MAX),
            objects: differ.iter().map(object).collect(),
            last: last.clone(),
        })
    }

    /// Another target was completed: corrections are counted anew. What differs still does.
    pub fn completed(&mut self) {
        self.corrected = 0;
        if self.differ.is_empty() {
            self.last = None;
        }
    }
}

impl Job {
    /// Finds objects of which others took or changed fields of ours since our apply, or since they were first seen.
    pub(super) fn drifted(&mut self, apps: &[App]) {
        let manifests = apps.iter().flat_map(|app| app.set.manifests.iter().map(|manifest| &manifest.json));
        let scaled = drift::scaled(manifests);
        let mut before = std::mem::take(&mut self.memory.drift.differ);
        for item in apps.iter().flat_map(|app| &app.items) {
            let Some(seen) = self.ctx.edge.observed.get(&item.id) else { continue };
            if seen.owner.as_ref() != Some(&self.ctx.hash) || seen.manifest.as_ref() != Some(&item.token) {
                continue;
            }
            let now = seen.fields.clone().unwrap_or_default();
            let known = if before.is_empty() { None } else { before.remove_entry(&item.id.to_string()) };
            // Known from the row, after a restart; otherwise as it is seen first.
            let first = || known.as_ref().map_or_else(|| now.clone(), |(_, known)| known.baseline.clone());
            let baseline = self.memory.baseline.entry(item.id.clone()).or_insert_with(first).clone();
            if drift::same(&baseline, &now, scaled.contains(&item.id)) {
                continue;
            }
            if known.is_none() {
                count(&self.ctx.edge.metrics.drifts);
                self.memory.drift.last = super::row::now(self);
            }
            let by = seen.managers.join(", ");
            self.memory.drift.differ.insert(item.id.to_string(), Differs { baseline, by });
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
            self.memory.drift.corrected += 1;
            self.memory.drift.last = super::row::now(self);
            let text = format!("{} was deleted or replaced by others and is made again", item.id);
            self.memory
                .backoff
                .failed(Key::Again(item.id.clone()), Trouble::new("Conflict", &text, Retry::Soon));
        }
    }
}
