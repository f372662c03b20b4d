//! What may be there and is not to be in; group by group it is removed, and its absence proved, before the next begins.
//! A DELETE names UID and resourceVersion, and only what carries our label gets one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::identity::{Id, Identity};
use emco_engine::order;
use emco_engine::path::ApiPath;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use tokio::time::Instant;

use super::super::absence::{self, Absent};
use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::line_bound::Sort;
use super::super::metrics::count;
use super::super::observe::{Look, Seen};
use super::anew::{BACKGROUND, FOREGROUND, delete_request};
use super::desired::{App, PruneSet};
use super::first::PATIENCE;
use super::halt::Halt;
use super::row::Facts;
use super::{Job, JobContext, Key};
use crate::api::{ApiError, ApiResult, Method, Request};

/// Between two looks at an object that is going and is not watched.
const UNTOLD: Duration = Duration::from_secs(5);

/// Why an object stays that its chart keeps.
const KEPT: &str = "helm.sh/resource-policy: keep";

/// What one try came to.
enum Outcome {
    /// Not there, or nothing of ours.
    Gone(Absent),
    /// It is what we made, and others took our label off: it stays, and counts as theirs.
    Stripped(Absent),
    /// The object is wanted, under another name of its kind.
    Kept,
    /// Asked to go; the UID of what was asked.
    Asked(String),
    /// Was released: it stays, without our marks; why, where nobody has to expect that.
    Released(Option<String>),
    /// It is being deleted, or its deletion was asked for: how it leaves, where that is seen.
    Leaves(Option<Box<str>>),
    /// Something else must come first.
    Waits,
    /// Looked at again: another version is there.
    Again(Box<Value>),
    /// Not possible now.
    Trouble(Trouble),
}

impl Job {
    /// Removes what is pruned; true when nothing of it is left. Objects of `stay` are not removed under any name.
    pub(super) async fn prune(
        &mut self,
        pruned: &PruneSet,
        stay: &[App],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let left = |job: &Self| pruned.objects.keys().filter(|id| !job.memory.gone.contains(id)).count();
        if left(self) == 0 {
            return true;
        }
        // What is absent while its file is there may still come.
        if session.branch().is_some() && !self.take_files_off(pruned, session, facts) {
            facts.left = i64::try_from(left(self)).unwrap_or(i64::MAX);
            return false;
        }
        let all = pruned.objects.keys().cloned();
        let stays: Vec<Identity> = all.clone().filter(|id| order::is_crd(id.kind())).collect();
        let mut groups = order::removal(all);
        if !stays.is_empty() {
            // Kinds end last: an object of a kind that is released must still be found.
            groups.push(stays);
        }
        let mut confined = false;
        for group in groups {
            // Asked when rights are gone already: those never wait for it.
            if !confined && group.iter().any(order::confines) {
                confined = true;
                if self.stale() || !self.confine(pruned, session, facts).await {
                    break;
                }
            }
            let open: Vec<(Identity, bool)> = group
                .into_iter()
                .filter(|id| !self.memory.gone.contains(id))
                .map(|id| {
                    let keep = pruned.objects.get(&id).copied().unwrap_or_default();
                    // Everything in a namespace would go with it.
                    let home = order::is_namespace(id.kind())
                        && stay
                            .iter()
                            .any(|app| app.set.ids.iter().any(|wanted| wanted.namespace == id.name));
                    (id, keep || home)
                })
                .collect();
            if open.is_empty() {
                continue;
            }
            if self.stale() || !self.prune_group(open, pruned.with_pods, stay, session, facts).await {
                break;
            }
        }
        let left = left(self);
        facts.left = i64::try_from(left).unwrap_or(i64::MAX);
        left == 0
    }

    async fn prune_group(
        &mut self,
        open: Vec<(Identity, bool)>,
        with_pods: bool,
        stay: &[App],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let mut now = Vec::new();
        let mut all = true;
        for (id, keep) in open {
            if let Some(tries) = self.memory.backoff.waiting(&Key::Object(Id::new(id.clone()))) {
                facts.trouble(None, Some(&id), &tries.trouble, tries.count);
                all = false;
                continue;
            }
            let asked = self.memory.deletes.get(&id).cloned();
            let adopted = self.memory.adopted.get(&id).cloned();
            now.push((id, keep, asked, adopted));
        }
        if now.is_empty() || self.held_up(facts) {
            return false;
        }
        let account = self.memory.account.clone();
        let unserved = Arc::new(self.unserved(now.iter().map(|(id, ..)| id), session).await);
        let wanted = Arc::new(self.uids(now.iter().map(|(id, ..)| id), stay));
        let ctx = self.ctx.clone();
        let end = self.pass_end();
        let halt = Arc::new(Halt::default());
        let mut outcomes = stream::iter(now.into_iter().map(|(id, keep, asked, adopted)| {
            let (ctx, session, pass, halt) = (ctx.clone(), session.clone(), end.clone(), Arc::clone(&halt));
            let (unserved, wanted) = (Arc::clone(&unserved), Arc::clone(&wanted));
            let account = account.clone();
            async move {
                let outcome = if pass.is_over() || halt.holds(&id.namespace) {
                    Outcome::Waits
                } else if let Some(proof) = unserved.get(&(id.group.clone(), id.kind.clone())) {
                    proof.clone().map_or_else(Outcome::Trouble, Outcome::Gone)
                } else {
                    let adopted = adopted.as_deref();
                    let (ctx, session, wanted, account) = (&ctx, &session, &wanted, account.as_deref());
                    let end = End { ctx, session, id: &id, keep, with_pods, adopted, wanted, account };
                    end.step(asked.as_deref()).await
                };
                (id, outcome)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        while let Some((id, outcome)) = outcomes.next().await {
            match &outcome {
                Outcome::Asked(_) | Outcome::Released(_) => {
                    halt.answered();
                    self.memory.backoff.worked(&Key::Server);
                }
                Outcome::Trouble(trouble) if halt.refused(trouble) => {
                    self.failed(Key::Server, trouble.clone());
                }
                Outcome::Stripped(_) => {
                    self.memory.stripped.insert(id.clone(), None);
                }
                _ => {}
            }
            all &= self.pruned_one(id, outcome, stay.is_empty(), facts);
        }
        all
    }

    /// Notes what became of one object that is removed; true when nothing is left to be done. `ends`: nothing of the owner stays.
    fn pruned_one(&mut self, id: Identity, outcome: Outcome, ends: bool, facts: &mut Facts) -> bool {
        let key = Key::Object(Id::new(id.clone()));
        match outcome {
            Outcome::Gone(absent) | Outcome::Stripped(absent) => {
                if self.memory.deletes.remove(&id).is_some() {
                    self.memory.deleted += 1;
                    count(&self.ctx.edge.metrics.deleted);
                }
                self.memory.backoff.worked(&key);
                self.memory.gone.insert(id, absent);
                return true;
            }
            Outcome::Kept => {
                self.memory.backoff.worked(&key);
                self.memory.gone.stays(id);
                return true;
            }
            Outcome::Released(why) => {
                // Of what a revision leaves out, its author knows; rows of all clusters would say it until the next one.
                if why.is_some() && ends {
                    self.memory.stripped.insert(id.clone(), why);
                }
                count(&self.ctx.edge.metrics.released);
                self.memory.adopted.remove(&id);
                self.memory.backoff.worked(&key);
                self.memory.gone.stays(id);
                return true;
            }
            Outcome::Asked(uid) => {
                self.look_again(&id, facts);
                // The answer may have told all that the event says: what holds it up is named all the same.
                facts.wake_at(Instant::now() + PATIENCE);
                self.memory.backoff.worked(&key);
                self.memory.deletes.insert(id, uid);
            }
            Outcome::Leaves(how) => {
                self.look_again(&id, facts);
                facts.leaves(id, how);
            }
            Outcome::Waits => self.look_again(&id, facts),
            Outcome::Again(object) => {
                self.ctx.edge.observed.learn(&id, &object);
                let text = "it changed while it was to be removed";
                self.prune_failed(&id, &Trouble::new("Progressing", text, Retry::Soon), facts);
            }
            Outcome::Trouble(trouble) => self.prune_failed(&id, &trouble, facts),
        }
        false
    }

    /// Asks for another look at an object whose end no watch tells.
    pub(super) fn look_again(&self, id: &Identity, facts: &mut Facts) {
        if matches!(self.ctx.edge.observed.look(id), Look::Unknown) {
            facts.wake_at(Instant::now() + UNTOLD);
        }
    }

    /// What is proven of kinds that the cluster does not serve, each asked for once.
    async fn unserved(
        &self,
        ids: impl Iterator<Item = &Identity> + Send,
        session: &Session,
    ) -> BTreeMap<(String, String), Result<Absent, Trouble>> {
        let missing = ids.filter(|id| session.resource(id).is_none());
        let kinds: BTreeSet<(String, String)> =
            missing.map(|id| (id.group.clone(), id.kind.clone())).collect();
        let mut proofs = BTreeMap::new();
        for kind in kinds {
            let proof = absence::kind(&self.ctx.edge, session, &kind.0, &kind.1).await;
            proofs.insert(kind, proof);
        }
        proofs
    }

    /// UIDs of what stays, of the same names: a server may serve one object under two groups.
    fn uids<'a>(&self, ids: impl Iterator<Item = &'a Identity>, stay: &[App]) -> BTreeSet<String> {
        let names: BTreeSet<&str> = ids.map(|id| id.name.as_str()).collect();
        let kept = stay.iter().flat_map(|app| &app.set.ids).filter(|id| names.contains(id.name.as_str()));
        kept.filter_map(|id| Some(self.ctx.edge.observed.get(id)?.uid.clone())).collect()
    }

    fn prune_failed(&mut self, id: &Identity, trouble: &Trouble, facts: &mut Facts) {
        let key = Key::Object(Id::new(id.clone()));
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
        facts.trouble(None, Some(id), trouble, attempts);
    }
}

/// The end of one object.
struct End<'a> {
    ctx: &'a Arc<JobContext>,
    session: &'a Session,
    id: &'a Identity,
    /// It stays on the cluster, released.
    keep: bool,
    /// It is gone only when its Pods are.
    with_pods: bool,
    /// UID of the object of this name that was there before it was ours.
    adopted: Option<&'a str>,
    /// UIDs of objects that are wanted.
    wanted: &'a BTreeSet<String>,
    /// Who made it, as far as that is known.
    account: Option<&'a str>,
}

impl End<'_> {
    /// One step. `asked` is the UID of what was asked to go.
    async fn step(&self, asked: Option<&str>) -> Outcome {
        let Self { ctx, session, id, keep, adopted, wanted, .. } = *self;
        let Some(resource) = session.resource(id) else { return Outcome::Waits };
        let path = resource.path(&id.namespace, Some(&id.name));
        let look = ctx.edge.observed.look(id);
        let seen = match look {
            Look::There(seen) => seen,
            Look::Absent | Look::Unknown => {
                // We asked for its end, and the watch showed it.
                if let Some(absent) = Absent::of_watch(&look).filter(|_| asked.is_some()) {
                    return Outcome::Gone(absent);
                }
                match session.send(&ctx.edge, Request::new(Method::Get, &path)).await {
                    Err(error) => return self.refused(&error).await,
                    Ok(object) => {
                        let Some(seen) = Seen::of(id, &object) else {
                            let text = format!("the cluster answers {id} without a UID");
                            return Outcome::Trouble(Trouble::new("Invalid", &text, Retry::Slowly));
                        };
                        Arc::new(seen)
                    }
                }
            }
        };
        if let Some(absent) = Absent::of_others(&seen, &ctx.owner.hash) {
            let was_ours = seen.owner.is_none() && seen.managers.contains(&ctx.manager);
            let stripped = was_ours && !keep && !seen.keep;
            return if stripped { Outcome::Stripped(absent) } else { Outcome::Gone(absent) };
        }
        if wanted.contains(&seen.uid) {
            return Outcome::Kept;
        }
        // On its way already; the watch will show its end.
        if seen.deleting || asked == Some(seen.uid.as_str()) {
            return Outcome::Leaves(seen.leaving.clone());
        }
        let was_there = adopted == Some(seen.uid.as_str());
        let stays = keep || seen.keep || was_there;
        if session.branch().is_some() {
            return self.left_to_agent(stays).await;
        }
        let why = match (stays, order::is_namespace(id.kind())) {
            (false, true) => match super::namespace::holds_others(ctx, session, &id.name).await {
                Ok(Some(first)) => Some(format!("it holds {first}")),
                Ok(None) => return self.delete(&path, &seen).await,
                Err(trouble) => return Outcome::Trouble(trouble),
            },
            (false, false) => return self.delete(&path, &seen).await,
            // A namespace of others, a definition and what was there before are expected to stay.
            (true, true) => None,
            (true, false) if was_there || seen.adopted || order::is_crd(id.kind()) => None,
            (true, false) => Some(KEPT.to_owned()),
        };
        match self.release(&path, was_there).await {
            Outcome::Released(_) => Outcome::Released(why),
            other => other,
        }
    }

    /// An object whose file is gone: the agent removes it, or leaves it where the file said so. The file of a namespace goes when nothing
    /// of others is in it, for all would go with it.
    async fn left_to_agent(&self, stays: bool) -> Outcome {
        let Self { ctx, session, id, .. } = *self;
        if !order::is_namespace(id.kind()) {
            let why = (!order::is_crd(id.kind())).then(|| KEPT.to_owned());
            return if stays { Outcome::Released(why) } else { Outcome::Waits };
        }
        if stays {
            return Outcome::Released(None);
        }
        match super::namespace::holds_others(ctx, session, &id.name).await {
            Ok(Some(first)) => Outcome::Released(Some(format!("it holds {first}, and its file stays"))),
            Ok(None) => match session.take_off(&ctx.owner_text(), [id], 0) {
                Ok(_) => Outcome::Waits,
                Err(trouble) => Outcome::Trouble(trouble),
            },
            // Credentials that only look may not list Secrets.
            Err(trouble) if trouble.reason == "Forbidden" => {
                Outcome::Released(Some(format!("its file stays: {}", trouble.message)))
            }
            Err(trouble) => Outcome::Trouble(trouble),
        }
    }

    /// What an error says of the object: it is not there only if the server says so of this very object, or of its kind.
    async fn refused(&self, error: &ApiError) -> Outcome {
        let Self { ctx, session, id, .. } = *self;
        if let Some(absent) = Absent::of_answer(error, &id.name) {
            return Outcome::Gone(absent);
        }
        if error.is_not_found() {
            let proof = absence::kind(&ctx.edge, session, &id.group, &id.kind).await;
            return proof.map_or_else(Outcome::Trouble, Outcome::Gone);
        }
        Outcome::Trouble(Trouble::of_request(error))
    }

    /// A write by the account that made the object. Where that has no right to it any more, such as after permissions were taken away, the
    /// operator does it itself: the request names this very object, which carries our label.
    async fn send(&self, request: Request) -> ApiResult<Value> {
        let Self { ctx, session, id, account, .. } = *self;
        let Some(account) = account.filter(|_| !id.namespace.is_empty()) else {
            return session.send(&ctx.edge, request).await;
        };
        match session.send(&ctx.edge, request.clone().acting_as(Some(account))).await {
            Err(error) if error.lacks_right() => {
                ctx.edge.metrics.beyond_account.fetch_add(1, Ordering::Relaxed);
                if ctx.log.takes(Sort::BeyondAccount) {
                    tracing::info!(
                        cluster = %ctx.edge.id, object = %id, account,
                        "the account may not remove what it made: it is removed with the credentials of the Cluster"
                    );
                }
                session.send(&ctx.edge, request).await
            }
            answer => answer,
        }
    }

    async fn delete(&self, path: &ApiPath, seen: &Seen) -> Outcome {
        let Self { ctx, session, id, .. } = *self;
        let owns = self.with_pods && order::may_own_pods(id.kind());
        let propagation = if owns { FOREGROUND } else { BACKGROUND };
        let error = match self.send(delete_request(path, seen, propagation)).await {
            Ok(answer) => {
                // The object itself, going; or a Status that says it went.
                if answer.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
                    ctx.edge.observed.learn(id, &answer);
                }
                return Outcome::Asked(seen.uid.clone());
            }
            Err(error) if error.is_conflict() => {
                match session.send(&ctx.edge, Request::new(Method::Get, path)).await {
                    Ok(object) => return Outcome::Again(Box::new(object)),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let outcome = self.refused(&error).await;
        if matches!(outcome, Outcome::Gone(_)) {
            ctx.edge.observed.forget(id, &seen.uid);
        }
        outcome
    }

    /// Releases an object that stays: our marks and our entry in its managed fields leave, its content does not change. `was_there`: before
    /// it was ours.
    async fn release(&self, path: &ApiPath, was_there: bool) -> Outcome {
        let Self { ctx, session, id, .. } = *self;
        let live = match session.send(&ctx.edge, Request::new(Method::Get, path)).await {
            Ok(live) => live,
            Err(error) => return self.refused(&error).await,
        };
        let request = match ctx.release(path, id, &live, was_there) {
            None => return Outcome::Released(None),
            Some(Err(trouble)) => return Outcome::Trouble(trouble),
            Some(Ok(request)) => request,
        };
        match self.send(request).await {
            Ok(object) => {
                ctx.edge.observed.learn(id, &object);
                Outcome::Released(None)
            }
            // Another writer was faster: the test of the resourceVersion refused it.
            Err(error) if matches!(error.code(), 409 | 422) => {
                Outcome::Trouble(Trouble { retry: Retry::Soon, ..Trouble::of_request(&error) })
            }
            Err(error) => self.refused(&error).await,
        }
    }
}
