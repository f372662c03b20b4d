//! Finds on the cluster which hooks ran, where the row's status says nothing: it is new, or its status was not restored.

use emco_crds::sync_shard::status::RowHooks;

use super::super::Job;
use super::super::desired::{App, Item};
use crate::sync::work::Work;

/// Record of a row: apps of which an earlier revision was found on the cluster. No set has such a digest.
const UPGRADE: &str = "upgrade";
/// Record of a row: sets whose objects were found on the cluster, so that their hooks before the installation ended.
const INSTALLED: &str = "installed";

impl Job {
    /// Records what the cluster proves of hooks where the row says nothing of work, such as after a restore without statuses. Once, and
    /// before anything is reported or sent: applying hides the proof, and a report says that there was work.
    pub(in crate::sync::job) async fn record_past(&mut self, work: &Work, apps: &[App]) {
        self.memory.unsent = false;
        if !std::mem::take(&mut self.memory.blank) {
            return;
        }
        let (mut upgraded, mut installed) = (Vec::new(), Vec::new());
        for app in apps {
            if self.ran_as_upgrade(app) || self.is_there(work, app, |is_of_target| !is_of_target) {
                upgraded.push(app.name.to_string());
            } else if !app.hooks("pre-install").is_empty() && self.is_there(work, app, |_| true) {
                installed.push(app.digest().0.clone());
            }
        }
        let found = [(UPGRADE, upgraded), (INSTALLED, installed)];
        let recorded = self.memory.hooks.len();
        for (set, done) in found.into_iter().filter(|(_, done)| !done.is_empty()) {
            self.memory.hooks.push(RowHooks { set: set.to_owned(), done });
        }
        if self.memory.hooks.len() > recorded {
            self.record_hooks(work).await;
        }
    }

    /// Whether an app of which nothing was completely applied, as far as the row says, is on the cluster in an earlier revision.
    pub(in crate::sync::job) fn is_upgrade(&self, app: &App) -> bool {
        self.is_recorded(UPGRADE, &app.name) || self.ran_as_upgrade(app)
    }

    /// Whether the hooks of an event ended before the row's status was lost.
    pub(super) fn is_past(&self, app: &App, event: &str) -> bool {
        event == "pre-install" && self.is_recorded(INSTALLED, &app.digest().0)
    }

    pub(super) fn is_recorded(&self, set: &str, done: &str) -> bool {
        self.memory.hooks.iter().any(|record| record.set == set && record.done.iter().any(|d| d == done))
    }

    /// Whether an object of the app that `counts`, asked with whether it is as the target has it, is on the cluster. Objects are sent
    /// when the hooks before the installation ended. What was given up and is taken back is another life, with hooks of its own.
    fn is_there(&self, work: &Work, app: &App, counts: impl Fn(bool) -> bool) -> bool {
        let taken_back =
            !work.held_identities.is_empty() || work.held.iter().any(|(_, held)| held.is_found());
        let [_, waves @ ..] = &app.stages;
        let there = |item: &Item| {
            let seen = self.ctx.edge.observed.get(&item.id);
            seen.is_some_and(|seen| {
                seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                    && counts(seen.manifest.as_deref() == Some(&*item.token))
            })
        };
        !taken_back && waves.iter().flatten().any(there)
    }

    /// Whether hooks of an upgrade to this very set are on the cluster: they ran, and the status that said so was not restored.
    fn ran_as_upgrade(&self, app: &App) -> bool {
        ["pre-upgrade", "post-upgrade"].iter().flat_map(|event| app.hooks(event)).any(|hook| {
            self.ctx.edge.observed.get(&hook.id).is_some_and(|seen| {
                seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                    && seen.manifest.as_deref() == Some(&*hook.token)
            })
        })
    }
}
