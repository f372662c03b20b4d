//! Remembers what earlier sets said in lists that others add to: what a new set does not say of it any more goes, and what is
//! others' stays.

use emco_engine::drift::joint;
use serde_json::Value;

use super::super::super::observe::Seen;
use super::super::super::work::Work;
use super::super::Job;
use super::super::desired::{App, Item};

impl Job {
    /// Others have a list that the manifest says entries of, and made something of it since it was looked at.
    pub(super) fn is_unlooked(&self, item: &Item, seen: &Seen) -> bool {
        self.memory.drift.shared.get(&item.id) != seen.shared.as_ref()
            && item.manifest().is_some_and(|manifest| !joint::entries(&manifest.json).is_empty())
    }

    /// Reads what the last complete state and what came after it said, while the target is not complete. What cannot be read counts as
    /// others': nothing of it is removed.
    pub(in super::super) async fn find_said(&mut self, work: &Work, apps: &[App]) {
        self.memory.said.clear();
        let has_list = |app: &App| app.set.set.manifests.iter().any(|m| joint::field(&m.json).is_some());
        if self.memory.settled || !apps.iter().any(has_list) {
            return;
        }
        let held = work.held.iter().filter(|(since, _)| self.counts(*since)).map(|(_, named)| named);
        let earlier: Vec<_> = self.memory.applied_named.iter().chain(held).cloned().collect();
        for named in earlier {
            let source = self.source(&named);
            for digest in named.apps.values() {
                let Ok(set) = self.ctx.content.set(&source, digest).await else { continue };
                for (manifest, id) in set.set.manifests.iter().zip(&set.ids) {
                    let said: &[Value] = joint::entries(&manifest.json);
                    if !said.is_empty() {
                        self.memory.said.entry((**id).clone()).or_default().extend_from_slice(said);
                    }
                }
            }
        }
    }
}
