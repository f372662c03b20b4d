//! Bounds the lines of the log that one owner causes: of each sort the first ten within a minute are written, and then the number of the
//! others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_engine::text::counted;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::object::LogFields;

/// Lines of one sort in a [`WINDOW`]: a chart that fails on a thousand clusters fails everywhere alike.
const MOST: usize = 10;
const WINDOW: Duration = Duration::from_mins(1);

/// Sorts of lines that many clusters or objects may cause at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Clusters that fail and recover.
    Rows,
    /// Objects that others changed.
    Changed,
    /// Objects of others that are ours now.
    TakenOver,
    /// Objects that are deleted to be made again.
    Anew,
    /// Objects that were applied without fields.
    LeftOut,
    /// Objects that are removed with other rights than they were made with.
    BeyondAccount,
}

impl Sort {
    const fn words(self) -> &'static str {
        match self {
            Self::Rows => "clusters that failed or recovered; `kubectl emco status -A` names those that fail",
            Self::Changed => "objects that others changed; status.drift counts them",
            Self::TakenOver => "objects that were taken over",
            Self::Anew => "objects that were deleted to be made again",
            Self::LeftOut => "objects that were applied without fields that the cluster does not know",
            Self::BeyondAccount => "objects that were removed with the credentials of the Cluster",
        }
    }
}

/// The lines of one owner.
#[derive(Debug, Default)]
pub struct LineBound {
    /// Names the owner in each of them.
    pub owner: LogFields,
    windows: Mutex<BTreeMap<Sort, Window>>,
}

/// Lines of one sort since the first of them.
#[derive(Debug)]
struct Window {
    since: Instant,
    lines: usize,
}

impl LineBound {
    /// No lines yet.
    pub fn new(owner: LogFields) -> Arc<Self> {
        Arc::new(Self { owner, windows: Mutex::default() })
    }

    /// Whether another line of a sort may be written. If not, it is counted.
    pub fn takes(self: &Arc<Self>, sort: Sort) -> bool {
        let now = Instant::now();
        let mut windows = self.windows.lock();
        let window = windows.entry(sort).or_insert(Window { since: now, lines: 0 });
        // One with more lines ends with their number.
        if window.lines <= MOST && now.duration_since(window.since) >= WINDOW {
            *window = Window { since: now, lines: 0 };
        }
        window.lines += 1;
        if window.lines == MOST + 1 {
            let (this, end) = (Arc::clone(self), window.since + WINDOW);
            tokio::spawn(async move {
                sleep_until(end).await;
                this.end(sort);
            });
        }
        window.lines <= MOST
    }

    /// Logs how many lines of a sort were not written.
    fn end(&self, sort: Sort) {
        let Some(Window { lines, .. }) = self.windows.lock().remove(&sort) else { return };
        let (left_out, words) = (counted(lines.saturating_sub(MOST), "line"), sort.words());
        let LogFields { project, deployment, object } = &self.owner;
        if sort == Sort::Rows {
            tracing::warn!(project, deployment, object, "{left_out} left out within a minute: {words}");
        } else {
            tracing::info!(project, deployment, object, "{left_out} left out within a minute: {words}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile_tests::Log;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_of_a_sort_are_written_in_a_minute_and_the_rest_counted() {
        let log = Log::begin();
        let lines = LineBound::new(LogFields { deployment: Some("shop".to_owned()), ..LogFields::default() });
        let written = |sort: Sort, wanted: usize| (0..wanted).filter(|_| lines.takes(sort)).count();
        assert_eq!((written(Sort::Changed, 1000), written(Sort::Rows, 10)), (MOST, MOST));
        tokio::time::sleep(WINDOW + Duration::from_secs(1)).await;
        let said = "INFO 990 lines left out within a minute: objects that others changed; status.drift counts them deployment=\"shop\"";
        assert_eq!(log.take(), said, "where all were written, nothing is counted");
        assert_eq!((written(Sort::Changed, 11), written(Sort::Rows, 11)), (MOST, MOST), "another minute");
        tokio::time::sleep(WINDOW * 2).await;
        let said = log.take();
        for line in [
            "INFO 1 line left out within a minute: objects",
            "WARN 1 line left out within a minute: clusters",
        ] {
            assert!(said.contains(line), "{said}");
        }
    }
}
