//! Lets one object rest between its looks, after a few that follow each other at once: what changes a hundred times a second is counted
//! once a second.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::key_queue::Key;

/// Looks that an object may take one after the other: more than it needs to become what it is to be.
const AT_FIRST: u32 = 16;

/// The objects of one kind that looked a short while ago.
pub struct Rests {
    /// Between two looks, once the first ones are spent. None if zero.
    apart: Duration,
    /// When an object may look again as often as it likes.
    rested: Mutex<BTreeMap<Key, Instant>>,
}

impl Rests {
    /// Those of a kind.
    pub const fn new(apart: Duration) -> Self {
        Self { apart, rested: Mutex::new(BTreeMap::new()) }
    }

    /// Begins a look, or says how long the object is still to rest.
    pub fn begin(&self, key: &Key) -> Result<(), Duration> {
        if self.apart.is_zero() {
            return Ok(());
        }
        let (now, most) = (Instant::now(), self.apart.saturating_mul(AT_FIRST));
        let mut rested = self.rested.lock();
        let after = rested.get(key).copied().unwrap_or(now).max(now) + self.apart;
        let left = after.saturating_duration_since(now + most);
        if !left.is_zero() {
            return Err(left);
        }
        rested.insert(key.clone(), after);
        Ok(())
    }

    /// An object is no more.
    pub fn gone(&self, key: &Key) {
        self.rested.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const APART: Duration = Duration::from_secs(2);

    fn key(name: &str) -> Key {
        ("shop".to_owned(), name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_rests_between_looks_once_the_first_are_spent() {
        let rests = Rests::new(APART);
        let looks = |name: &str| std::iter::from_fn(|| rests.begin(&key(name)).ok()).count();
        assert_eq!(looks("a"), 16);
        assert_eq!(rests.begin(&key("a")), Err(APART));
        advance(APART / 4).await;
        assert_eq!(rests.begin(&key("a")), Err(APART * 3 / 4), "who asks again waits no longer");
        assert_eq!(looks("b"), 16, "others do not wait for it");
        advance(APART).await;
        assert_eq!(looks("a"), 1);
        advance(APART * 5).await;
        assert_eq!(looks("a"), 5);
        advance(APART * 100).await;
        assert_eq!(looks("a"), 16);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_gone_leaves_nothing() {
        let rests = Rests::new(APART);
        assert!((0..20).map(|_| rests.begin(&key("a"))).any(|begun| begun.is_err()));
        rests.gone(&key("a"));
        assert!(rests.rested.lock().is_empty());
        assert_eq!(rests.begin(&key("a")), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_without_rest_look_at_any_time() {
        let rests = Rests::new(Duration::ZERO);
        assert!((0..1000).all(|_| rests.begin(&key("a")).is_ok()));
        assert!(rests.rested.lock().is_empty());
    }
}
