//! Queues the keys of objects that have to be reconciled, each once: any number of changes before the next look are one.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, OnceLock};

use futures::Stream;
use kube::Resource;
use kube::runtime::reflector::{Lookup, ObjectRef};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::looks::Looks;

/// Namespace and name.
pub type Key = (String, String);

/// Keys of one kind that have to look again. Bounded by the number of objects.
#[derive(Default)]
pub struct KeyQueue {
    keys: Mutex<Keys>,
    added: Notify,
    /// Hears of what asks for more than a report.
    looks: OnceLock<Arc<Looks>>,
}

/// Taken in the order of names, again and again from the first: no key waits for one that is asked for over and over.
#[derive(Default)]
struct Keys {
    waiting: BTreeSet<Key>,
    /// What was taken last.
    last: Key,
}

impl Keys {
    fn take(&mut self) -> Option<Key> {
        let next = self.waiting.range((Excluded(&self.last), Unbounded)).next();
        let next = next.or_else(|| self.waiting.first())?.clone();
        self.waiting.remove(&next);
        self.last.clone_from(&next);
        Some(next)
    }
}

impl KeyQueue {
    /// From now on, looks that only a report asks for are told from others.
    pub fn tell(&self, looks: Arc<Looks>) {
        looks.begin();
        // Whoever was told first is told on.
        let _ = self.looks.set(looks);
    }

    /// Asks one object to look again.
    pub fn enqueue(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(looks) = self.looks.get() {
            looks.note([key.clone()]);
        }
        self.keys.lock().waiting.insert(key);
        self.added.notify_one();
    }

    /// Asks one object to look at what was reported of it, and at nothing else.
    pub fn report(&self, namespace: &str, name: &str) {
        self.keys.lock().waiting.insert((namespace.to_owned(), name.to_owned()));
        self.added.notify_one();
    }

    /// Asks all of these to look again.
    pub(crate) fn all<'a, K: Resource<DynamicType = ()> + 'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Arc<K>>,
    ) {
        let asked: BTreeSet<Key> = objects
            .into_iter()
            .map(|object| {
                let meta = object.meta();
                (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
            })
            .collect();
        if let Some(looks) = self.looks.get() {
            looks.note(asked.iter().cloned());
        }
        self.keys.lock().waiting.extend(asked);
        self.added.notify_one();
    }

    /// Takes the next key, if there is one.
    pub fn take(&self) -> Option<Key> {
        self.keys.lock().take()
    }

    /// The next key, when there is one.
    pub async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.take() {
                return key;
            }
            self.added.notified().await;
        }
    }

    /// Keys as they come, as references to objects of a kind.
    pub fn stream<K>(self: &Arc<Self>) -> impl Stream<Item = ObjectRef<K>> + Send + 'static
    where
        K: Lookup<DynamicType = ()> + 'static,
    {
        futures::stream::unfold(Arc::clone(self), |set| async move {
            loop {
                if let Some((namespace, name)) = set.take() {
                    let reference = ObjectRef::<K>::new(&name);
                    let reference =
                        if namespace.is_empty() { reference } else { reference.within(&namespace) };
                    return Some((reference, set));
                }
                set.added.notified().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_look_is_a_report_only_where_nothing_else_asks_for_it() {
        let (queue, looks) = (KeyQueue::default(), Arc::<Looks>::default());
        queue.tell(Arc::clone(&looks));
        let key = ("shop".to_owned(), "web".to_owned());
        let is_report = || {
            looks.keep(key.clone(), 0, Instant::now() + Duration::from_mins(1), ());
            looks.take::<()>(&key).is_some()
        };
        queue.report("shop", "web");
        assert!(is_report());
        queue.enqueue("shop", "web");
        queue.report("shop", "web");
        assert!(!is_report(), "a report in between makes no less of it");
        let mut project = emco_crds::CompositeApp::default();
        (project.metadata.namespace, project.metadata.name) = (Some(key.0.clone()), Some(key.1.clone()));
        queue.all(&[Arc::new(project)]);
        assert!(!is_report());
        assert_eq!(queue.take(), Some(key.clone()), "it is queued once");
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn a_key_does_not_wait_for_one_that_is_queued_again_and_again() {
        let queue = KeyQueue::default();
        queue.enqueue("acme", "a");
        queue.enqueue("shop", "z");
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.extend(queue.take());
            queue.enqueue("acme", "a");
        }
        let names: Vec<_> = taken.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["a", "z", "a"]);
    }
}
