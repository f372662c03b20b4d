//! Divides places among shares that take turns: connections being made (of providers, and for charts), and charts being unpacked or compiled
//! (of projects).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::api::shares;

/// The places.
pub struct Turns {
    all: usize,
    /// The most that one share has.
    of_share: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: usize,
    held: BTreeMap<Arc<str>, usize>,
    waiting: BTreeMap<Arc<str>, VecDeque<oneshot::Sender<Place>>>,
    /// The share that had the last turn.
    last: Arc<str>,
}

/// A place, until it is dropped.
pub struct Place {
    turns: Arc<Turns>,
    share: Arc<str>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.turns.release(&self.share);
    }
}

impl State {
    fn of(&self, share: &str) -> usize {
        self.held.get(share).copied().unwrap_or(0)
    }

    fn count(&mut self, share: &Arc<str>) {
        self.used += 1;
        *self.held.entry(Arc::clone(share)).or_default() += 1;
        self.last = Arc::clone(share);
    }

    /// The next in turn.
    fn next(&mut self, of_share: usize) -> Option<(Arc<str>, oneshot::Sender<Place>)> {
        loop {
            let held = |share: &Arc<str>| self.of(share);
            let share = Arc::clone(shares::next(self.waiting.keys(), &self.last, held, of_share)?);
            let queue = self.waiting.get_mut(&share)?;
            // Some do not wait any more.
            let sender = std::iter::from_fn(|| queue.pop_front()).find(|sender| !sender.is_closed());
            if queue.is_empty() {
                self.waiting.remove(&share);
            }
            if let Some(sender) = sender {
                return Some((share, sender));
            }
        }
    }
}

impl Turns {
    /// An eighth of the places is free for other shares, whatever one of them does.
    pub fn new(all: usize) -> Arc<Self> {
        let all = all.max(1);
        // One place of at most two is for one share, too: the shares take turns then.
        let of_share = (all - all.div_ceil(8)).max(1);
        Arc::new(Self { all, of_share, state: Mutex::default() })
    }

    /// Waits for a place.
    pub async fn take(self: &Arc<Self>, share: &Arc<str>) -> Place {
        loop {
            let receiver = {
                let mut state = self.state.lock();
                if state.used < self.all && state.of(share) < self.of_share {
                    state.count(share);
                    return self.place(Arc::clone(share));
                }
                let (sender, receiver) = oneshot::channel();
                let queue = state.waiting.entry(Arc::clone(share)).or_default();
                if queue.len().is_power_of_two() {
                    queue.retain(|sender| !sender.is_closed());
                }
                queue.push_back(sender);
                receiver
            };
            if let Ok(place) = receiver.await {
                return place;
            }
        }
    }

    fn place(self: &Arc<Self>, share: Arc<str>) -> Place {
        Place { turns: Arc::clone(self), share }
    }

    fn release(self: &Arc<Self>, share: &str) {
        let mut handed_out = Vec::new();
        {
            let mut state = self.state.lock();
            state.used = state.used.saturating_sub(1);
            let left = state.of(share).saturating_sub(1);
            if left == 0 {
                state.held.remove(share);
            } else if let Some(held) = state.held.get_mut(share) {
                *held = left;
            }
            while state.used < self.all {
                let Some((share, sender)) = state.next(self.of_share) else { break };
                state.count(&share);
                handed_out.push((sender, self.place(share)));
            }
        }
        // Without the lock: a place that nobody takes any more is released again.
        for (sender, place) in handed_out {
            drop(sender.send(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    fn share(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[tokio::test]
    async fn one_share_never_has_all_places() {
        let (turns, a, b) = (Turns::new(16), share("a"), share("b"));
        let held: Vec<Place> = (0..20).filter_map(|_| turns.take(&a).now_or_never()).collect();
        assert_eq!(held.len(), 14);
        assert!(turns.take(&b).now_or_never().is_some());
        assert!(Turns::new(1).take(&a).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_free_place_goes_to_the_share_with_the_fewest() {
        let (turns, a, b, c) = (Turns::new(2), share("a"), share("b"), share("c"));
        let (first, second) = (turns.take(&a).await, turns.take(&b).await);
        let mut next: Vec<_> = [&a, &a, &c].into_iter().map(|share| Box::pin(turns.take(share))).collect();
        for waiting in &mut next {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
        drop(second);
        assert!(poll!(next[0].as_mut()).is_pending() && poll!(next[1].as_mut()).is_pending());
        let third = next[2].as_mut().now_or_never().expect("c had none");
        drop(first);
        assert!(next[0].as_mut().now_or_never().is_some(), "its place is given back at once");
        assert!(next[1].as_mut().now_or_never().is_some());
        drop(third);
    }

    #[tokio::test]
    async fn who_stops_waiting_takes_no_place() {
        let (turns, a, b) = (Turns::new(2), share("a"), share("b"));
        let held = turns.take(&a).await;
        let mut gone: Vec<_> = (0..100).map(|_| Box::pin(turns.take(&a))).collect();
        for waiting in &mut gone {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
        let mut last = Box::pin(turns.take(&a));
        assert!(poll!(last.as_mut()).is_pending());
        // One is handed a place and does not look any more.
        drop(gone.split_off(1));
        drop(held);
        drop(gone);
        assert!(last.as_mut().now_or_never().is_some());
        let state = turns.state.lock();
        assert_eq!((state.used, state.held.len(), state.waiting.len()), (0, 0, 0));
        drop(state);
        assert!(turns.take(&b).now_or_never().is_some());
    }
}
