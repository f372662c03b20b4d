//! Takes over objects of others, as far as the owner wants that. One that is taken over carries a mark, which every later apply
//! says again: it is released when its deployment goes, never deleted.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::OwnerKind;
use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_crds::names::annotation;
use emco_engine::adopt::Holder;
use emco_engine::identity::{Id, Identity};
use serde_json::json;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::line_bound::Sort;
use super::super::observe::Seen;
use super::desired::Item;
use super::foreign::{self, Foreign};
use super::row::Facts;
use super::send::{Over, Refusal};
use super::{Job, Key, anew, row};
use crate::api::{ApiError, Content, Method, Request};
use crate::object::LogFields;

/// Another try to put the mark on an object.
const AGAIN: Duration = Duration::from_secs(30);

/// An object of others that is to be ours.
#[derive(Clone)]
pub(super) struct Takeover {
    /// The very object.
    pub uid: String,
    /// The version that was looked at.
    pub version: String,
    /// What may become of it and of other managers' fields.
    pub how: ConflictPolicy,
    pub holder: Holder,
    /// Who took our marks off, where we applied it before and the row is not complete.
    pub by: Option<String>,
}

/// An object of ours whose label others took off.
#[derive(Clone)]
pub(super) struct Stripped {
    /// The very object.
    pub uid: String,
    /// The version that was looked at.
    pub version: String,
    /// Who took it off, where we applied the object before and the row is not complete.
    pub by: Option<String>,
}

impl Job {
    /// An object of others as it is applied over; `None` where the owner does not want that. Objects of hooks are deleted between
    /// runs, so they are never taken over.
    pub(super) fn take_over(&self, item: &Item, found: &Foreign) -> Option<Over> {
        let how = self.memory.pace.conflicts;
        let wanted = how != ConflictPolicy::Fail && self.may_take_over(item);
        let Foreign { seen, holder, .. } = found;
        let (uid, version, holder) = (seen.uid.clone(), seen.version_text.clone(), holder.clone());
        let by = self.stripped_by(item, found);
        wanted.then_some(Over::Others(Takeover { uid, version, how, holder, by }))
    }

    /// Whether its owner could have an object of others taken over for this one.
    pub(super) fn may_take_over(&self, item: &Item) -> bool {
        self.has_sync_policy() && item.manifest().is_some_and(|manifest| manifest.hook.is_none())
    }

    /// Whether the owner says how it is kept as wanted: a logical cloud has no `spec.sync`.
    pub(super) fn has_sync_policy(&self) -> bool {
        self.ctx.owner.kind == OwnerKind::DeploymentIntentGroup
    }

    /// An object of ours that others stripped of our label, as it is applied again.
    pub(super) fn over_stripped(&self, item: &Item, found: &Foreign) -> Over {
        let (uid, version) = (found.seen.uid.clone(), found.seen.version_text.clone());
        Over::Stripped(Stripped { uid, version, by: self.stripped_by(item, found) })
    }

    /// What the refusal of a takeover means.
    pub(super) fn refused_takeover(&self, item: &Item, takeover: &Takeover, refusal: &Refusal) -> Trouble {
        match refusal {
            Refusal::Differs(fields) => foreign::differs(&takeover.holder, fields),
            Refusal::Taken => {
                Trouble::new("Progressing", "another deployment took it over at this moment", Retry::Soon)
            }
            Refusal::Server(error @ ApiError::Status { causes, .. }) if error.is_contested() => {
                foreign::contested(&takeover.holder, causes)
            }
            Refusal::Server(error) if error.lacks(&item.id.name) => {
                let text = "it was deleted while it was to be taken over";
                Trouble::new("Progressing", text, Retry::Soon)
            }
            Refusal::Server(error) => {
                let trouble = anew::words(item, error);
                match trouble.reason {
                    "ImmutableField" => foreign::fixed(&takeover.holder, trouble.words()),
                    _ => self.refusal(item, error),
                }
            }
        }
    }

    /// Records an object that is ours now and was there before.
    pub(super) fn taken_over(&mut self, item: &Item, uid: &str, from: &str) {
        self.note_adopted(&item.id, uid);
        if !self.ctx.log.takes(Sort::TakenOver) {
            return;
        }
        let (cluster, resource, revision) = (self.ctx.edge.id.as_str(), item.id.to_string(), self.revision());
        let LogFields { project, deployment, object } = &self.ctx.log.owner;
        tracing::info!(project, deployment, object, cluster, revision, resource, from, "taken over");
    }

    /// Whether this very object was there before it was ours, as its mark says, or said before others took it off.
    pub(super) fn is_adopted(&self, id: &Identity, uid: &str) -> bool {
        self.was_adopted(id, uid)
            || self.ctx.edge.observed.get(id).is_some_and(|seen| seen.uid == uid && seen.adopted)
    }

    /// Whether its mark said so once, whatever it says now.
    pub(super) fn was_adopted(&self, id: &Identity, uid: &str) -> bool {
        self.memory.adopted.get(id).is_some_and(|adopted| adopted == uid)
    }

    /// Notes what the mark of an object says, so that it can be said again.
    pub(super) fn note_adopted(&mut self, id: &Id, uid: &str) {
        if self.memory.adopted.get(&**id).is_none_or(|known| known != uid) {
            self.memory.adopted.insert((**id).clone(), uid.to_owned());
        }
    }

    /// Whether an object of ours without any mark may have been there before it was ours: nobody knows who took the marks off while
    /// no operator ran, and what was taken over is never deleted. A row knows that objects were taken over, also where none is any more.
    pub(super) fn may_be_adopted(&self, item: &Item, found: &Foreign) -> bool {
        found.seen.manifest.is_none()
            && (self.memory.pace.conflicts != ConflictPolicy::Fail || self.took_over())
            && !self.memory.drift.has_applied(&item.id)
    }

    /// Objects of others were taken over, by this process or before it.
    pub(super) fn took_over(&self) -> bool {
        self.memory.status.took_over || !self.memory.adopted.is_empty()
    }

    /// Notes an object of ours that lost our label and was there before, or may have been. A complete row tells who took all marks off.
    pub(super) fn note_stripped(&mut self, item: &Item, found: &Foreign) {
        let unmarked = !found.seen.adopted;
        if unmarked && !self.may_be_adopted(item, found) {
            return;
        }
        self.note_adopted(&item.id, &found.seen.uid);
        if unmarked && self.memory.settled {
            let by = self.others(&found.seen);
            self.note_difference(item, by);
        }
    }

    /// Whether an object that others stripped of our label after we applied it may be applied again now. Each round that put it right
    /// makes the next pause longer.
    pub(super) fn may_mark_again(&mut self, item: &Item, found: &Foreign, facts: &mut Facts) -> bool {
        if !self.memory.drift.has_applied(&item.id) {
            return true;
        }
        if self.memory.settled {
            let by = self.others(&found.seen);
            self.note_difference(item, by);
            return true;
        }
        // A change by a revision does not wait for the end of a fight over what was there before.
        let changes = found.seen.manifest.as_deref().is_some_and(|token| *token != *item.token);
        if let Some(tries) = self.memory.backoff.waiting(&Key::Again(item.id.clone()))
            && !changes
        {
            facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
            return false;
        }
        true
    }

    /// Who is to be named when the object is applied again. A complete row names them as a difference.
    fn stripped_by(&self, item: &Item, found: &Foreign) -> Option<String> {
        let names = !self.memory.settled && self.memory.drift.has_applied(&item.id);
        names.then(|| self.others(&found.seen))
    }

    /// Puts the mark on objects that were taken over and do not carry it, and nothing else: the mark alone keeps them from being
    /// deleted once this process is gone.
    pub(super) async fn mark_adopted(
        &mut self,
        unmarked: Vec<(Item, Arc<Seen>)>,
        session: &Session,
        facts: &mut Facts,
    ) {
        for (item, seen) in unmarked {
            if self.stale() {
                return;
            }
            let Some(resource) = session.resource(&item.id) else { continue };
            if self.memory.backoff.waiting(&Key::Again(item.id.clone())).is_some() {
                continue;
            }
            let path = resource.path(&item.id.namespace, Some(&item.id.name));
            let patch = json!({"metadata": {
                "uid": seen.uid, "resourceVersion": seen.version_text, "annotations": {(annotation::ADOPTED): "true"},
            }});
            let request = Request::new(Method::Patch, path)
                .query("fieldManager", self.ctx.manager.as_str())
                .acting_as(item.account())
                .body(Content::Merge, &patch);
            match self.send(session, request).await {
                Ok(object) => {
                    self.ctx.edge.observed.learn(&item.id, &object);
                    let by = self.others(&seen);
                    self.again(&item, "changed", &by, &[]);
                }
                // Mostly another version is there by now.
                Err(_) => facts.wake_at(Instant::now() + AGAIN),
            }
        }
    }

    fn others(&self, seen: &Seen) -> String {
        let others = seen.managers.iter().filter(|manager| **manager != self.ctx.manager);
        let names: Vec<&str> = others.map(String::as_str).collect();
        if names.is_empty() { "others".to_owned() } else { names.join(", ") }
    }

    /// Objects that are going already are waited for.
    pub(super) fn wait_for_end(&mut self, item: &Item, facts: &mut Facts) {
        let text = "an object of this name is being deleted";
        self.item_failed(item, &Trouble::new("Progressing", text, Retry::Soon), facts);
        facts.wake_at(row::deadline(self));
    }
}
