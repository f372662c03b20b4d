//! Tells listeners which keys changed. Each has a set of keys, so that a slow one costs no more than the set.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who wants to know of changes.
pub struct Listeners<K>(Mutex<Vec<Weak<Listener<K>>>>);

struct Listener<K> {
    dirty: Mutex<BTreeSet<K>>,
    told: Notify,
}

impl<K> Default for Listeners<K> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<K: Ord + Clone + Send + 'static> Listeners<K> {
    /// Tells all of them.
    pub fn tell(&self, key: &K) {
        self.0.lock().retain(|listener| {
            let Some(listener) = listener.upgrade() else { return false };
            listener.dirty.lock().insert(key.clone());
            listener.told.notify_one();
            true
        });
    }

    /// What changes from now on.
    pub fn listen(&self) -> BoxStream<'static, K> {
        let listener = Arc::new(Listener { dirty: Mutex::new(BTreeSet::new()), told: Notify::new() });
        self.0.lock().push(Arc::downgrade(&listener));
        futures::stream::unfold(listener, |listener| async move {
            loop {
                let next = listener.dirty.lock().pop_first();
                match next {
                    Some(key) => return Some((key, listener)),
                    None => listener.told.notified().await,
                }
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_slow_listener_keeps_one_entry_per_cluster() {
        let listeners = Listeners::default();
        let mut stream = listeners.listen();
        drop(listeners.listen());
        for _ in 0..1000 {
            listeners.tell(&"a/x".to_owned());
            listeners.tell(&"a/y".to_owned());
        }
        assert_eq!(listeners.0.lock().len(), 1, "who stopped listening is forgotten");
        assert_eq!(stream.next().await.unwrap().as_str(), "a/x");
        assert_eq!(stream.next().await.unwrap().as_str(), "a/y");
        assert!(tokio::time::timeout(Duration::from_millis(20), stream.next()).await.is_err());
    }
}
