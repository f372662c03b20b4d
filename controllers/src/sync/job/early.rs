//! Applies what is new before the kinds of the cluster are listed, after a look at each object
//! under its own name. After a restart the lists may take long, and whoever changed something in the meantime does not wait for
//! them. Everything else does: what nobody changed, pruning, hooks, and what is said of the row.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::names::generated_app;
use emco_engine::identity::Id;

use super::super::edge::Session;
use super::super::work::Work;
use super::apply::Need;
use super::desired::{App, Item};
use super::look::{Found, by_kind};
use super::row::Facts;
use super::send::Over;
use super::{Job, Key};

impl Job {
    /// Applies what the last complete state did not have, once for a wish and a connection: what cannot be done now is done
    /// when the lists are there. True when all of it is there.
    pub(super) async fn early(
        &mut self,
        work: &Work,
        apps: &[App],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        if let Some((epoch, there)) = self.memory.early
            && epoch == session.epoch
        {
            return there;
        }
        let mut all = true;
        // Whether the generated apps so far are there: they come first.
        let mut generated = true;
        for app in apps {
            let is_generated = generated_app::is(&app.name);
            if !is_generated {
                self.saw_generated(generated);
            }
            if self.may_wait(work, app) {
                all = false;
                continue;
            }
            let before = self.memory.applied_named.as_ref();
            let before = before.map(|named| (self.source(named), named.apps.get(&*app.name).cloned()));
            let had = match before {
                Some((_, Some(digest))) if digest == *app.digest() => {
                    generated &= !is_generated || self.stayed(work, app);
                    continue;
                }
                Some((source, Some(digest))) => {
                    let Ok(set) = self.ctx.content.set(&source, &digest).await else {
                        all = false;
                        generated &= !is_generated;
                        continue;
                    };
                    Some(set)
                }
                _ => None,
            };
            // Where the row says nothing, the lists tell whether this is an upgrade.
            let events = if had.is_some() {
                vec![self.hook_events(true).0]
            } else {
                vec!["pre-install", "pre-upgrade"]
            };
            if events.iter().any(|event| !app.hooks(event).is_empty()) {
                all = false;
                continue;
            }
            let had: BTreeMap<&Id, &Arc<str>> =
                had.iter().flat_map(|set| set.ids.iter().zip(&set.tokens)).collect();
            for stage in &app.stages {
                let fresh: Vec<Item> =
                    stage.iter().filter(|item| had.get(&item.id) != Some(&&item.token)).cloned().collect();
                if self.stale() {
                    return false;
                }
                let there = self.bring(&fresh, session, facts).await;
                let founds = fresh.iter().any(|item| item.is_foundation() && !self.is_ready(item));
                if !there || founds {
                    all = false;
                    generated &= !is_generated;
                }
                // (What a branch gets is handed over without waiting: all stages are one commit.)
                if founds || (!there && session.branch().is_none()) {
                    break;
                }
            }
        }
        if !self.stale() {
            self.memory.early = Some((session.epoch, all));
        }
        all
    }

    /// Applies what is not there yet; true when all of it is there now. What is somebody else's, or not possible, is left to the
    /// pass that knows everything.
    async fn bring(&mut self, fresh: &[Item], session: &Session, facts: &mut Facts) -> bool {
        let mut all = true;
        let mut look = Vec::new();
        let mut send = Vec::new();
        for item in fresh {
            let waits = self.memory.backoff.waiting(&Key::Object(item.id.clone())).is_some();
            let seen = self.ctx.edge.observed.get(&item.id);
            let scaled = seen.as_ref().is_some_and(|seen| self.may_be_autoscaled(item, seen));
            match self.need(item, seen, session) {
                _ if waits || self.ends_unseen(item) => all = false,
                Need::Nothing => {}
                Need::Look => look.push(item.clone()),
                // An object of an earlier revision proves that this is an upgrade: it stays until that is recorded.
                Need::Renew(_) if self.memory.blank || scaled => all = false,
                Need::Renew(uid) => send.push((item.clone(), Over::Ours(uid))),
                Need::Taken | Need::Wait | Need::Trouble(_) => all = false,
            }
        }
        if (look.is_empty() && send.is_empty()) || self.held_up(facts) {
            return all;
        }
        for group in by_kind(look) {
            let found = if self.stale() { None } else { self.find(&group, session).await.ok() };
            let Some(found) = found else { return false };
            for item in group {
                let (need, scaled) = match found.get(&item.id.name) {
                    None | Some(Found::Nothing) => (Need::Look, false),
                    Some(Found::Object(found)) => {
                        if found.seen.adopted {
                            self.note_adopted(&item.id, &found.seen.uid);
                        }
                        (self.compare(&item, &found.seen), self.may_be_autoscaled(&item, &found.seen))
                    }
                };
                match need {
                    // It is not there.
                    Need::Look => send.push((item, Over::Nothing)),
                    Need::Renew(_) if self.memory.blank || scaled => all = false,
                    Need::Renew(uid) => send.push((item, Over::Ours(uid))),
                    Need::Nothing => {}
                    Need::Taken | Need::Wait | Need::Trouble(_) => all = false,
                }
            }
        }
        self.memory.unsent &= send.is_empty();
        let round = self.send_all(send, session, facts).await;
        all && round.all && round.met.is_empty()
    }
}
