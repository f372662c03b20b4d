//! Judges whether a watch tells what happens, and when its kind has to be listed instead.

use std::time::Duration;

use emco_engine::apis::ApiResource;
use tokio::time::Instant;

use super::super::super::errors::{Retry, Trouble, server_reason};
use crate::api::ApiError;

/// A server sends a bookmark every minute, and it is probed as often. A watch that is silent for three probes, while they saw the
/// store move on, has nobody behind it any more.
pub const SILENCE: Duration = Duration::from_secs(190);
/// A watch that lived this long began well: its end is an ordinary one.
pub const LIVED: Duration = Duration::from_secs(10);
/// The longest pause between two lists of a kind that cannot be watched.
const LONGEST_POLL: Duration = Duration::from_mins(5);
/// Pauses after watches that ended at once: doubled from the first up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Lists in a row that found what the watch had not delivered. One may have met an event on its way.
const PROOF: u32 = 2;

/// Failures in a row, and the time they take on one connection, that no start of a server explains. A kind that is given up
/// earlier is listed minutes later, and what waits for its objects waits as long.
const REPEATED: u32 = 4;
const STARTED: Duration = Duration::from_mins(1);

/// Refused lists of a namespace, over some seconds, that a right on its way explains.
const HEEDED: u32 = 3;

/// What is known of one watch.
pub struct Hearing {
    /// When what is known of the kind was last shown to be current.
    heard: Instant,
    /// Tries in a row that ended at once.
    failures: u32,
    /// The first of them on this connection.
    failing: Option<Instant>,
    /// Lists in a row that no living watch followed.
    polls: u32,
    /// Lists in a row that found what the watch had not delivered.
    missed: u32,
}

impl Hearing {
    pub fn new() -> Self {
        Self { heard: Instant::now(), failures: 0, failing: None, polls: 0, missed: 0 }
    }

    /// The server delivered something, or nothing was written there.
    pub fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// An event or a bookmark came.
    pub fn delivered(&mut self) {
        self.heard();
        self.missed = 0;
    }

    /// A list is complete. `missed`: it shows what the watch before it had not delivered.
    pub fn listed(&mut self, missed: bool) {
        self.heard();
        if self.fails_for_long() {
            self.polls = self.polls.saturating_add(1);
        } else if missed {
            self.missed = self.missed.saturating_add(1);
        }
    }

    /// The watch lives.
    pub fn lives(&mut self) {
        self.failures = 0;
        self.failing = None;
        self.polls = 0;
    }

    /// The watch, or the list, ended at once.
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.failing.get_or_insert_with(Instant::now);
    }

    /// True where nothing failed since a watch lived.
    pub const fn works(&self) -> bool {
        self.failures == 0
    }

    /// The kind is served again: what failed meanwhile says nothing of its watches. Pauses stay until one lives.
    pub fn returned(&mut self) {
        self.failing = None;
    }

    /// Whether so few tries failed in a row that a right may be on its way: a cluster heeds a binding a moment after it has it.
    pub const fn may_be_early(&self) -> bool {
        self.failures < HEEDED
    }

    /// Whether tries fail again and again, for longer than a server takes to start.
    pub fn fails_for_long(&self) -> bool {
        self.failures >= REPEATED && self.failing.is_some_and(|since| since.elapsed() >= STARTED)
    }

    /// The connection is back. A watch that worked before delivers what happened meanwhile.
    pub fn reconnected(&mut self) {
        self.failing = None;
        if self.failures == 0 && self.missed == 0 {
            self.heard();
        }
    }

    /// Whether watches have failed until the kind is listed instead.
    pub const fn polls(&self) -> bool {
        self.polls > 0
    }

    /// Whether watches answer and deliver nothing.
    pub const fn deaf(&self) -> bool {
        self.missed >= PROOF
    }

    /// When the kind has to be listed, if nothing is heard until then.
    pub fn due(&self) -> Instant {
        let interval = match self.polls {
            0 => SILENCE,
            polls => SILENCE.saturating_mul(1 << polls.min(3)).min(LONGEST_POLL),
        };
        self.heard + interval
    }

    /// Until the next try. While the kind is listed instead, a watch is tried once per list.
    pub fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.failures.saturating_sub(1).min(7));
        let pause = doubled.min(LONGEST_PAUSE);
        if self.polls == 0 { pause } else { pause.max(self.due().saturating_duration_since(Instant::now())) }
    }
}

/// True where a server answers so for a kind that it does not serve in this version.
pub const fn is_unserved(error: &ApiError) -> bool {
    matches!(error.code(), 404 | 405)
}

/// What a refused list means for those who need it; `None` while it may still come.
pub fn refusal(resource: &ApiResource, error: &ApiError) -> Option<Trouble> {
    match error.code() {
        401 | 403 => Some(Trouble::new("Forbidden", &error.to_string(), Retry::Soon)),
        _ if is_unserved(error) => {
            let (kind, version) = (&resource.kind, resource.api_version());
            let text = format!("the cluster answers for no kind {kind} of {version}: {error}");
            Some(Trouble::new("KindMissing", &text, Retry::Soon))
        }
        _ => None,
    }
}

/// What rows say about a kind whose watches end with this error. Only what stays the same is quoted: each new text is a write.
pub fn refused(kind: &str, error: &ApiError) -> Trouble {
    let head = format!("cannot watch kind {kind}, which is listed every few minutes instead");
    match error.code() {
        401 | 403 => {
            let text = format!("{head}; grant the verb watch: {error}");
            Trouble::new("Forbidden", &text, Retry::Soon)
        }
        410 => Trouble::new("ServerError", &format!("{head}: every watch ends with 410 Gone"), Retry::Soon),
        _ => Trouble::new(server_reason(error), &format!("{head}: {error}"), Retry::Soon),
    }
}

/// What rows say about a kind whose watches answer and deliver nothing.
pub fn silent(kind: &str) -> Trouble {
    let text = format!(
        "the watch of kind {kind} delivers no events, and the kind is listed every few minutes instead; a proxy before the API server may buffer answers"
    );
    Trouble::new("Unreachable", &text, Retry::Soon)
}

/// What rows say about a kind whose lists fail.
pub fn unlistable(kind: &str, error: &ApiError) -> Trouble {
    Trouble::new(server_reason(error), &format!("cannot list kind {kind}: {error}"), Retry::Soon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_makes_no_kind_one_that_is_listed_instead() {
        let mut hearing = Hearing::new();
        for _ in 0..3 {
            hearing.reconnected();
            for _ in 0..6 {
                hearing.failed();
                hearing.listed(false);
                tokio::time::advance(Duration::from_secs(9)).await;
                assert!(!hearing.polls() && !hearing.fails_for_long());
                assert!(hearing.pause() <= LONGEST_PAUSE, "{:?}", hearing.pause());
            }
        }
        tokio::time::advance(STARTED).await;
        hearing.failed();
        hearing.listed(false);
        assert!(hearing.polls() && hearing.pause() > LONGEST_PAUSE);
    }
}
