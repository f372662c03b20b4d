//! Removes everything of an owner from a cluster, in reverse order, with the hooks that belong to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::sync_shard::status::Applied;
use emco_engine::depends::Order;
use emco_engine::identity::Identity;
use emco_engine::order;

use super::super::edge::Session;
use super::super::observe::Look;
use super::super::work::{Named, Work};
use super::Job;
use super::depends::Gates;
use super::desired::{App, PruneSet};
use super::row::{Facts, deadline};

impl Job {
    pub(super) async fn remove(&mut self, work: &Work, session: &Session, facts: &mut Facts) {
        self.memory.settled = false;
        // Whatever comes back comes anew.
        self.memory.gates = Gates::default();
        if self.is_complete(work) {
            return;
        }
        let nothing = Named { name: String::new(), revision: 0, apps: Arc::default() };
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
        if !self.retire(work, &apps, &pruned, session, facts).await {
            self.name_unended(facts);
            return;
        }
        if !self.stale() {
            self.complete(work);
            self.memory.applied = Some(Applied { combination: None, generation: work.written });
        }
    }

    /// Removes what is pruned, around it the hooks of the apps that leave; true when nothing is left. An app leaves before those that it
    /// depends on. All kinds are watched until the last app is gone: the end of an object is told by its watch.
    pub(super) async fn retire(
        &mut self,
        work: &Work,
        stay: &[App],
        pruned: &PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let leaving = match self.memory.applied_named.clone() {
            None => Vec::new(),
            Some(mut leaving) => {
                let stays = |app: &str| stay.iter().any(|stays| *stays.name == *app);
                Arc::make_mut(&mut leaving.apps).retain(|app, _| !stays(app));
                match self.apps(&leaving, session).await {
                    Ok(leaving) => leaving,
                    // Its hooks are lost with it.
                    Err(trouble) if trouble.reason == "ContentLost" && self.searches(work) => Vec::new(),
                    Err(trouble) => {
                        self.content_failed(&trouble, facts);
                        return false;
                    }
                }
            }
        };
        if !self.observed(session, stay, pruned, facts) {
            return false;
        }
        let mut done = true;
        for Group { leaving, pruned } in groups(&work.order, leaving, pruned) {
            if self.stale() || !self.retire_group(work, stay, (&leaving, &pruned), session, facts).await {
                done = false;
                break;
            }
        }
        let left = pruned.objects.keys().filter(|id| !self.memory.gone.contains(id)).count();
        facts.left = i64::try_from(left).unwrap_or(i64::MAX);
        done
    }

    /// Removes apps that leave together, and what is pruned with them.
    async fn retire_group(
        &mut self,
        work: &Work,
        stay: &[App],
        (leaving, pruned): (&[App], &PruneSet),
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let events = ["pre-delete", "post-delete"];
        for app in leaving {
            if !self.hooks(work, app, "pre-delete", &events, session, facts).await {
                return false;
            }
        }
        // Objects of the hooks that come afterwards are removed when those have run.
        let none = || PruneSet { with_pods: pruned.with_pods, ..PruneSet::default() };
        let mut first = PruneSet { objects: pruned.objects.clone(), ..none() };
        let mut last = none();
        for hook in leaving.iter().flat_map(|app| app.hooks("post-delete")) {
            if let Some(keep) = first.objects.remove(&*hook.id) {
                last.objects.insert(Identity::clone(&hook.id), keep);
            }
        }
        if last.objects.is_empty() {
            return self.prune(&first, stay, session, facts).await;
        }
        // Namespaces wait for the hooks that run in them.
        let mut spaces = none();
        first.objects.retain(|id, keep| {
            let space = order::is_namespace(id.kind());
            if space {
                spaces.objects.insert(id.clone(), *keep);
            }
            !space
        });
        if !self.prune(&first, stay, session, facts).await {
            return false;
        }
        for app in leaving {
            if !self.hooks(work, app, "post-delete", &events, session, facts).await {
                return false;
            }
        }
        self.prune(&last, stay, session, facts).await && self.prune(&spaces, stay, session, facts).await
    }
}

/// Apps that leave together, and objects that go with them.
struct Group {
    leaving: Vec<App>,
    pruned: PruneSet,
}

/// What is removed, in the order of removal. Namespaces and definitions, what is of several apps and what is of none that is known go
/// with the last apps: others may need them. Where generated apps leave after the others, an object is gone only when its Pods are:
/// these still need, say, their `NetworkPolicy`.
fn groups(depends: &Order, leaving: Vec<App>, pruned: &PruneSet) -> Vec<Group> {
    let apps: BTreeSet<&str> = pruned.apps.values().map(|app| &**app).filter(|app| !app.is_empty()).collect();
    let names: BTreeSet<String> =
        leaving.iter().map(|app| &*app.name).chain(apps).map(str::to_owned).collect();
    let by_app = depends.removal(names.iter().map(String::as_str));
    let none = || PruneSet { with_pods: !depends.generated().is_empty(), ..PruneSet::default() };
    if by_app.len() < 2 {
        return vec![Group { leaving, pruned: PruneSet { objects: pruned.objects.clone(), ..none() } }];
    }
    let place = |app: &str| by_app.iter().position(|group| group.contains(app)).unwrap_or(by_app.len() - 1);
    let empty = || Group { leaving: Vec::new(), pruned: none() };
    let mut groups: Vec<Group> = by_app.iter().map(|_| empty()).collect();
    for app in leaving {
        if let Some(group) = groups.get_mut(place(&app.name)) {
            group.leaving.push(app);
        }
    }
    for (id, keep) in &pruned.objects {
        let shared = order::is_namespace(id.kind()) || order::is_crd(id.kind());
        let app = pruned.apps.get(id).filter(|_| !shared).map_or("", |app| app);
        if let Some(group) = groups.get_mut(place(app)) {
            group.pruned.objects.insert(id.clone(), *keep);
        }
    }
    groups
}
