//! Applies the objects of a set that are not as wanted. What is there already and ours costs no request; what others made is not
//! touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::Identity;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble, lacks_namespace};
use super::super::metrics::Applied;
use super::super::observe::Seen;
use super::desired::Item;
use super::foreign::{self, Foreign};
use super::halt::Halt;
use super::row::Facts;
use super::send::{Sent, apply};
use super::{Job, Key};
use crate::runtime::api::{Method, Request};

/// So many names of one kind and namespace are looked up one by one; more by a list.
const FEW: usize = 4;
/// Pages of such a list.
const PAGES: usize = 40;

/// What has to be done about one object.
pub(super) enum Need {
    /// It is as it shall be.
    Nothing,
    /// It is somebody else's, and taken as it is.
    Taken,
    /// Not there, as far as we know.
    Look,
    /// Ours with another content; the UID makes sure that it is still this one.
    Renew(String),
    /// Waits for something else.
    Wait,
    /// Not possible.
    Trouble(Trouble),
}

/// What a look at the cluster found under a name.
pub(super) enum Found {
    Nothing,
    Object(Box<Foreign>),
}

impl Job {
    /// Applies what is not as it shall be; true when all of it is applied now.
    pub(super) async fn ensure(&mut self, items: &[Item], session: &Session, facts: &mut Facts) -> bool {
        let mut all = true;
        let mut look: Vec<Item> = Vec::new();
        let mut send: Vec<(Item, Option<String>)> = Vec::new();
        for item in items {
            if let Some(tries) = self.memory.backoff.waiting(&Key::Object(item.id.clone())) {
                facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
                all = false;
                continue;
            }
            match self.need(item, session) {
                Need::Nothing => {}
                Need::Taken => drop(self.memory.taken.insert(item.id.clone())),
                Need::Look | Need::Renew(_) if !self.may_restore(item, facts) => all = false,
                Need::Look => look.push(item.clone()),
                Need::Renew(uid) => send.push((item.clone(), Some(uid))),
                Need::Wait => {
                    all = false;
                    self.name_leaving(item, facts);
                }
                Need::Trouble(trouble) => {
                    all = false;
                    self.item_failed(item, &trouble, facts);
                }
            }
        }
        if look.is_empty() && send.is_empty() {
            return all;
        }
        if self.held_up(facts) {
            return false;
        }
        let fine = self.look(look, session, &mut send, facts).await;
        all = all && fine;
        // In the order of the set, as far as requests in flight keep an order.
        // What failed before comes last: it must not keep the rest from its turn.
        send.sort_by_cached_key(|(item, _)| (self.has_failed(item), item.place));
        self.send_all(send, session, facts).await && all
    }

    pub(super) fn need(&self, item: &Item, session: &Session) -> Need {
        let Some(manifest) = item.manifest() else { return Need::Wait };
        let seen = self.ctx.edge.observed.get(&item.id);
        // Nearly all of them nearly always: nothing else has to be found out.
        if seen.as_ref().is_some_and(|seen| {
            seen.owner.as_ref() == Some(&self.ctx.hash)
                && seen.manifest.as_deref() == Some(&*item.token)
                && !seen.deleting
        }) {
            return Need::Nothing;
        }
        if session.resource_of(&manifest.json).is_none() {
            let version = manifest.json.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let text = format!("the cluster serves no kind {} of {version}", item.id.kind);
            self.ctx.edge.refresh_apis();
            return Need::Trouble(Trouble::new("KindMissing", &text, Retry::Soon));
        }
        if item.spans() && !self.memory.pace.whole_cluster {
            let text = format!(
                "{} belongs to the whole cluster, which was not known when it was planned: use a logical cloud of level Admin, or \
                 remove it",
                item.id
            );
            return Need::Trouble(Trouble::new("NotAllowedByLevel", &text, Retry::Slowly));
        }
        if self.memory.taken.contains(&item.id) {
            return Need::Nothing;
        }
        match seen {
            None if self.finished_and_gone(item) => Need::Nothing,
            None => Need::Look,
            Some(seen) => self.compare(item, &seen),
        }
    }

    /// What an object that is there and carries somebody's owner label asks for.
    pub(super) fn compare(&self, item: &Item, seen: &Seen) -> Need {
        let ours = seen.owner.as_ref() == Some(&self.ctx.hash);
        if !ours && (self.left_alone(item) || self.take_existing(item)) {
            return Need::Taken;
        }
        if !ours {
            let other = seen.placed_by.as_deref().unwrap_or("another hub or owner");
            let text = format!("{} belongs to {other}: remove it there, or change its name here", item.id);
            return Need::Trouble(Trouble::new("Conflict", &text, Retry::Slowly));
        }
        if seen.deleting {
            return Need::Wait;
        }
        if self.left_alone(item) || seen.manifest.as_deref() == Some(&*item.token) {
            return Need::Nothing;
        }
        Need::Renew(seen.uid.clone())
    }

    /// From a chart's `crds/` folder: made if absent, otherwise left as it is.
    #[allow(clippy::unused_self)]
    pub(super) fn left_alone(&self, item: &Item) -> bool {
        item.manifest().is_some_and(|manifest| manifest.crd_folder)
    }

    #[allow(clippy::unused_self)]
    pub(super) fn take_existing(&self, item: &Item) -> bool {
        item.manifest().is_some_and(|manifest| manifest.take_existing)
    }

    /// Looks for objects under the names we want that our label does not show. What is surely absent is to be sent, and so
    /// is what our manager made and only lost its label.
    async fn look(
        &mut self,
        items: Vec<Item>,
        session: &Session,
        send: &mut Vec<(Item, Option<String>)>,
        facts: &mut Facts,
    ) -> bool {
        let mut fine = true;
        for group in by_kind(items) {
            if self.stale() {
                return false;
            }
            let found = match self.find(&group, session).await {
                Ok(found) => found,
                Err(trouble) => {
                    for item in &group {
                        self.item_failed(item, &trouble, facts);
                    }
                    fine = false;
                    continue;
                }
            };
            for item in group {
                match found.get(&item.id.name) {
                    None | Some(Found::Nothing) => send.push((item, None)),
                    Some(Found::Object(found))
                        if found.seen.owner.is_none() && found.seen.managers.contains(&self.ctx.manager) =>
                    {
                        send.push((item, Some(found.seen.uid.clone())));
                    }
                    Some(Found::Object(found)) => fine = self.met(&item, found, facts) && fine,
                }
            }
        }
        fine
    }

    /// An object is there that the label's watch did not show.
    fn met(&mut self, item: &Item, found: &Foreign, facts: &mut Facts) -> bool {
        if self.take_existing(item) || self.left_alone(item) {
            self.memory.taken.insert(item.id.clone());
            self.memory.backoff.worked(&Key::Object(item.id.clone()));
            return true;
        }
        if found.seen.owner.is_some() {
            // The watch is behind: it will say so.
            self.item_failed(item, &Trouble::new("Progressing", "the watch is behind", Retry::Soon), facts);
            return false;
        }
        self.item_failed(item, &foreign::trouble(&found.holder), facts);
        false
    }

    pub(super) async fn find(
        &self,
        group: &[Item],
        session: &Session,
    ) -> Result<BTreeMap<String, Found>, Trouble> {
        let Some((first, resource)) =
            group.first().and_then(|item| Some((item, session.resource_of(&item.manifest()?.json)?.clone())))
        else {
            return Ok(BTreeMap::new());
        };
        let mut found = BTreeMap::new();
        if group.len() <= FEW || !resource.listable {
            for item in group {
                let path = resource.path(&item.id.namespace, Some(&item.id.name));
                match self.send(session, Request::new(Method::Get, path).metadata()).await {
                    Ok(object) => drop(found.insert(item.id.name.clone(), found_of(&item.id, &object))),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(Trouble::of_request(&error)),
                }
            }
            return Ok(found);
        }
        let wanted: BTreeSet<&str> = group.iter().map(|item| item.id.name.as_str()).collect();
        let mut next: Option<String> = None;
        for _ in 0..PAGES {
            let path = resource.path(&first.id.namespace, None);
            let mut request = Request::new(Method::Get, path).metadata().query("limit", "500");
            if let Some(next) = next.take() {
                request = request.query("continue", next);
            }
            let page = self.send(session, request).await.map_err(|error| Trouble::of_request(&error))?;
            for object in page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                if wanted.contains(name) {
                    let id = Identity { name: name.to_owned(), ..Identity::clone(&first.id) };
                    found.insert(name.to_owned(), found_of(&id, object));
                }
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(more) if !more.is_empty() => next = Some(more.to_owned()),
                _ => return Ok(found),
            }
        }
        let text =
            format!("namespace {} holds too many objects of kind {}", first.id.namespace, first.id.kind);
        Err(Trouble::new("Invalid", &text, Retry::Slowly))
    }

    /// Sends applies, a few at a time, and takes in the answers.
    pub(super) async fn send_all(
        &mut self,
        send: Vec<(Item, Option<String>)>,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let ctx = self.ctx.clone();
        let placed_by: Arc<str> = self.policy().placed_by.into();
        let end = self.pass_end();
        let halt = Arc::new(Halt::default());
        let send: Vec<_> = send
            .into_iter()
            .map(|(item, uid)| {
                let theirs = if uid.is_some() { self.left_to_others(&item) } else { Vec::new() };
                (item, uid, theirs)
            })
            .collect();
        let mut answers = stream::iter(send.into_iter().map(|(item, uid, theirs)| {
            let (ctx, session, placed_by, end, halt) =
                (ctx.clone(), session.clone(), placed_by.clone(), end.clone(), Arc::clone(&halt));
            async move {
                // The wish changed meanwhile, or it makes no sense: what is not sent yet is not sent any more.
                let stale = || end.is_over() || halt.holds(&item.id.namespace);
                let answer = apply(&item, uid.as_deref(), &theirs, &session, &ctx, &placed_by, stale).await;
                (item, uid, answer)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        let mut all = true;
        let mut refused = Vec::new();
        while let Some((item, uid, answer)) = answers.next().await {
            let key = Key::Object(item.id.clone());
            match answer {
                Some(Sent { answer: Ok(object), left_out, rewritten }) => {
                    self.ctx.edge.metrics.applied(match uid {
                        _ if self.memory.settled => Applied::Restored,
                        Some(_) => Applied::Changed,
                        None => Applied::Made,
                    });
                    self.log_left_out(&item, &left_out);
                    self.memory.left_out.applied(&item.id.to_string(), left_out);
                    self.memory.rewritten.applied(&item.id.to_string(), rewritten);
                    self.memory.backoff.worked(&key);
                    self.memory.backoff.worked(&Key::Server);
                    halt.answered();
                    self.restored(&item);
                    self.memory.gone.remove(&item.id);
                    self.memory.deletes.remove(&*item.id);
                    self.ctx.edge.observed.learn(&item.id, &object);
                    let fields = Seen::of(&item.id, &object).and_then(|seen| seen.fields);
                    self.memory.drift.applied(&item.id, fields);
                }
                Some(Sent { answer: Err(error), .. }) => {
                    all = false;
                    let trouble = self.refusal(&item, &error);
                    self.ctx.edge.metrics.applied(Applied::Failed(trouble.reason));
                    if let Some(one) = self.to_make_anew(&item, uid.as_deref(), &error) {
                        halt.answered();
                        refused.push((one, error));
                        continue;
                    }
                    self.item_failed(&item, &trouble, facts);
                    if lacks_namespace(&error) {
                        halt.absent(&item.id.namespace);
                    }
                    if halt.refused(&trouble) {
                        self.failed(Key::Server, trouble);
                    }
                }
                None => all = false,
            }
        }
        drop(answers);
        if !refused.is_empty() {
            self.make_anew(refused, session, facts).await;
        }
        all
    }

    /// Whether the cluster wants to be left alone for now.
    pub(super) fn held_up(&self, facts: &mut Facts) -> bool {
        let Some(tries) = self.memory.backoff.waiting(&Key::Server) else { return false };
        facts.trouble(None, None, &tries.trouble, tries.count);
        true
    }

    pub(super) fn item_failed(&mut self, item: &Item, trouble: &Trouble, facts: &mut Facts) {
        let key = Key::Object(item.id.clone());
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
        facts.trouble(Some(&item.app), Some(&item.id), trouble, attempts);
    }
}

/// Together what one list shows: of one kind, in one namespace.
pub(super) fn by_kind(items: Vec<Item>) -> impl Iterator<Item = Vec<Item>> {
    let mut groups: BTreeMap<(String, String, String), Vec<Item>> = BTreeMap::new();
    for item in items {
        let key = (item.id.group.clone(), item.id.kind.clone(), item.id.namespace.clone());
        groups.entry(key).or_default().push(item);
    }
    groups.into_values()
}

fn found_of(id: &Identity, object: &Value) -> Found {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    Seen::of(id, object).map_or(Found::Nothing, |seen| {
        let holder = foreign::holder(metadata, &seen.managers);
        Found::Object(Box::new(Foreign { seen, holder }))
    })
}
