//! The machine's clock and randomness, as reconcilers see them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::rand::{GetRandomFlags, getrandom};

use super::{Clock, Random};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The kernel's randomness for secrets, a generator seeded by it for all else.
#[derive(Debug)]
pub struct SystemRandom(AtomicU64);

impl SystemRandom {
    /// A generator with a seed of its own.
    pub fn new() -> Self {
        let mut seed = [0; 8];
        fill(&mut seed);
        Self(AtomicU64::new(u64::from_ne_bytes(seed)))
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for SystemRandom {
    fn next(&self) -> u64 {
        // SplitMix64: a counter with large odd steps, then a mix of its bits.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn secret(&self, bytes: &mut [u8]) {
        fill(bytes);
    }
}

fn fill(mut bytes: &mut [u8]) {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(done) => bytes = bytes.get_mut(done..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                // A key that can be guessed is worse than no process.
                tracing::error!(%error, "the kernel gives no random bytes");
                std::process::abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_filled_to_the_end_and_differ() {
        let random = SystemRandom::new();
        let (mut a, mut b) = ([0; 700], [0; 700]);
        random.secret(&mut a);
        random.secret(&mut b);
        assert_ne!(a, b);
        assert!(a[600..].iter().any(|byte| *byte != 0));
        assert_ne!(random.next(), random.next());
    }
}
