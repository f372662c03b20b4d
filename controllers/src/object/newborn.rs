//! Holds back what an object warns of in its first moments: what it refers to may be applied a moment later, and the hub may not heed yet
//! what it was just given. What is still so after that is told then, with the next look at the object.
//!
//! Kept by this process alone: the status says the same at once.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use parking_lot::Mutex;
use tokio::time::Instant;

/// An object is new for so long. Times of creation are whole seconds.
const YOUNG: Duration = Duration::from_secs(3);
/// Nothing is held for longer after it was due: its object is gone.
const KEPT: Duration = Duration::from_mins(1);

/// Objects that something is held of, by UID, with the time when it is told.
#[derive(Default)]
pub struct Newborn(Mutex<BTreeMap<String, Instant>>);

impl Newborn {
    /// Holds back what an object says, for so long.
    pub fn hold(&self, uid: &str, left: Duration) {
        let now = Instant::now();
        let mut held = self.0.lock();
        held.retain(|_, due| now < *due + KEPT);
        held.insert(uid.to_owned(), now + left);
    }

    /// It says something else by now, or was told.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// The time for which something of the object is held yet; zero where it is to be told, `None` where nothing is held.
    pub fn left(&self, uid: &str) -> Option<Duration> {
        self.0.lock().get(uid).map(|due| due.saturating_duration_since(Instant::now()))
    }
}

/// The time for which an object is new yet; `None` where it is not.
pub fn left_of<K: Resource>(object: &K, now: Timestamp) -> Option<Duration> {
    let created = object.meta().creation_timestamp.as_ref()?;
    // None has passed where the clock of the hub is ahead.
    let age = Duration::try_from(now.duration_since(created.0)).unwrap_or_default();
    YOUNG.checked_sub(age).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_due_once_and_forgotten_with_its_object() {
        let newborn = Newborn::default();
        assert_eq!(newborn.left("a"), None);
        newborn.hold("a", YOUNG);
        assert_eq!(newborn.left("a"), Some(YOUNG));
        tokio::time::advance(YOUNG * 2).await;
        assert_eq!(newborn.left("a"), Some(Duration::ZERO));
        newborn.forget("a");
        assert_eq!(newborn.left("a"), None);
        newborn.hold("gone", YOUNG);
        tokio::time::advance(KEPT * 2).await;
        newborn.hold("b", YOUNG);
        assert_eq!(newborn.0.lock().len(), 1);
    }
}
