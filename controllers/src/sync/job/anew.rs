//! Deletes an object whose change is refused because a field cannot be changed, so that the next pass makes it again. Nothing
//! is remembered: a process that ends in between finds an object to change, or none, and the target says the rest.

use std::time::Duration;

use emco_crds::OwnerKind;
use emco_crds::deployment_intent_group::sync::ImmutablePolicy;
use emco_engine::{drift, marks, recreate};
use futures::StreamExt;
use futures::stream;
use serde_json::json;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{
    A_CHART_NAMES_IT, A_PERMISSION_NAMES_IT, IMMUTABLE, Retry, Trouble, lacks_namespace, names_each_field,
};
use super::super::line_bound::Sort;
use super::super::observe::Seen;
use super::desired::Item;
use super::first::BLOCKED;
use super::row::Facts;
use super::send::entries;
use super::{Job, JobContext, Key};
use crate::api::{ApiError, Content, IntoPath, Method, Request};
use crate::object::LogFields;

/// What helps where the owner does not want objects to be deleted.
const OFFER: &str = "a field cannot be changed: take the change back, delete the object on the cluster, or set spec.sync.immutableFields: Recreate";
/// The same of an owner that has no such field.
const PLAIN: &str =
    "a field cannot be changed: take the change back, or delete the object and it is made anew";

/// Why an object stays whose refusal does not name each field.
const UNPROVEN: &str =
    "the refusal does not prove that it could be made again, so it is never deleted for it";

/// So often an account that lacks a right is tried again soon, before that counts as a failure.
const RIGHTS_COME: u32 = 2;

/// An object whose change was refused.
pub(super) struct Refused {
    pub item: Item,
    /// The very object that refuses the change.
    pub uid: String,
    /// It outlives its deployment.
    stays: bool,
    /// What the server says.
    words: String,
    error: ApiError,
}

/// What one try to make room came to.
enum Outcome {
    /// It is not there any more.
    Gone,
    /// It is on its way out, and the watch tells its end.
    Leaves,
    /// Nothing was asked.
    Waits,
    /// It is not deleted, or not now.
    Trouble(Trouble),
}

impl Job {
    /// What the refusal of an object means.
    pub(super) fn refusal(&self, item: &Item, error: &ApiError) -> Trouble {
        if lacks_namespace(error) {
            self.misses_namespace(&item.id.namespace);
        }
        if lacks_namespace(error) && !self.comes_by_itself(&item.id.namespace) {
            let cure = if self.has_sync_policy() { A_CHART_NAMES_IT } else { A_PERMISSION_NAMES_IT };
            return Trouble::no_namespace(&item.id.namespace, cure);
        }
        let mut trouble = words(item, error);
        if trouble.reason == "KindMissing" {
            // What it says that it serves is older than that.
            self.ctx.edge.refresh_apis();
            let version = item.manifest().and_then(|manifest| manifest.json.get("apiVersion")?.as_str());
            let (kind, version) = (&item.id.kind, version.unwrap_or_default());
            let text = format!("the cluster answers for no kind {kind} of {version}: {}", trouble.words());
            return Trouble::new("KindMissing", &text, Retry::Soon);
        }
        // A cluster heeds a binding a moment after it has it: that of the account, or in a logical cloud the operator's own, whose rights
        // are also what it may give away. Until then nothing failed.
        let tries = self.memory.backoff.last(&Key::Object(item.id.clone())).map_or(0, |tries| tries.count);
        let cloud = self.ctx.owner.kind == OwnerKind::LogicalCloud && error.code() == 403;
        if (item.account().is_some() && error.lacks_right() || cloud) && tries < RIGHTS_COME {
            (trouble.reason, trouble.retry) = ("Progressing", Retry::Soon);
        }
        if trouble.reason != IMMUTABLE {
            return trouble;
        }
        match recreate::kind_obstacle(&item.id) {
            Some(why) => Trouble::fixed(&why, trouble.words()),
            None if !names_each_field(error) => Trouble::fixed(UNPROVEN, trouble.words()),
            None => {
                let offer = if self.has_sync_policy() { OFFER } else { PLAIN };
                Trouble::new(IMMUTABLE, &format!("{offer}: {}", trouble.words()), Retry::Slowly)
            }
        }
    }

    /// An object of ours that is to be deleted, because its change was refused so; `None` where it stays.
    pub(super) fn to_make_anew(&self, item: &Item, uid: &str, error: &ApiError) -> Option<Refused> {
        let words = words(item, error);
        let wanted = self.memory.pace.immutable == ImmutablePolicy::Recreate
            && words.reason == IMMUTABLE
            && names_each_field(error)
            && recreate::kind_obstacle(&item.id).is_none();
        let keeps = item.manifest().is_some_and(|manifest| manifest.keep || manifest.crd_folder);
        wanted.then(|| Refused {
            item: item.clone(),
            uid: uid.to_owned(),
            stays: keeps || self.is_adopted(&item.id, uid),
            words: words.message,
            error: error.clone(),
        })
    }

    /// Deletes the objects whose change was refused. What is gone is made by the next pass.
    pub(super) async fn make_anew(&mut self, refused: Vec<Refused>, session: &Session, facts: &mut Facts) {
        let ctx = self.ctx.clone();
        let end = self.pass_end();
        let mut outcomes = stream::iter(refused.into_iter().map(|refused| {
            let (ctx, session, end) = (ctx.clone(), session.clone(), end.clone());
            async move {
                if end.is_over() {
                    return (refused, Outcome::Waits);
                }
                let manifest = refused.item.manifest();
                let besides = manifest.and_then(|manifest| Trouble::besides(&manifest.json, &refused.error));
                let outcome = match besides {
                    Some(trouble) => Outcome::Trouble(trouble),
                    None => delete(&refused, &session, &ctx).await,
                };
                (refused, outcome)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        while let Some((refused, outcome)) = outcomes.next().await {
            match outcome {
                Outcome::Gone => {
                    self.asked_to_go(&refused);
                    self.ctx.edge.observed.forget(&refused.item.id, &refused.uid);
                    // At once, but after this pass.
                    facts.wake_at(Instant::now() + Duration::from_millis(1));
                }
                Outcome::Leaves => self.asked_to_go(&refused),
                Outcome::Waits => {}
                Outcome::Trouble(trouble) => self.item_failed(&refused.item, &trouble, facts),
            }
        }
    }

    fn asked_to_go(&mut self, refused: &Refused) {
        self.memory.backoff.worked(&Key::Object(refused.item.id.clone()));
        self.memory.drift.awaits(&refused.item.id);
        if !self.ctx.log.takes(Sort::Anew) {
            return;
        }
        let (cluster, resource, reason) =
            (self.ctx.edge.id.as_str(), refused.item.id.to_string(), refused.words.as_str());
        let revision = self.revision();
        let LogFields { project, deployment, object } = &self.ctx.log.owner;
        tracing::info!(
            project,
            deployment,
            object,
            cluster,
            revision,
            resource,
            reason,
            "deleted to be made again"
        );
    }

    /// Names an object of ours that has to go before it is made again, and does not.
    pub(super) fn name_leaving(&self, item: &Item, facts: &mut Facts) {
        let Some(seen) = self.ctx.edge.observed.get(&item.id).filter(|seen| seen.deleting) else { return };
        if !self.memory.settled {
            let text =
                format!("it is made again when it is gone: {}", seen.leaving.as_deref().unwrap_or_default());
            let trouble = Trouble::new(BLOCKED, &text, Retry::Soon);
            self.name_late(Some(&item.app), &item.id, &trouble, facts);
        }
    }
}

/// A refusal in the server's words, by what it says of this manifest.
pub(super) fn words(item: &Item, error: &ApiError) -> Trouble {
    match item.manifest() {
        Some(manifest) => Trouble::of_manifest(&manifest.json, error),
        None => Trouble::of_apply(error),
    }
}

/// Deletes exactly the object that refused the change, at the version that was looked at.
async fn delete(refused: &Refused, session: &Session, ctx: &JobContext) -> Outcome {
    let id = &refused.item.id;
    let Some(resource) = session.resource(id) else { return Outcome::Waits };
    let path = resource.path(&id.namespace, Some(&id.name));
    let live = match session.send(&ctx.edge, Request::new(Method::Get, path.clone())).await {
        Ok(live) => live,
        Err(error) => return failed(&error, &id.name),
    };
    let Some(seen) = Seen::of(id, &live).filter(|seen| seen.uid == refused.uid) else { return changed() };
    match marks::owner_of(&live) {
        Some(owner) if owner == ctx.owner.hash => {}
        Some(_) => return changed(),
        None => return Outcome::Trouble(Trouble::fixed(recreate::UNMARKED, &refused.words)),
    }
    if drift::entry(entries(&live), &ctx.manager, "Apply").is_none() {
        return Outcome::Trouble(Trouble::fixed(recreate::COPIED, &refused.words));
    }
    if seen.deleting {
        ctx.edge.observed.learn(id, &live);
        return Outcome::Waits;
    }
    if let Some(why) = recreate::obstacle(id, &live, seen.keep || refused.stays) {
        return Outcome::Trouble(Trouble::fixed(&why, &refused.words));
    }
    // Without a fallback: who may not delete it could not make it again.
    let request = delete_request(path, &seen, BACKGROUND).acting_as(refused.item.account());
    match session.send(&ctx.edge, request).await {
        // The object itself, going; or a Status that says it went.
        Ok(answer) if answer.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) => {
            ctx.edge.observed.learn(id, &answer);
            Outcome::Leaves
        }
        Ok(_) => Outcome::Gone,
        Err(error) => failed(&error, &id.name),
    }
}

/// What an object owns is deleted after it.
pub(super) const BACKGROUND: &str = "Background";
/// What an object owns is deleted before it.
pub(super) const FOREGROUND: &str = "Foreground";

/// The deletion of exactly the object that was looked at, in the state that was looked at.
pub(super) fn delete_request(path: impl IntoPath, seen: &Seen, propagation: &str) -> Request {
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation,
        "preconditions": {"uid": seen.uid, "resourceVersion": seen.version_text},
    });
    Request::new(Method::Delete, path).body(Content::Json, &options)
}

fn failed(error: &ApiError, name: &str) -> Outcome {
    if error.lacks(name) {
        Outcome::Gone
    } else if error.is_conflict() {
        changed()
    } else {
        Outcome::Trouble(Trouble::of_request(error))
    }
}

fn changed() -> Outcome {
    let text = "it changed while it was to be deleted and made again";
    Outcome::Trouble(Trouble::new("Progressing", text, Retry::Soon))
}
