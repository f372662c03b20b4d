//! Removes everything of an owner from a cluster, in reverse order, with the hooks that belong to it.

use emco_crds::sync_shard::status::Applied;
use emco_engine::identity::Identity;

use super::super::edge::Session;
use super::super::observe::Look;
use super::super::work::{Named, Work};
use super::Job;
use super::desired::{App, PruneSet};
use super::row::{Facts, deadline};

impl Job {
    pub(super) async fn remove(&mut self, work: &Work, session: &Session, facts: &mut Facts) {
        self.memory.settled = false;
        if self.is_complete(work) {
            return;
        }
        let nothing =
            Named { name: String::new(), revision: 0, apps: emco_engine::identity::Combination::new() };
        let Some((apps, mut pruned)) = self.content(work, &nothing, session, facts).await else { return };
        facts.wake_at(deadline(self));
        if !self.observed(session, &apps, &pruned, facts) {
            return;
        }
        let unowned = self.unowned(&apps, &pruned);
        pruned.objects.extend(unowned.objects);
        if self.memory.pace.suspended {
            let there = |id: &&Identity| !matches!(self.ctx.edge.observed.look(id), Look::Absent);
            facts.left = i64::try_from(pruned.objects.keys().filter(there).count()).unwrap_or(i64::MAX);
            return;
        }
        if self.searches(work) && !self.scanned(&mut pruned, &apps, session, facts).await {
            return;
        }
        if self.retire(work, &apps, &pruned, session, facts).await && !self.stale() {
            self.complete(work);
            self.memory.applied = Some(Applied { combination: None, generation: work.written });
        }
    }

    /// Removes what is pruned, around it the hooks of the apps that leave; true when nothing is left.
    pub(super) async fn retire(
        &mut self,
        work: &Work,
        stay: &[App],
        pruned: &PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let Some(applied) = self.memory.applied_named.clone() else {
            return self.observed(session, stay, pruned, facts)
                && self.prune(pruned, stay, session, facts).await;
        };
        let mut leaving = applied.clone();
        leaving.apps.retain(|app, _| !stay.iter().any(|stays| *stays.name == **app));
        let leaving = match self.apps(&leaving, session).await {
            Ok(leaving) => leaving,
            // Its hooks are lost with it.
            Err(trouble) if trouble.reason == "ContentLost" && self.searches(work) => Vec::new(),
            Err(trouble) => {
                self.content_failed(&trouble, facts);
                return false;
            }
        };
        if !self.observed(session, stay, pruned, facts) {
            return false;
        }
        facts.left = i64::try_from(pruned.objects.len()).unwrap_or(i64::MAX);
        let events = ["pre-delete", "post-delete"];
        for app in &leaving {
            if !self.hooks(work, app, "pre-delete", &events, session, facts).await {
                return false;
            }
        }
        // Objects of the hooks that come afterwards are removed when those have run.
        let mut first = PruneSet { objects: pruned.objects.clone(), ..PruneSet::default() };
        let mut last = PruneSet::default();
        for hook in leaving.iter().flat_map(|app| app.hooks("post-delete")) {
            if let Some(keep) = first.objects.remove(&*hook.id) {
                last.objects.insert(Identity::clone(&hook.id), keep);
            }
        }
        if last.objects.is_empty() {
            return self.prune(&first, stay, session, facts).await;
        }
        // Namespaces wait for the hooks that run in them.
        let mut spaces = PruneSet::default();
        first.objects.retain(|id, keep| {
            let space = emco_engine::order::is_namespace(id.kind());
            if space {
                spaces.objects.insert(id.clone(), *keep);
            }
            !space
        });
        if !self.prune(&first, stay, session, facts).await {
            return false;
        }
        for app in &leaving {
            if !self.hooks(work, app, "post-delete", &events, session, facts).await {
                return false;
            }
        }
        self.prune(&last, stay, session, facts).await && self.prune(&spaces, stay, session, facts).await
    }
}
