//! Shows from outside whether the runtime that does the work still runs tasks.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

/// Between two beats, and between two looks.
pub const BEAT: Duration = Duration::from_secs(1);
/// After so much silence the work counts as stuck. Longer than the longest single step known: lists of thousands of objects.
pub const STUCK: Duration = Duration::from_mins(2);

/// Steps of a long loop between two that let other tasks run.
const BREATH: usize = 64;

/// Grows while the work's runtime runs tasks.
#[derive(Debug, Default)]
pub struct Pulse(AtomicU64);

impl Pulse {
    /// Counts a step of a loop that cannot wait in between: while it makes steps it is slow, and not stuck.
    pub fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the step of this number of a long loop, and lets other tasks run every so often.
    pub async fn breathe(&self, number: usize) {
        self.step();
        if number % BREATH == BREATH - 1 {
            yield_now().await;
        }
    }

    /// Beats; to be run on the runtime that is watched.
    pub async fn beat(&self) -> Infallible {
        loop {
            self.0.fetch_add(1, Ordering::Relaxed);
            sleep(BEAT).await;
        }
    }
}

/// How long a pulse was not felt, counted in looks: while the whole process or machine sleeps nobody looks.
#[derive(Debug)]
pub struct Silence {
    pulse: Arc<Pulse>,
    last: u64,
    looks: u32,
}

impl Silence {
    /// Begins to listen.
    pub const fn of(pulse: Arc<Pulse>) -> Self {
        Self { pulse, last: 0, looks: 0 }
    }

    /// To be called once in [`BEAT`].
    pub fn look(&mut self) -> Duration {
        let now = self.pulse.0.load(Ordering::Relaxed);
        self.looks = if now == self.last { self.looks.saturating_add(1) } else { 0 };
        self.last = now;
        BEAT.saturating_mul(self.looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_loop_that_makes_steps_is_not_silent() {
        let pulse = Arc::new(Pulse::default());
        let mut silence = Silence::of(Arc::clone(&pulse));
        silence.look();
        for _ in 0..3 {
            pulse.step();
            assert_eq!(silence.look(), Duration::ZERO);
        }
        assert_eq!(silence.look(), BEAT, "it makes none any more");
    }

    #[tokio::test]
    async fn a_long_loop_lets_others_run() {
        let pulse = Arc::new(Pulse::default());
        let other = tokio::spawn(async {});
        for number in 0..BREATH {
            assert!(!other.is_finished(), "step {number}");
            pulse.breathe(number).await;
        }
        assert!(other.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_until_the_next_beat() {
        let pulse = Arc::new(Pulse::default());
        let mut silence = Silence::of(Arc::clone(&pulse));
        for seconds in 1..=3 {
            assert_eq!(silence.look(), Duration::from_secs(seconds));
        }
        let beating = tokio::spawn(async move { pulse.beat().await });
        for _ in 0..5 {
            // Between two beats.
            sleep(Duration::from_millis(1001)).await;
            assert_eq!(silence.look(), Duration::ZERO);
        }
        beating.abort();
    }
}
