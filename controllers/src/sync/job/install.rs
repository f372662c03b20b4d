//! Brings a cluster to its target, phase by phase. Each pass does what is possible now: objects before workloads, hooks
//! where they belong, pruning when everything is applied and ready, or as the owner wants it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::PrunePolicy;
use emco_engine::health::Health;
use emco_engine::identity::Identity;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::Trouble;
use super::super::observe::{Found, Known};
use super::super::work::{Named, Work};
use super::desired::{App, Item, PruneSet, distinct};
use super::row::{Count, Facts, deadline};
use super::unready::unready;
use super::{Job, Key};

/// Why an object is not as it is on the branch.
const AWAITS_AGENT: &str = "it is on the branch, and the agent of the cluster has not applied it yet";

/// How far one app is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Something is waited for.
    Waiting,
    /// Everything is applied and all hooks ran.
    Done,
}

impl Job {
    pub(super) async fn install(
        &mut self,
        work: &Work,
        target: &Named,
        session: &Session,
        facts: &mut Facts,
    ) {
        let Some((mut apps, mut pruned)) = self.content(work, target, session, facts).await else { return };
        self.in_order(work, target, &mut apps);
        let settled = self.is_complete(work);
        self.memory.settled = settled;
        self.memory.blank |= self.memory.unsent;
        self.memory.sets = apps.iter().map(|app| Arc::clone(&app.set)).collect();
        self.memory.scaled = apps.iter().flat_map(|app| app.set.scaled.iter().cloned()).collect();
        let suspended = self.memory.pace.suspended;
        // Before anything is sent: what makes room for the target counts as well.
        if !settled && !suspended && !self.has_rights(target, &apps, session, facts).await {
            return;
        }
        self.find_said(work, &apps).await;
        if !settled {
            self.hand_over_some(&apps, session);
        }
        let first = self.prunes_first();
        // Where old objects go first, the lists have to show those that only their label gives away.
        if !settled && !suspended && !first && !self.listed(session, &apps) {
            let there = self.early(work, &apps, session, facts).await;
            if there && Instant::now() < self.ctx.calm_until {
                // Lists of thousands of objects wait until others had their turn, too.
                facts.keep = true;
                facts.wake_at(self.ctx.calm_until);
                return;
            }
        }
        if self.stale() || !self.observed(session, &apps, &pruned, facts) {
            return;
        }
        self.record_past(work, &apps).await;
        self.find_autoscaled(&apps, session, facts).await;
        self.forget_fights(&apps);
        self.look_at_taken(&apps, session).await;
        if suspended {
            if let Some(branch) = session.branch() {
                branch.withdraw(&self.ctx.owner_text());
            }
            self.find_taken(&apps, session, facts).await;
            self.drifted(&apps, session, facts).await;
            self.count(&apps, session, facts);
            return;
        }
        if first && !self.make_room(work, &apps, &mut pruned, session, facts).await {
            self.count(&apps, session, facts);
            facts.wake_at(deadline(self));
            return;
        }
        let mut done = true;
        for app in &apps {
            let mut waits = self.held_back(work, app, facts);
            self.record_gate(work).await;
            if self.stale() {
                return;
            }
            if !waits && first && self.has_to_make_room(work, &apps, app, &pruned) {
                // Its gate just opened: what it had goes first.
                facts.wake_at(Instant::now() + Duration::from_millis(1));
                waits = true;
            }
            let applied = !waits && self.app(work, app, session, facts).await == Step::Done;
            self.has_reached(work, app, applied, session);
            done = done && applied;
        }
        facts.judged = true;
        self.drifted(&apps, session, facts).await;
        self.memory.left_out.retain(&apps);
        self.memory.rewritten.retain(&apps);
        self.count(&apps, session, facts);
        self.hear_agent(&apps, session, facts).await;
        if settled {
            self.hand_over_all(&apps, session);
            // Not in every pass: what nobody applied does not come by itself.
            if self.memory.sweeps(session.epoch) {
                self.sweep(&apps, &pruned, session, facts).await;
            }
            return;
        }
        facts.wake_at(deadline(self));
        if !done || pruned.lost || self.stale() {
            return;
        }
        if !self.find_unowned(work, &apps, &mut pruned, session, facts).await {
            return;
        }
        let ready = facts.apps.values().all(|count| count.ready == count.total);
        if !pruned.objects.is_empty() {
            if !ready && self.memory.pace.prune == PrunePolicy::AfterReady {
                facts.left = i64::try_from(pruned.objects.len()).unwrap_or(i64::MAX);
                return;
            }
            if !self.retire(work, &apps, &pruned, session, facts).await {
                self.name_unended(facts);
                return;
            }
        }
        if !self.stale() {
            self.complete(work);
            self.memory.swept = Some((session.epoch, Instant::now()));
            self.memory.searched = true;
        }
    }

    /// Removes what carries our label and is in no inventory.
    async fn sweep(&mut self, apps: &[App], pruned: &PruneSet, session: &Session, facts: &mut Facts) {
        let mut unowned = self.unowned(apps, pruned);
        // An object that is there again is not gone, whatever was proven before.
        for id in unowned.objects.keys() {
            self.memory.gone.remove(id);
        }
        if !self.memory.searched && !self.scanned(&mut unowned, apps, session, facts).await {
            return;
        }
        if self.observed(session, apps, &unowned, facts) && self.prune(&unowned, apps, session, facts).await {
            self.memory.swept(session.epoch);
            self.memory.searched = true;
            self.memory.scanned = None;
        }
    }

    /// Adds to what is pruned what carries our label and is in no inventory. False: it has to be looked for again.
    pub(super) async fn find_unowned(
        &mut self,
        work: &Work,
        apps: &[App],
        pruned: &mut PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let unowned = self.unowned(apps, pruned);
        pruned.objects.extend(unowned.objects);
        let scans = self.searches(work) || !self.memory.searched;
        !scans || self.scanned(pruned, apps, session, facts).await
    }

    /// The stored manifests of the target and of what may be there. Trouble with the first stops the row, with the second what
    /// would be removed.
    pub(super) async fn content(
        &mut self,
        work: &Work,
        target: &Named,
        session: &Session,
        facts: &mut Facts,
    ) -> Option<(Vec<App>, PruneSet)> {
        if self.waits(&Key::Content, facts) {
            facts.keep = true;
            return None;
        }
        let apps = match self.apps(target, session).await.and_then(distinct) {
            Ok(apps) => apps,
            Err(trouble) => {
                self.content_failed(&trouble, facts);
                return None;
            }
        };
        let unread = PruneSet { lost: true, ..PruneSet::default() };
        let pruned = match self.is_complete(work) {
            true => Ok(PruneSet::default()),
            false if self.waits(&Key::Inventory, facts) => return Some((apps, unread)),
            false => self.pruned(work, &apps, session).await,
        };
        match pruned {
            Ok(pruned) => {
                self.memory.backoff.worked(&Key::Content);
                self.memory.backoff.worked(&Key::Inventory);
                Some((apps, pruned))
            }
            // What is to be there is known, and nothing has to go before it comes.
            Err(trouble) if trouble.reason == "ContentLost" && work.target.is_some() => {
                self.failed_and_told(&Key::Inventory, &trouble, facts);
                Some((apps, unread))
            }
            Err(trouble) => {
                self.content_failed(&trouble, facts);
                None
            }
        }
    }

    pub(super) fn content_failed(&mut self, trouble: &Trouble, facts: &mut Facts) {
        self.failed_and_told(&Key::Content, trouble, facts);
        facts.keep = true;
    }

    /// Notes a failure of something that is no object, and how often it failed.
    pub(super) fn failed_and_told(&mut self, key: &Key, trouble: &Trouble, facts: &mut Facts) {
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(key).map_or(1, |tries| tries.count);
        facts.trouble(None, None, trouble, attempts);
    }

    /// Whether something that is no object failed and waits for its next try, which is told.
    pub(super) fn waits(&self, key: &Key, facts: &mut Facts) -> bool {
        let waiting = self.memory.backoff.waiting(key);
        if let Some(tries) = waiting {
            facts.trouble(None, None, &tries.trouble, tries.count);
        }
        waiting.is_some()
    }

    /// Whether everything about the kinds involved is known. What cannot be listed is troubled, not waited for.
    pub(super) fn observed(
        &mut self,
        session: &Session,
        apps: &[App],
        pruned: &PruneSet,
        facts: &mut Facts,
    ) -> bool {
        // One of each kind and namespace: what is asked of kinds is not asked of every object.
        let mut kinds: BTreeMap<(&str, &str, &str), &Identity> = BTreeMap::new();
        let wanted = apps.iter().flat_map(|app| app.set.kinds.iter().map(|id| &**id));
        for id in wanted.chain(pruned.objects.keys()).chain(pruned.later.keys()) {
            kinds.entry((id.group.as_str(), id.kind.as_str(), id.namespace.as_str())).or_insert(id);
        }
        self.watch_kinds(session, kinds.values().copied());
        for id in kinds.into_values() {
            match self.known(session, id) {
                Known::All => {
                    if let Some(trouble) = self.stale_kind(session, id) {
                        facts.trouble(None, Some(id), &trouble, 1);
                    }
                }
                Known::Nothing => {
                    if let Some(trouble) = self.stale_kind(session, id) {
                        facts.trouble(None, Some(id), &trouble, 1);
                    }
                    facts.keep = true;
                    return false;
                }
                Known::Refused(trouble) => facts.trouble(None, Some(id), &trouble, 1),
            }
        }
        true
    }

    /// Whether all kinds of these apps were listed, as far as the cluster has them.
    fn listed(&self, session: &Session, apps: &[App]) -> bool {
        let mut kinds = apps.iter().flat_map(|app| &app.set.kinds);
        kinds.all(|id| !matches!(self.known(session, id), Known::Nothing))
    }

    /// What is known of a kind. Of one that cannot be listed there is nothing more to know.
    fn known(&self, session: &Session, id: &Identity) -> Known {
        if session.resource(id).is_none_or(|resource| !resource.watchable) {
            return Known::All;
        }
        self.ctx.edge.observed.known(&(id.group.clone(), id.kind.clone()), &id.namespace)
    }

    /// Why what is known of a kind may be old: a row that says so is not ready.
    pub(super) fn stale_kind(&self, session: &Session, id: &Identity) -> Option<Trouble> {
        session.resource(id).filter(|resource| resource.watchable)?;
        self.ctx.edge.observed.stale(&(id.group.clone(), id.kind.clone()), &id.namespace)
    }

    async fn app(&mut self, work: &Work, app: &App, session: &Session, facts: &mut Facts) -> Step {
        let [foundation, waves @ ..] = &app.stages;
        if !self.ensure(foundation, session, facts).await {
            return Step::Waiting;
        }
        if foundation.iter().any(|item| !self.is_ready(item)) {
            return Step::Waiting;
        }
        let before = self.memory.applied_named.as_ref().and_then(|named| named.apps.get(&*app.name));
        let same = before == Some(app.digest());
        let upgrade = before.is_some() || self.is_upgrade(app);
        let (pre, post) = self.hook_events(upgrade);
        if !same && !self.hooks(work, app, pre, &[pre, post], session, facts).await {
            return Step::Waiting;
        }
        let mut all = true;
        for wave in waves {
            // (What a branch gets is handed over without waiting: all waves are one commit.)
            all = self.ensure(wave, session, facts).await && all;
            if self.stale() {
                return Step::Waiting;
            }
        }
        if !all || (!same && !self.hooks(work, app, post, &[pre, post], session, facts).await) {
            return Step::Waiting;
        }
        Step::Done
    }

    fn count(&self, apps: &[App], session: &Session, facts: &mut Facts) {
        for app in apps {
            let mut count = Count::default();
            let found = self.ctx.edge.observed.find(app.items().map(|item| &*item.id));
            for (item, Found { seen, .. }) in app.items().zip(found) {
                count.total += 1;
                if self.memory.taken.contains_key(&item.id) {
                    count.applied += 1;
                    count.ready += 1;
                    continue;
                }
                let on_branch = self.is_on_branch(item, session);
                let Some(seen) = seen.filter(|seen| seen.owner.as_ref() == Some(&self.ctx.owner.hash)) else {
                    if on_branch && !self.finished_and_gone(item) {
                        count.applied += 1;
                        count.not_ready += 1;
                        facts.not_ready(&item.id, || unready(item, None, AWAITS_AGENT));
                        continue;
                    }
                    let done = i64::from(self.finished_and_gone(item));
                    count.applied += done;
                    count.ready += done;
                    count.absent += 1 - done;
                    if done == 0 {
                        count.failed +=
                            i64::from(self.has_failed(item) || session.resource(&item.id).is_none());
                    }
                    continue;
                };
                let shown = seen.manifest.as_deref() == Some(&*item.token) || self.left_alone(item);
                let applied = if session.branch().is_some() { on_branch } else { shown };
                count.applied += i64::from(applied);
                count.failed += i64::from(!applied && self.has_failed(item));
                match (&seen.health, shown) {
                    (Health::Ready, true) => count.ready += 1,
                    (health, _) => {
                        count.not_ready += 1;
                        if facts.waiting.contains_key(&app.name) {
                            continue;
                        }
                        facts.not_ready(&item.id, || {
                            let why = match health {
                                Health::Progressing(why) | Health::Failed(why) | Health::Unknown(why)
                                    if shown =>
                                {
                                    why.as_str()
                                }
                                _ if on_branch => AWAITS_AGENT,
                                _ => "it is not as this revision wants it yet",
                            };
                            unready(item, Some(seen.uid.clone()), why)
                        });
                    }
                }
            }
            facts.apps.insert(app.name.to_string(), count);
        }
    }

    pub(super) fn has_failed(&self, item: &Item) -> bool {
        self.memory.backoff.last(&Key::Object(item.id.clone())).is_some()
    }

    /// Applied and ready, as far as the watches know.
    pub(super) fn is_ready(&self, item: &Item) -> bool {
        self.memory.taken.contains_key(&item.id)
            || self.finished_and_gone(item)
            || self.ctx.edge.observed.get(&item.id).is_some_and(|seen| {
                seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                    && !seen.deleting
                    && seen.health == Health::Ready
                    // What the branch has is true on the cluster when the agent followed.
                    && (!self.memory.on_git
                        || seen.manifest.as_deref() == Some(&*item.token)
                        || self.left_alone(item))
            })
    }
}
