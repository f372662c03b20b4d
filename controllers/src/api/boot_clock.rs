//! Measures time that nobody sets, also while the machine sleeps.

use std::time::Duration;

/// Time since the machine started, also while it slept. Only differences of it mean anything.
pub trait BootClock: Send + Sync + 'static {
    /// Never goes back.
    fn now(&self) -> Duration;
}

/// `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(
            u64::try_from(now.tv_sec).unwrap_or_default(),
            u32::try_from(now.tv_nsec).unwrap_or_default(),
        )
    }
}
