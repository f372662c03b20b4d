//! Looks for objects under the names we want that the watch of our label does not show, and decides about each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_engine::identity::{Id, Identity};
use emco_engine::marks::made;
use emco_engine::{adopt, order};
use serde_json::Value;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::observe::Seen;
use super::desired::{App, Item};
use super::foreign::Foreign;
use super::row::Facts;
use super::send::Over;
use super::{Job, Key};
use crate::api::{Method, Request};

/// So many names of one kind and namespace are looked up one by one; more by a list.
const FEW: usize = 4;
/// Pages of such a list.
const PAGES: usize = 40;

/// Between two looks at an object of others that is taken as it is.
const TAKEN: Duration = Duration::from_mins(3);
/// The next look at one that could not be read.
const AGAIN: Duration = Duration::from_secs(30);

/// What becomes of an object that carries nobody's label, or not ours.
enum Met {
    Over(Over),
    /// It is taken as it is.
    Taken,
    Trouble,
}

/// What a look at the cluster found under a name.
pub(super) enum Found {
    Nothing,
    Object(Box<Foreign>),
}

impl Job {
    /// Looks for objects under the names we want that our label does not show. What is surely absent is to be sent, and so
    /// is what our manager made and only lost its label.
    pub(super) async fn look(
        &mut self,
        items: Vec<Item>,
        session: &Session,
        send: &mut Vec<(Item, Over)>,
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
                let Some(Found::Object(found)) = found.get(&item.id.name) else {
                    send.push((item, Over::Nothing));
                    continue;
                };
                match self.met(&item, found, facts) {
                    Met::Over(over) => send.push((item, over)),
                    Met::Taken => {}
                    Met::Trouble => fine = false,
                }
            }
        }
        fine
    }

    /// An object is there that the label's watch did not show.
    fn met(&mut self, item: &Item, found: &Foreign, facts: &mut Facts) -> Met {
        let unowned = found.seen.owner.is_none();
        if unowned && found.seen.managers.contains(&self.ctx.manager) {
            if !self.may_mark_again(item, found, facts) {
                return Met::Trouble;
            }
            self.note_stripped(item, found);
            return Met::Over(self.over_stripped(item, found));
        }
        if let Some(over) = self.over_released(item, found) {
            if found.seen.deleting {
                self.wait_for_end(item, facts);
                return Met::Trouble;
            }
            return Met::Over(over);
        }
        if self.take_existing(item) || self.left_alone(item) {
            self.take(&item.id);
            self.memory.backoff.worked(&Key::Object(item.id.clone()));
            return Met::Taken;
        }
        if !unowned {
            // The watch is behind: it will say so.
            self.item_failed(item, &Trouble::new("Progressing", "the watch is behind", Retry::Soon), facts);
            return Met::Trouble;
        }
        let Some(over) = self.take_over(item, found) else {
            let trouble = self.in_the_way(item, found);
            self.item_failed(item, &trouble, facts);
            return Met::Trouble;
        };
        if found.seen.deleting {
            self.wait_for_end(item, facts);
            return Met::Trouble;
        }
        if self.may_mark_again(item, found, facts) { Met::Over(over) } else { Met::Trouble }
    }

    /// Takes an object of others as it is.
    pub(super) fn take(&mut self, id: &Id) {
        self.memory.taken.insert(id.clone(), Instant::now() + TAKEN);
    }

    /// Looks again at what is taken as it is, after some minutes or when somebody misses it: no watch of ours shows its end. What is not
    /// there any more is wanted like all else.
    pub(super) async fn look_at_taken(&mut self, apps: &[App], session: &Session) {
        let now = Instant::now();
        for id in self.ctx.edge.observed.doubted(&self.ctx.owner.hash) {
            if let Some(due) = self.memory.taken.get_mut(&id) {
                *due = now;
            }
        }
        let is_due = |item: &&Item| self.memory.taken.get(&item.id).is_some_and(|due| *due <= now);
        let served = |item: &&Item| {
            item.manifest().is_some_and(|manifest| session.resource_of(&manifest.json).is_some())
        };
        let due = apps.iter().flat_map(App::items).filter(is_due).filter(served);
        for group in by_kind(due.cloned().collect()) {
            if self.stale() {
                return;
            }
            let found = self.find(&group, session).await;
            for item in group {
                match &found {
                    Ok(found) if matches!(found.get(&item.id.name), Some(Found::Object(_))) => {
                        self.take(&item.id);
                    }
                    Ok(_) => {
                        self.memory.taken.remove(&item.id);
                    }
                    Err(_) => {
                        self.memory.taken.insert(item.id, now + AGAIN);
                    }
                }
            }
        }
    }

    /// When something that is taken is looked at next. Others who miss it are heard until then.
    pub(super) fn next_look_at_taken(&self) -> Option<Instant> {
        self.ctx.edge.observed.takes(&self.ctx.owner.hash, self.memory.taken.keys());
        self.memory.taken.values().min().copied()
    }

    /// The cluster says that a namespace is not there: who takes it as it is looks again.
    pub(super) fn misses_namespace(&self, namespace: &str) {
        let is_it = |id: &Identity| id.kind() == ("", "Namespace") && id.name == namespace;
        self.ctx.edge.observed.doubt(is_it);
    }

    /// The cluster does not serve a kind of a group: who takes definitions of it as they are looks again.
    pub(super) fn misses_definition(&self, group: &str) {
        let of_group = |name: &str| name.split_once('.').is_some_and(|(_, of)| of == group);
        self.ctx.edge.observed.doubt(|id| order::is_crd(id.kind()) && of_group(&id.name));
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
        let holder = adopt::holder(metadata, &seen.managers);
        let proof = made::proof_on(object).map(str::to_owned);
        Found::Object(Box::new(Foreign { seen, holder, proof }))
    })
}
