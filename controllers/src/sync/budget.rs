//! Lets statuses of all shards be written at a bounded rate, fairly by project and owner.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::fair::{Claimant, FairQueue};

/// Bytes per second of all shards together.
const ALL: u64 = 1024 * 1024;

/// All shards share the hub.
#[derive(Clone, Default)]
pub struct Budget(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// When the next write may begin; `None`: nothing was written yet.
    free: Option<Instant>,
    waiting: FairQueue<oneshot::Sender<()>>,
    /// A task grants what waits; there is none at rest.
    granting: bool,
}

impl State {
    /// The next write may begin when this one is paid for.
    fn pay(&mut self, bytes: u64) {
        let from = self.free.unwrap_or_else(Instant::now).max(Instant::now());
        self.free = Some(from + Duration::from_millis(bytes.saturating_mul(1000) / ALL));
    }
}

/// A write that waits for its turn. Dropped, it gives its place up.
pub struct Turn {
    budget: Budget,
    who: Claimant,
    ticket: u64,
    granted: oneshot::Receiver<()>,
}

impl Budget {
    /// Nothing written yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for so many bytes; `None`: they may be written at once. Awaited writes go before others of the same owner.
    pub fn ask(&self, who: &Claimant, bytes: u64, awaited: bool) -> Option<Turn> {
        let mut state = self.0.lock();
        let free = state.free.is_none_or(|free| free <= Instant::now());
        if free && !state.granting {
            state.pay(bytes);
            return None;
        }
        let (sender, granted) = oneshot::channel();
        let ticket = state.waiting.push(who, bytes, awaited, sender);
        if !state.granting {
            state.granting = true;
            tokio::spawn(self.clone().grant());
        }
        Some(Turn { budget: self.clone(), who: who.clone(), ticket, granted })
    }

    /// Grants one turn after the other until nobody waits.
    async fn grant(self) {
        loop {
            let free = self.0.lock().free;
            if let Some(free) = free {
                sleep_until(free).await;
            }
            let mut state = self.0.lock();
            let Some((sender, bytes)) = state.waiting.pop(|_| true) else {
                state.granting = false;
                return;
            };
            // Who gave up at this very moment uses nothing.
            if sender.send(()).is_ok() {
                state.pay(bytes);
            }
        }
    }
}

impl Turn {
    /// Waits for the turn. May be dropped and called again.
    pub async fn granted(&mut self) {
        // The sender goes only with the budget, which this holds.
        let _ = (&mut self.granted).await;
    }

    /// Somebody does nothing before this is written.
    pub fn hurry(&self) {
        self.budget.0.lock().waiting.hurry(&self.who, self.ticket);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.budget.0.lock().waiting.remove(&self.who, self.ticket);
    }
}
