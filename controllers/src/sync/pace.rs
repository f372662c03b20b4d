//! Spaces out further tries of what failed. Every object has its own pace: one that is refused does not hold up the
//! others, and none is asked for more than the pace allows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::errors::{Retry, Trouble};
use crate::api::world::Random;

/// Tries of one thing.
#[derive(Clone, Debug)]
pub struct Tries {
    /// How often it failed in a row.
    pub count: u32,
    /// Not before.
    pub due: Instant,
    /// So long from the failure to then.
    pause: Duration,
    /// The last failure.
    pub trouble: Trouble,
}

/// Failures by key, forgotten when the thing succeeds.
pub struct Backoff<K: Ord> {
    tries: BTreeMap<K, Tries>,
    random: Arc<dyn Random>,
}

impl<K: Ord + Clone> Backoff<K> {
    /// Nothing has failed.
    pub fn new(random: Arc<dyn Random>) -> Self {
        Self { tries: BTreeMap::new(), random }
    }

    /// Records a failure and says when the next try is due.
    pub fn failed(&mut self, key: K, trouble: Trouble) {
        let count = self.tries.get(&key).map_or(1, |tries| tries.count.saturating_add(1));
        let wait = jitter(&*self.random, delay(trouble.retry, count));
        // One is kept for each object that fails: the row's words are enough.
        let trouble = Trouble { whole: None, ..trouble };
        self.tries.insert(key, Tries { count, due: Instant::now() + wait, pause: wait, trouble });
    }

    /// Forgets the failures of a key.
    pub fn worked(&mut self, key: &K) {
        self.tries.remove(key);
    }

    /// Forgets the failures of these.
    pub fn forget(&mut self, which: impl Fn(&K) -> bool) {
        self.tries.retain(|key, _| !which(key));
    }

    /// Makes everything due that waited for the cluster to come back.
    pub fn back(&mut self) {
        self.tries.retain(|_, tries| !matches!(tries.trouble.reason, "Unreachable" | "ServerError"));
    }

    /// Forgets that the kinds of these were not served.
    pub fn served(&mut self, is: impl Fn(&K) -> bool) {
        self.tries.retain(|key, tries| tries.trouble.reason != "KindMissing" || !is(key));
    }

    /// Makes these due, because somebody asks for a try now. What a server said of its next request holds all the same.
    pub fn retry_now(&mut self, which: impl Fn(&K) -> bool) {
        let now = Instant::now();
        for (_, tries) in self.tries.iter_mut().filter(|(key, _)| which(key)) {
            if !matches!(tries.trouble.retry, Retry::After(_)) {
                tries.due = tries.due.min(now);
            }
        }
    }

    /// The failure that still forbids a try, if any.
    pub fn waiting(&self, key: &K) -> Option<&Tries> {
        self.tries.get(key).filter(|tries| tries.due > Instant::now())
    }

    /// The last failure, due or not.
    pub fn last(&self, key: &K) -> Option<&Tries> {
        self.tries.get(key)
    }

    /// All failures, due or not.
    pub fn all(&self) -> impl Iterator<Item = (&K, &Tries)> {
        self.tries.iter()
    }

    /// When to try again what was not yet due at a time: not with the first alone, but with all that become due a little later.
    /// Five thousand objects that failed together are tried in a few rounds, not in five thousand.
    pub fn next(&self, after: Instant) -> Option<Instant> {
        let open = || self.tries.values().filter(|tries| tries.due > after);
        let first = open().min_by_key(|tries| tries.due)?;
        let until = first.due + first.pause / 4;
        open().map(|tries| tries.due).filter(|due| *due <= until).max()
    }
}

/// How long to wait after so many failures, before jitter.
fn delay(retry: Retry, count: u32) -> Duration {
    let doubled = |first: u64, most: u64| {
        Duration::from_secs(first.saturating_mul(1_u64 << count.saturating_sub(1).min(16)).min(most))
    };
    match retry {
        Retry::Soon => doubled(1, 60),
        Retry::After(seconds) => Duration::from_secs(seconds.clamp(1, 300)),
        Retry::Slowly => doubled(30, 300),
        Retry::WhenBack => Duration::from_mins(5),
    }
}

/// Between the whole and five quarters of a wait: never earlier than said, and not all at once.
fn jitter(random: &dyn Random, wait: Duration) -> Duration {
    let quarter = u64::try_from(wait.as_millis() / 4).unwrap_or(u64::MAX).max(1);
    wait + Duration::from_millis(random.next() % quarter)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zero;
    impl Random for Zero {
        fn next(&self) -> u64 {
            0
        }
        fn secret(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_their_limit_and_a_success_forgets_them() {
        let mut backoff = Backoff::new(Arc::new(Zero));
        let mut seen = Vec::new();
        for _ in 0..8 {
            backoff.failed("web", Trouble::new("Unreachable", "no answer", Retry::Soon));
            seen.push((backoff.last(&"web").unwrap().due - Instant::now()).as_secs());
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(backoff.waiting(&"web").is_some() && backoff.waiting(&"db").is_none());
        backoff.worked(&"web");
        assert!(backoff.next(Instant::now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_together_is_tried_together_and_never_before_its_time() {
        let mut backoff = Backoff::new(Arc::new(Zero));
        let begun = Instant::now();
        for key in ["a", "b", "c"] {
            backoff.failed(key, Trouble::new("Unreachable", "no answer", Retry::Soon));
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        backoff.failed("later", Trouble::new("ServerError", "busy", Retry::After(7)));
        assert_eq!(backoff.next(begun), Some(begun + Duration::from_millis(1200)), "a, b and c");
        assert_eq!(backoff.next(begun + Duration::from_secs(2)), Some(begun + Duration::from_millis(7300)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_word_is_honoured_and_refusals_are_retried_slowly() {
        let mut backoff = Backoff::new(Arc::new(Zero));
        backoff.failed("a", Trouble::new("ServerError", "busy", Retry::After(7)));
        assert_eq!((backoff.last(&"a").unwrap().due - Instant::now()).as_secs(), 7);
        backoff.failed("b", Trouble::new("Invalid", "no", Retry::Slowly));
        assert_eq!((backoff.last(&"b").unwrap().due - Instant::now()).as_secs(), 30);
        // Who asks for a try now gets it of what was refused, not of a server that said when.
        backoff.retry_now(|_| true);
        assert!(backoff.waiting(&"a").is_some() && backoff.waiting(&"b").is_none());
    }
}
