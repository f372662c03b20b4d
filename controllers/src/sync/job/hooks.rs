//! Runs the hooks of an app one after the other, once per set and event. The annotation of a hook's object says
//! which run it belongs to, and the row on the hub says which hooks are done: a restart runs none a second time.

use std::sync::Arc;

use emco_crds::fields::DurationText;
use emco_crds::sync_shard::status::RowHooks;
use emco_engine::identity::Identity;
use serde_json::json;
use tokio::time::Instant;

use super::super::absence::{self, Absent};
use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::super::observe::{Look, Seen};
use super::super::work::Work;
use super::desired::{App, Item};
use super::row::Facts;
use super::unready::unready;
use super::{Job, Key};
use crate::api::{Content, Method, Request};

mod past;

/// What is there of an earlier run.
enum Left {
    Nothing(Absent),
    Object(Arc<Seen>),
}

/// How a hook stands.
enum Hook {
    Done,
    Waiting,
}

impl Job {
    /// Runs the hooks of an event; true when all of them have run. `events` are those of this run as a whole.
    pub(super) async fn hooks(
        &mut self,
        work: &Work,
        app: &App,
        event: &str,
        events: &[&str],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let hooks = app.hooks(event);
        if hooks.is_empty() {
            return true;
        }
        let run = run_of(app, events);
        if !self.memory.hooks.iter().any(|record| record.set == run) {
            // Objects that an earlier run of this very set left would look like this one's. Where nothing was ever applied, as
            // far as this hub knows, they are this one's: a hub made anew finds what the one before did.
            let mut cleared = true;
            let anew = self.memory.applied_named.is_none();
            let (past, due): (Vec<&str>, Vec<&str>) =
                events.iter().partition(|event| self.is_past(app, event));
            for item in due.iter().flat_map(|event| app.hooks(event)) {
                if anew && matches!(self.outcome(&item, false), Some(Ok(()))) {
                    continue;
                }
                cleared = self.clear(&item, session, facts).await && cleared;
            }
            if !cleared || self.stale() {
                return false;
            }
            let marks =
                |event: &&str| app.hooks(event).iter().map(|hook| mark_of(hook, event)).collect::<Vec<_>>();
            self.memory
                .hooks
                .push(RowHooks { set: run.clone(), done: past.iter().flat_map(marks).collect() });
            self.record_hooks(work).await;
        }
        for hook in hooks {
            if self.stale() {
                return false;
            }
            let done = mark_of(&hook, event);
            if self.is_recorded(&run, &done) {
                self.leave_branch(&hook, session, facts);
                continue;
            }
            match self.hook(&hook, session, facts).await {
                Hook::Waiting => return false,
                Hook::Done => {
                    count(&self.ctx.edge.metrics.hooks);
                    if let Some(record) = self.memory.hooks.iter_mut().find(|record| record.set == run) {
                        record.done.push(done);
                    }
                    self.record_hooks(work).await;
                    self.leave_branch(&hook, session, facts);
                }
            }
        }
        self.clear_succeeded(work, app, event, &run, session, facts).await
    }

    /// Records which hooks ran and which gates are open, and waits until the hub has it.
    pub(super) async fn record_hooks(&mut self, work: &Work) {
        let mut status = self.memory.status.clone();
        status.id = work.id;
        status.hooks.clone_from(&self.memory.hooks);
        status.gates = self.memory.gates.row();
        self.memory.status = status.clone();
        self.rows.set(work.id, status);
        self.rows.written(work.id).await;
    }

    /// The hooks around bringing an app to its target: those of an installation, of an upgrade, or of a rollback, which is the way
    /// to an earlier revision that is pinned.
    pub(super) fn hook_events(&self, upgrade: bool) -> (&'static str, &'static str) {
        let target = self.revision();
        let pinned = self.memory.pace.pinned.zip(target).is_some_and(|(pinned, target)| target <= pinned);
        let back = self.memory.applied_named.as_ref().zip(target).is_some_and(|(had, to)| had.revision > to);
        match (upgrade, pinned && back) {
            (false, _) => ("pre-install", "post-install"),
            (true, false) => ("pre-upgrade", "post-upgrade"),
            (true, true) => ("pre-rollback", "post-rollback"),
        }
    }

    /// Deletes what is to go once it succeeded: after the last hook of the event, since hooks are made of several objects,
    /// such as a Job and its account. Recorded, for an object may be a hook of a later event, too. True when that is done.
    async fn clear_succeeded(
        &mut self,
        work: &Work,
        app: &App,
        event: &str,
        run: &str,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let goes = |hook: &Item| policies(hook).any(|policy| policy == "hook-succeeded");
        let hooks: Vec<Item> = app.hooks(event).into_iter().filter(goes).collect();
        let mark = format!("{event}/cleared");
        let record = self.memory.hooks.iter().find(|record| record.set == run);
        if hooks.is_empty() || record.is_some_and(|record| record.done.contains(&mark)) {
            return true;
        }
        let mut cleared = true;
        for hook in &hooks {
            cleared = self.clear(hook, session, facts).await && cleared;
        }
        if !cleared || self.stale() {
            return false;
        }
        if let Some(record) = self.memory.hooks.iter_mut().find(|record| record.set == run) {
            record.done.push(mark);
        }
        self.record_hooks(work).await;
        true
    }

    async fn hook(&mut self, hook: &Item, session: &Session, facts: &mut Facts) -> Hook {
        let key = Key::Hook(hook.id.clone());
        if let Some(tries) = self.memory.backoff.waiting(&key).cloned() {
            facts.trouble(Some(&hook.app), Some(&hook.id), &tries.trouble, tries.count);
            return Hook::Waiting;
        }
        let failed_before = self.memory.backoff.last(&key).is_some();
        let ended = self.outcome(hook, failed_before);
        let outcome = if ended.is_some() {
            ended
        } else {
            // What another run left, or this one's last try, makes room first.
            if let Look::There(seen) = self.ctx.edge.observed.look(&hook.id)
                && seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                && (seen.manifest.as_deref() != Some(&*hook.token) || failed_before || seen.deleting)
                && !self.memory.running.contains_key(&*hook.token)
            {
                self.clear(hook, session, facts).await;
                self.still_failed(hook, &key, facts);
                return Hook::Waiting;
            }
            if !self.ensure(std::slice::from_ref(hook), session, facts).await {
                return Hook::Waiting;
            }
            self.memory.running.entry(hook.token.to_string()).or_insert_with(Instant::now);
            self.outcome(hook, false)
        };
        let begun = self.memory.running.get(&*hook.token).copied().unwrap_or_else(Instant::now);
        let limit = self.policy().hook_timeout;
        let end = begun + limit;
        let text = match outcome {
            Some(Ok(())) => {
                self.memory.backoff.worked(&key);
                self.memory.running.remove(&*hook.token);
                return Hook::Done;
            }
            Some(Err(text)) => format!("the hook failed: {text}"),
            None if Instant::now() < end => {
                let seen = self.ctx.edge.observed.get(&hook.id);
                let limit = DurationText::of(limit).0;
                let why = format!("the hook did not end yet; it has {limit} (spec.hookTimeout)");
                facts.not_ready(&hook.id, || unready(hook, seen.map(|seen| seen.uid.clone()), &why));
                facts.wake_at(end);
                self.still_failed(hook, &key, facts);
                return Hook::Waiting;
            }
            None => format!("the hook did not end within {} (spec.hookTimeout)", DurationText::of(limit).0),
        };
        self.memory.running.remove(&*hook.token);
        let trouble = Trouble::new("HookFailed", &text, Retry::Slowly);
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
        facts.trouble(Some(&hook.app), Some(&hook.id), &trouble, attempts);
        if policies(hook).any(|policy| policy == "hook-failed") {
            self.clear(hook, session, facts).await;
        }
        Hook::Waiting
    }

    /// Reports the last failure until this try ends, so that a row does not fail and recover with each try.
    fn still_failed(&self, hook: &Item, key: &Key, facts: &mut Facts) {
        if let Some(tries) = self.memory.backoff.last(key) {
            facts.trouble(Some(&hook.app), Some(&hook.id), &tries.trouble, tries.count);
        }
    }

    /// How this run of a hook ended, if it did. Its object may be on its way out or gone already: charts set
    /// `ttlSecondsAfterFinished: 0`, and the cluster deletes such a Job before anybody can look. Only a deletion that nobody
    /// watched, while the operator was away, runs it again.
    fn outcome(&self, hook: &Item, failed_before: bool) -> Option<Result<(), String>> {
        let running = self.memory.running.contains_key(&*hook.token);
        let observed = &self.ctx.edge.observed;
        let seen = match observed.look(&hook.id) {
            Look::There(seen) if running || !failed_before => seen,
            Look::Absent if running => observed.ended(&hook.id)?,
            _ => return None,
        };
        let this_run = seen.owner.as_ref() == Some(&self.ctx.owner.hash)
            && seen.manifest.as_deref() == Some(&*hook.token);
        if !this_run {
            return None;
        }
        if seen.runs { seen.outcome.clone() } else { (!seen.deleting).then_some(Ok(())) }
    }

    /// Takes the file of a hook that ran off the branch: an agent makes again what its file names, and a Job that its own time-out removed
    /// would run a second time.
    fn leave_branch(&mut self, hook: &Item, session: &Session, facts: &mut Facts) {
        if session.branch().is_some() && matches!(&*hook.id.kind, "Job" | "Pod") {
            self.take_off([&*hook.id], session, facts);
        }
    }

    /// The object of a hook goes, which an agent may have to bring about; one that is kept stays there for ever.
    fn awaits_agent(&mut self, hook: &Item, seen: &Seen, session: &Session, facts: &mut Facts) {
        let is_kept = hook.manifest().is_some_and(|manifest| manifest.keep);
        if seen.deleting || session.branch().is_none() || !is_kept {
            self.look_again(&hook.id, facts);
            return;
        }
        let text = "is kept (helm.sh/resource-policy: keep), and the hub deletes nothing on a cluster that is written to through Git: \
                    delete it there, or give the hook another name";
        self.item_failed(hook, &Trouble::new("NotSupportedByGit", text, Retry::Slowly), facts);
    }

    /// Deletes the object of a hook, if there is one of ours; true when there is none.
    async fn clear(&mut self, hook: &Item, session: &Session, facts: &mut Facts) -> bool {
        if session.branch().is_some() && !self.take_off([&*hook.id], session, facts) {
            return false;
        }
        let seen = match self.left(hook, session).await {
            Ok(Left::Object(seen)) => seen,
            Ok(Left::Nothing(_)) => return true,
            Err(trouble) => {
                self.item_failed(hook, &trouble, facts);
                return false;
            }
        };
        // On a branch its end is the agent's to bring about.
        if seen.deleting || session.branch().is_some() {
            self.awaits_agent(hook, &seen, session, facts);
            return false;
        }
        if seen.adopted || self.is_adopted(&hook.id, &seen.uid) {
            let text = "was there before EMCO, and is never deleted: give the hook another name";
            self.item_failed(hook, &Trouble::new("NotOurs", text, Retry::Slowly), facts);
            return false;
        }
        let Some(resource) = session.resource(&hook.id) else {
            self.item_failed(hook, &unserved(&hook.id), facts);
            return false;
        };
        let path = resource.path(&hook.id.namespace, Some(&hook.id.name));
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": seen.uid, "resourceVersion": seen.version_text},
        });
        let delete = Request::new(Method::Delete, &path).acting_as(hook.account());
        match self.send(session, delete.body(Content::Json, &options)).await {
            Ok(answer) => {
                if answer.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
                    self.ctx.edge.observed.learn(&hook.id, &answer);
                }
                self.look_again(&hook.id, facts);
                false
            }
            Err(error) if Absent::of_answer(&error, &hook.id.name).is_some() => {
                self.ctx.edge.observed.forget(&hook.id, &seen.uid);
                true
            }
            Err(error) if error.is_conflict() => {
                // The next try is of the version that is there now.
                if let Ok(live) = self.send(session, Request::new(Method::Get, path)).await {
                    self.ctx.edge.observed.learn(&hook.id, &live);
                }
                let text = "it changed while it was to be removed";
                self.item_failed(hook, &Trouble::new("Progressing", text, Retry::Soon), facts);
                false
            }
            Err(error) => {
                self.item_failed(hook, &Trouble::of_request(&error), facts);
                false
            }
        }
    }

    /// What is there of a hook. Where its kind is not watched, such as one that may not be listed, the object itself is asked for.
    async fn left(&self, hook: &Item, session: &Session) -> Result<Left, Trouble> {
        let (edge, id) = (&self.ctx.edge, &*hook.id);
        let look = edge.observed.look(id);
        if let Some(absent) = Absent::of_watch(&look) {
            return Ok(Left::Nothing(absent));
        }
        let seen = match look {
            Look::There(seen) => seen,
            Look::Absent | Look::Unknown => {
                let Some(resource) = session.resource(id) else {
                    return absence::kind(edge, session, &id.group, &id.kind).await.map(Left::Nothing);
                };
                let path = resource.path(&id.namespace, Some(&id.name));
                match self.send(session, Request::new(Method::Get, path).metadata()).await {
                    Ok(object) => Arc::new(Seen::of(id, &object).ok_or_else(|| nameless(id))?),
                    Err(error) => match Absent::of_answer(&error, &id.name) {
                        Some(absent) => return Ok(Left::Nothing(absent)),
                        None if error.is_not_found() => {
                            return absence::kind(edge, session, &id.group, &id.kind)
                                .await
                                .map(Left::Nothing);
                        }
                        None => return Err(Trouble::of_request(&error)),
                    },
                }
            }
        };
        Ok(Absent::of_others(&seen, &self.ctx.owner.hash).map_or(Left::Object(seen), Left::Nothing))
    }
}

fn nameless(id: &Identity) -> Trouble {
    Trouble::new("Invalid", &format!("the cluster answers {id} without a UID"), Retry::Slowly)
}

fn unserved(id: &Identity) -> Trouble {
    let text = format!("{id} is to be removed, and the cluster does not serve its kind now: waiting");
    Trouble::new("KindMissing", &text, Retry::Soon)
}

fn policies(hook: &Item) -> impl Iterator<Item = &str> {
    hook.manifest()
        .and_then(|manifest| manifest.hook.as_ref())
        .into_iter()
        .flat_map(|spec| spec.delete_policies.iter().map(String::as_str))
}

/// Name of a run in the row: the set, and whether it comes or goes.
fn run_of(app: &App, events: &[&str]) -> String {
    if events.contains(&"pre-delete") { format!("{}/delete", app.digest()) } else { app.digest().0.clone() }
}

fn mark_of(hook: &Item, event: &str) -> String {
    let digest = hook.manifest().map(|manifest| manifest.digest.as_str()).unwrap_or_default();
    format!("{event}/{digest}")
}
