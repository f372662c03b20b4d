//! What may be there and is not to be in; group by group it is removed, and its absence proved, before the next begins.
//! A DELETE names UID and resourceVersion, and only what carries our label gets one.

use std::sync::Arc;

use emco_engine::identity::{Id, Identity};
use emco_engine::{marks, order};
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::super::observe::{Look, Seen};
use super::desired::Doomed;
use super::halt::Halt;
use super::row::Facts;
use super::{Job, JobContext, Key};
use crate::api::{Content, Method, Request};

/// What one try came to.
enum Outcome {
    /// Not there, or nothing of ours.
    Gone,
    /// Asked to go; the UID of what was asked.
    Asked(String),
    /// Was let go of: it stays, without our marks.
    Released,
    /// It is being deleted, or something else must come first.
    Waits,
    /// Looked at again: another version is there.
    Again(Box<Value>),
    /// Not possible now.
    Trouble(Trouble),
}

impl Job {
    /// Removes what is doomed; true when nothing of it is left.
    pub(super) async fn prune(&mut self, doomed: &Doomed, session: &Session, facts: &mut Facts) -> bool {
        let left = |job: &Self| doomed.objects.keys().filter(|id| !job.memory.gone.contains(*id)).count();
        if left(self) == 0 {
            return true;
        }
        let all = doomed.objects.keys().cloned();
        let stays: Vec<Identity> = all.clone().filter(|id| order::is_crd(id.kind())).collect();
        let mut groups = order::removal(all);
        if !stays.is_empty() {
            // Kinds end last: an object of a kind that is let go of must still be found.
            groups.push(stays);
        }
        for group in groups {
            let open: Vec<(Identity, bool)> = group
                .into_iter()
                .filter(|id| !self.memory.gone.contains(id))
                .map(|id| {
                    let keep = doomed.objects.get(&id).copied().unwrap_or_default();
                    (id, keep)
                })
                .collect();
            if open.is_empty() {
                continue;
            }
            if self.stale() || !self.prune_group(open, session, facts).await {
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
            now.push((id, keep, asked));
        }
        if now.is_empty() || self.held_up(facts) {
            return false;
        }
        let ctx = self.ctx.clone();
        let input = self.input.clone();
        let halt = Arc::new(Halt::default());
        let mut outcomes = stream::iter(now.into_iter().map(|(id, keep, asked)| {
            let (ctx, session, input, halt) =
                (ctx.clone(), session.clone(), input.clone(), Arc::clone(&halt));
            async move {
                let outcome = if input.has_changed().unwrap_or(true) || halt.holds(&id.namespace) {
                    Outcome::Waits
                } else {
                    end(&ctx, &session, &id, keep, asked.as_deref()).await
                };
                (id, outcome)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        while let Some((id, outcome)) = outcomes.next().await {
            let key = Key::Object(Id::new(id.clone()));
            match &outcome {
                Outcome::Asked(_) | Outcome::Released => {
                    halt.answered();
                    self.memory.backoff.worked(&Key::Server);
                }
                Outcome::Trouble(trouble) if halt.refused(trouble) => {
                    self.failed(Key::Server, trouble.clone());
                }
                _ => {}
            }
            match outcome {
                Outcome::Gone => {
                    if self.memory.deletes.remove(&id).is_some() {
                        self.memory.deleted += 1;
                        count(&self.ctx.edge.metrics.deleted);
                    }
                    self.memory.backoff.worked(&key);
                    self.memory.gone.insert(id);
                    continue;
                }
                Outcome::Released => {
                    count(&self.ctx.edge.metrics.released);
                    self.memory.backoff.worked(&key);
                    self.memory.gone.insert(id);
                    continue;
                }
                Outcome::Asked(uid) => {
                    self.memory.backoff.worked(&key);
                    self.memory.deletes.insert(id, uid);
                }
                Outcome::Waits => {}
                Outcome::Again(object) => {
                    self.ctx.edge.observed.learn(&id, &object);
                    let text = "it changed while it was to be removed";
                    self.prune_failed(&id, &Trouble::new("Progressing", text, Retry::Soon), facts);
                }
                Outcome::Trouble(trouble) => self.prune_failed(&id, &trouble, facts),
            }
            all = false;
        }
        all
    }

    fn prune_failed(&mut self, id: &Identity, trouble: &Trouble, facts: &mut Facts) {
        let key = Key::Object(Id::new(id.clone()));
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
        facts.trouble(None, Some(id), trouble, attempts);
    }
}

/// One step towards the end of one object.
async fn end(
    ctx: &Arc<JobContext>,
    session: &Session,
    id: &Identity,
    keep: bool,
    asked: Option<&str>,
) -> Outcome {
    // A kind that the cluster does not serve has no objects.
    let Some(resource) = session.resource(id) else { return Outcome::Gone };
    let path = resource.path(&id.namespace, Some(&id.name));
    let seen = match ctx.edge.observed.look(id) {
        Look::There(seen) => seen,
        // We asked for its end and the watch told it.
        Look::Absent if asked.is_some() => return Outcome::Gone,
        Look::Absent | Look::Unknown => match session.send(&ctx.edge, Request::new(Method::Get, &path)).await
        {
            Err(error) if error.is_not_found() => return Outcome::Gone,
            Err(error) => return Outcome::Trouble(Trouble::of_request(&error)),
            Ok(object) => match Seen::of(id, &object) {
                Some(seen) => Arc::new(seen),
                None => return Outcome::Gone,
            },
        },
    };
    if seen.owner.as_ref() != Some(&ctx.hash) {
        return Outcome::Gone;
    }
    // On its way already; the watch will tell its end.
    if seen.deleting || asked == Some(seen.uid.as_str()) {
        return Outcome::Waits;
    }
    let stays = keep || seen.keep;
    let stays = match (stays, order::is_namespace(id.kind())) {
        (false, true) => match super::namespace::holds_others(ctx, session, &id.name).await {
            Ok(holds) => holds,
            Err(trouble) => return Outcome::Trouble(trouble),
        },
        (stays, _) => stays,
    };
    if stays { release(ctx, session, id, &path).await } else { delete(ctx, session, id, &path, &seen).await }
}

async fn delete(ctx: &Arc<JobContext>, session: &Session, id: &Identity, path: &str, seen: &Seen) -> Outcome {
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
        "preconditions": {"uid": seen.uid, "resourceVersion": seen.version_text},
    });
    let request = Request::new(Method::Delete, path).body(Content::Json, &options);
    match session.send(&ctx.edge, request).await {
        Ok(answer) => {
            // The object itself, going; or a Status that says it went.
            if answer.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
                ctx.edge.observed.learn(id, &answer);
            }
            Outcome::Asked(seen.uid.clone())
        }
        Err(error) if error.is_not_found() => {
            ctx.edge.observed.forget(id, &seen.uid);
            Outcome::Gone
        }
        Err(error) if error.is_conflict() => {
            match session.send(&ctx.edge, Request::new(Method::Get, path)).await {
                Ok(object) => Outcome::Again(Box::new(object)),
                Err(error) if error.is_not_found() => {
                    ctx.edge.observed.forget(id, &seen.uid);
                    Outcome::Gone
                }
                Err(error) => Outcome::Trouble(Trouble::of_request(&error)),
            }
        }
        Err(error) => Outcome::Trouble(Trouble::of_request(&error)),
    }
}

/// Lets go of an object that stays: our marks and our entry in its managed fields leave, its content does not change.
async fn release(ctx: &Arc<JobContext>, session: &Session, id: &Identity, path: &str) -> Outcome {
    let live = match session.send(&ctx.edge, Request::new(Method::Get, path)).await {
        Ok(live) => live,
        Err(error) if error.is_not_found() => return Outcome::Gone,
        Err(error) => return Outcome::Trouble(Trouble::of_request(&error)),
    };
    let Some(letting_go) = marks::release_patch(&live, &ctx.hash) else { return Outcome::Released };
    let body = match serde_json::to_value(&letting_go) {
        Ok(body) => body,
        Err(error) => return Outcome::Trouble(Trouble::new("Invalid", &error.to_string(), Retry::Slowly)),
    };
    let request = Request::new(Method::Patch, path)
        .query("fieldManager", ctx.manager.clone())
        .body(Content::JsonPatch, &body);
    match session.send(&ctx.edge, request).await {
        Ok(object) => {
            ctx.edge.observed.learn(id, &object);
            Outcome::Released
        }
        Err(error) if error.is_not_found() => Outcome::Gone,
        Err(error) => Outcome::Trouble(match Trouble::of_request(&error) {
            // Somebody wrote between reading and letting go: the test of the resourceVersion refused it.
            trouble if matches!(error.code(), 409 | 422) => Trouble { retry: Retry::Soon, ..trouble },
            trouble => trouble,
        }),
    }
}
