//! Measures how long a cluster has been unreachable, independent of wall-clock changes.
//!
//! What outlives a process is the time of the condition `Reachable`, of the wall clock, which somebody may set. It counts for
//! the time before this process looked; from then on a clock counts that nobody sets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_engine::identity::ClusterId;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::api::boot_clock::{BootClock, SystemBootClock};

/// Minimum time that this process observes a cluster itself before work on it is abandoned (unless the policy names a shorter one):
/// machines start with wrong clocks, which are corrected within minutes.
const ITSELF: Duration = Duration::from_hours(1);

/// Clusters that do not answer, and since when. One entry each.
pub struct UnreachableSince {
    clock: Arc<dyn BootClock>,
    itself: Duration,
    clusters: Mutex<BTreeMap<ClusterId, Watched>>,
}

struct Watched {
    /// What the condition says.
    since: Timestamp,
    /// How long that was when this process looked first, by the wall clock.
    before: Duration,
    /// When it looked first.
    from: Duration,
}

impl Default for UnreachableSince {
    fn default() -> Self {
        Self::new(Arc::new(SystemBootClock), ITSELF)
    }
}

impl UnreachableSince {
    /// With another clock, and another time to watch.
    pub fn new(clock: Arc<dyn BootClock>, itself: Duration) -> Self {
        Self { clock, itself, clusters: Mutex::default() }
    }

    /// How long is left until the cluster was away for `after`; `since` is what its condition says, `now` the wall clock.
    pub fn left(&self, id: &ClusterId, after: Duration, since: Timestamp, now: Timestamp) -> Duration {
        let (before, watched) = self.watched(id, since, now);
        let of_itself = after.min(self.itself).saturating_sub(watched);
        after.saturating_sub(before.saturating_add(watched)).max(of_itself)
    }

    /// It is away: time counts from here, if it does not yet.
    pub fn begin(&self, id: &ClusterId, since: Timestamp, now: Timestamp) {
        self.watched(id, since, now);
    }

    /// It is back, or forgotten.
    pub fn end(&self, id: &ClusterId) {
        self.clusters.lock().remove(id);
    }

    /// How long it was away before this process looked, and since.
    fn watched(&self, id: &ClusterId, since: Timestamp, now: Timestamp) -> (Duration, Duration) {
        let time = self.clock.now();
        let mut clusters = self.clusters.lock();
        let known = clusters.get(id).filter(|known| known.since == since);
        let (before, from) = known.map_or_else(
            // A clock that went back makes nobody wait longer than the whole time.
            || (Duration::try_from(now.duration_since(since)).unwrap_or_default(), time),
            |known| (known.before, known.from),
        );
        clusters.insert(id.clone(), Watched { since, before, from });
        (before, time.saturating_sub(from))
    }
}
