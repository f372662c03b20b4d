//! Watches: what is told of each change, and what a watch that begins at an older revision is told first.

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use serde_json::Value;

use super::{Change, Store, Target, Watcher};
use crate::api::WatchEvent;

impl Store {
    pub(super) fn tell(&mut self, kind: String, before: Option<Value>, after: Option<Value>, last: &Value) {
        for watcher in self.watchers.iter().filter(|w| w.kind == kind) {
            if let Some(event) = event(&*watcher.selects, before.as_ref(), after.as_ref(), last) {
                let _ = watcher.sender.unbounded_send(event);
            }
        }
        self.watchers.retain(|watcher| !watcher.sender.is_closed());
        self.log.push(Change { revision: self.revision, kind, before, after });
    }

    /// Changes after a revision, then everything that comes.
    pub fn watch(
        &mut self,
        target: &Target,
        since: u64,
        selects: Box<dyn Fn(&Value) -> bool + Send>,
    ) -> UnboundedReceiver<WatchEvent> {
        let (sender, receiver) = unbounded();
        let kind = target.kind_key();
        for change in self.log.iter().filter(|change| change.kind == kind && change.revision > since) {
            let last = change.after.as_ref().or(change.before.as_ref()).cloned().unwrap_or_default();
            if let Some(event) = event(&*selects, change.before.as_ref(), change.after.as_ref(), &last) {
                let _ = sender.unbounded_send(event);
            }
        }
        self.watchers.push(Watcher { kind, selects, sender });
        receiver
    }

    pub fn end_watches(&mut self) {
        self.watchers.clear();
    }
}

fn event(
    selects: &dyn Fn(&Value) -> bool,
    before: Option<&Value>,
    after: Option<&Value>,
    last: &Value,
) -> Option<WatchEvent> {
    let was = before.is_some_and(selects);
    match after {
        Some(object) if selects(object) => Some(WatchEvent::Applied(object.clone())),
        _ if was => Some(WatchEvent::Deleted(last.clone())),
        _ => None,
    }
}
