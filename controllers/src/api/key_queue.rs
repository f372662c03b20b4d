//! Queues the keys of objects that have to be reconciled, each once: any number of changes before the next look are one.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use futures::Stream;
use kube::Resource;
use kube::runtime::reflector::{Lookup, ObjectRef};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Namespace and name.
pub type Key = (String, String);

/// Keys of one kind that have to look again. Bounded by the number of objects.
#[derive(Default)]
pub struct KeyQueue {
    keys: Mutex<Keys>,
    added: Notify,
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
    /// Asks one object to look again.
    pub fn enqueue(&self, namespace: &str, name: &str) {
        self.keys.lock().waiting.insert((namespace.to_owned(), name.to_owned()));
        self.added.notify_one();
    }

    /// Asks all of these to look again.
    pub(crate) fn all<'a, K: Resource<DynamicType = ()> + 'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Arc<K>>,
    ) {
        let mut keys = self.keys.lock();
        keys.waiting.extend(objects.into_iter().map(|object| {
            let meta = object.meta();
            (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
        }));
        drop(keys);
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
    use super::*;

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
