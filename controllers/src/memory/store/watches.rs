//! Watches: what is told of each change, and what a watch that begins at an older revision is told first.

use std::sync::Arc;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use serde_json::{Value, json};

use super::{Change, Store, Target, Watcher};
use crate::api::{Accept, WatchEvent};
use crate::memory::query::represent;

impl Store {
    /// Tells of the change that the present revision is.
    pub(super) fn tell(&mut self, kind: String, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        let change = Arc::new(Change { revision: self.revision, kind, before, after });
        // One that begins further than the store has come is told nothing until it has.
        let tells = |w: &&Watcher| w.kind == change.kind && w.since < change.revision;
        for watcher in self.watchers.iter().filter(tells) {
            if let Some(event) = event(&*watcher.selects, watcher.accept, &change) {
                let _ = watcher.sender.unbounded_send(event);
            }
        }
        self.watchers.retain(|watcher| !watcher.sender.is_closed());
        self.log.push(change);
    }

    /// Changes after a revision, or what there is where none is given (0), then everything that comes.
    pub fn watch(
        &mut self,
        target: &Target,
        since: u64,
        accept: Accept,
        selects: Box<dyn Fn(&Value) -> bool + Send>,
    ) -> UnboundedReceiver<WatchEvent> {
        let (sender, receiver) = unbounded();
        let kind = target.kind_key();
        let past: Vec<WatchEvent> = if since == 0 {
            let all = self.list(target).filter(|object| selects(object));
            all.map(|object| WatchEvent::Applied(represent(object, accept))).collect()
        } else {
            let changes = self.log.iter().filter(|change| change.kind == kind && change.revision > since);
            changes.filter_map(|change| event(&*selects, accept, change)).collect()
        };
        for event in past {
            let _ = sender.unbounded_send(event);
        }
        self.watchers.push(Watcher { kind, since, selects, accept, sender });
        receiver
    }

    /// Undoes everything after a revision, as a server does that begins again with an older state of its store.
    pub fn go_back(&mut self, to: u64) {
        while let Some(change) = self.log.pop_if(|change| change.revision > to) {
            let text = |object: &Value, field: &str| {
                let text = object.get("metadata").and_then(|metadata| metadata.get(field));
                text.and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let Some(any) = change.before.as_ref().or(change.after.as_ref()) else { continue };
            let key = (text(any, "namespace"), text(any, "name"));
            let objects = self.objects.entry(change.kind.clone()).or_default();
            match &change.before {
                Some(before) => drop(objects.insert(key, Arc::clone(before))),
                None => drop(objects.remove(&key)),
            }
        }
        self.revision = to;
        self.returns += 1;
        self.end_watches();
    }

    pub fn end_watches(&mut self) {
        self.watchers.clear();
    }
}

fn event(selects: &dyn Fn(&Value) -> bool, accept: Accept, change: &Change) -> Option<WatchEvent> {
    if let Some(object) = change.after.as_ref().filter(|object| selects(object)) {
        return Some(WatchEvent::Applied(represent(object, accept)));
    }
    // What is gone, or selected no longer, is told as it was before, at the version of the change.
    let mut last = Value::clone(change.before.as_ref().filter(|object| selects(object))?);
    if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(change.revision.to_string()));
    }
    Some(WatchEvent::Deleted(represent(&last, accept)))
}
