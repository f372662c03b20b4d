//! Keeps the pace at which statuses of GitTargets are written: each commit of a busy branch is no news.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::publish::TargetKey;

/// A commit that is as wanted is written down at most so often, and one that is not is told after so long.
const PACE_MS: i64 = 10_000;

/// Of all targets.
#[derive(Default)]
pub struct Paces(Mutex<BTreeMap<TargetKey, Pace>>);

#[derive(Clone, Copy, Default)]
struct Pace {
    /// Since when the branch is not as wanted, Unix milliseconds.
    moving: Option<i64>,
    /// The time at which a commit was written down last.
    written: Option<i64>,
}

impl Paces {
    /// The branch is not as wanted: how long that may still be so untold; `None` where it is to be told.
    pub(super) fn moves(&self, key: &TargetKey, now_ms: i64) -> Option<Duration> {
        let mut all = self.0.lock();
        let since = *all.entry(key.clone()).or_default().moving.get_or_insert(now_ms);
        left(since, now_ms)
    }

    /// It is as wanted, or cannot be.
    pub(super) fn rest(&self, key: &TargetKey) {
        if let Some(pace) = self.0.lock().get_mut(key) {
            pace.moving = None;
        }
    }

    /// Lets a commit be written down now; the error is the time to wait.
    pub(super) fn write(&self, key: &TargetKey, now_ms: i64) -> Result<(), Duration> {
        let mut all = self.0.lock();
        let pace = all.entry(key.clone()).or_default();
        if let Some(wait) = pace.written.and_then(|written| left(written, now_ms)) {
            return Err(wait);
        }
        pace.written = Some(now_ms);
        Ok(())
    }

    /// It is gone.
    pub(super) fn forget(&self, key: &TargetKey) {
        self.0.lock().remove(key);
    }
}

/// The rest of a pace that began then; a clock that went back begins none that is longer.
fn left(since_ms: i64, now_ms: i64) -> Option<Duration> {
    let left = PACE_MS - now_ms.saturating_sub(since_ms).max(0);
    u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_written_down_at_most_every_ten_seconds() {
        let (paces, key) =
            (Paces::default(), TargetKey { namespace: "acme".to_owned(), name: "fleet".to_owned() });
        assert_eq!(paces.write(&key, 0), Ok(()));
        assert_eq!(paces.write(&key, 4_000), Err(Duration::from_secs(6)));
        assert_eq!(paces.write(&key, 10_000), Ok(()));
        assert_eq!(paces.moves(&key, 11_000), Some(Duration::from_secs(10)));
        assert_eq!(paces.moves(&key, 20_999), Some(Duration::from_millis(1)));
        assert_eq!(paces.moves(&key, 21_000), None, "now it is told");
        paces.rest(&key);
        assert_eq!(paces.moves(&key, 30_000), Some(Duration::from_secs(10)));
    }
}
