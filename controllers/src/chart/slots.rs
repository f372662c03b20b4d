//! Divides the places for downloads among projects. Nobody waits here: who gets no place is woken when it is its turn.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::key_queue::{Key, KeyQueue};
use crate::api::shares;

/// How long a place stays free for the one that was woken for it.
const RESERVED: Duration = Duration::from_secs(5);

/// One object's way to a place for its downloads, which it keeps from one download to the next until this is dropped.
pub struct Turn {
    /// Namespace, which is the project's, and name.
    who: Key,
    /// Since when it has a place.
    held: Mutex<Option<(Instant, Weak<Slots>)>>,
    downloads: AtomicUsize,
    /// What was done would be lost without the place.
    stays: bool,
}

impl Turn {
    /// Of a `CompositeApp`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            who: (namespace.to_owned(), name.to_owned()),
            held: Mutex::default(),
            downloads: AtomicUsize::new(0),
            stays: false,
        }
    }

    /// One that keeps its place while others wait: for work that begins anew each time. Its maker bounds the time.
    #[must_use]
    pub const fn staying(mut self, stays: bool) -> Self {
        self.stays = stays;
        self
    }

    /// The namespace of its project.
    pub(super) fn project(&self) -> &str {
        &self.who.0
    }

    pub(super) fn downloaded(&self) {
        self.downloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Charts that came from their sources.
    pub fn downloads(&self) -> usize {
        self.downloads.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(&self.who).finish()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(slots) = self.held.get_mut().take().and_then(|(_, slots)| slots.upgrade()) {
            slots.release(&self.who.0);
        }
    }
}

/// The places.
pub struct Slots {
    all: usize,
    of_project: usize,
    /// How long one object keeps a place while others wait for it.
    time: Duration,
    triggers: Arc<KeyQueue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<String, usize>,
    reserved: Vec<(Key, Instant)>,
    waiting: BTreeMap<String, VecDeque<Key>>,
    /// The project that had the last turn.
    last: String,
}

impl State {
    fn used(&self) -> usize {
        self.held.values().sum::<usize>() + self.reserved.len()
    }

    fn of(&self, project: &str) -> usize {
        let reserved = self.reserved.iter().filter(|(who, _)| who.0 == project).count();
        self.held.get(project).copied().unwrap_or(0) + reserved
    }

    /// The next in turn.
    fn next(&mut self, of_project: usize) -> Option<Key> {
        let held = |project: &String| self.of(project);
        let project = shares::next(self.waiting.keys(), &self.last, held, of_project)?.clone();
        let queue = self.waiting.get_mut(&project)?;
        let who = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&project);
        }
        self.last = project;
        who
    }

    /// Takes back what is reserved for one.
    fn claim(&mut self, who: &Key) {
        self.reserved.retain(|(reserved, _)| reserved != who);
    }

    fn no_longer_waits(&mut self, who: &Key) {
        if let Some(queue) = self.waiting.get_mut(&who.0) {
            queue.retain(|waiting| waiting != who);
            if queue.is_empty() {
                self.waiting.remove(&who.0);
            }
        }
    }
}

impl Slots {
    /// `of_project` of `all` places are the most that one project has; it is made less than all.
    pub fn new(all: usize, of_project: usize, time: Duration, triggers: Arc<KeyQueue>) -> Arc<Self> {
        let all = all.max(1);
        let of_project = of_project.clamp(1, all.saturating_sub(1).max(1));
        Arc::new(Self { all, of_project, time, triggers, state: Mutex::default() })
    }

    /// Takes a place if the turn has none yet, and says whether it has one. Who has none is woken when there is one.
    pub fn take(self: &Arc<Self>, turn: &Turn) -> bool {
        let mut held = turn.held.lock();
        let mut state = self.state.lock();
        let since = held.as_ref().map(|(since, _)| *since);
        if let Some(since) = since {
            if turn.stays || since.elapsed() < self.time || state.waiting.is_empty() {
                return true;
            }
            *held = None;
            less(&mut state, &turn.who.0);
            push(&mut state, &turn.who);
            self.hand_out(&mut state);
            return false;
        }
        let now = Instant::now();
        state.reserved.retain(|(_, until)| *until > now);
        if !state.reserved.iter().any(|(who, _)| *who == turn.who) {
            self.hand_out(&mut state);
        }
        state.claim(&turn.who);
        let free = state.used() < self.all && state.of(&turn.who.0) < self.of_project;
        if free {
            state.no_longer_waits(&turn.who);
            state.last.clone_from(&turn.who.0);
            *state.held.entry(turn.who.0.clone()).or_default() += 1;
            *held = Some((now, Arc::downgrade(self)));
        } else {
            push(&mut state, &turn.who);
        }
        free
    }

    /// Notes one that waits for what somebody with a place is doing.
    pub fn queue(&self, turn: &Turn) {
        let mut state = self.state.lock();
        state.claim(&turn.who);
        push(&mut state, &turn.who);
    }

    fn release(&self, project: &str) {
        let mut state = self.state.lock();
        less(&mut state, project);
        self.hand_out(&mut state);
    }

    /// Keeps free places for those whose turn it is, and triggers them.
    fn hand_out(&self, state: &mut State) {
        while state.used() < self.all {
            let Some(who) = state.next(self.of_project) else { return };
            self.triggers.enqueue(&who.0, &who.1);
            state.reserved.push((who, Instant::now() + RESERVED));
        }
    }
}

fn push(state: &mut State, who: &Key) {
    let queue = state.waiting.entry(who.0.clone()).or_default();
    if !queue.contains(who) {
        queue.push_back(who.clone());
    }
}

fn less(state: &mut State, project: &str) {
    if let Some(held) = state.held.get_mut(project) {
        *held = held.saturating_sub(1);
        if *held == 0 {
            state.held.remove(project);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_mins(2);

    fn slots(all: usize, of_project: usize) -> (Arc<Slots>, Arc<KeyQueue>) {
        let triggers = Arc::<KeyQueue>::default();
        (Slots::new(all, of_project, TIME, Arc::clone(&triggers)), triggers)
    }

    fn turns(project: &str, many: usize) -> Vec<Turn> {
        (0..many).map(|n| Turn::new(project, &format!("app-{n}"))).collect()
    }

    fn woken(triggers: &KeyQueue) -> Vec<String> {
        std::iter::from_fn(|| triggers.take()).map(|(project, name)| format!("{project}/{name}")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_project_never_has_all_places() {
        let (slots, triggers) = slots(4, 2);
        let many = turns("a", 20);
        assert_eq!(many.iter().filter(|turn| slots.take(turn)).count(), 2);
        let other = turns("b", 3);
        assert_eq!(other.iter().map(|turn| slots.take(turn)).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(woken(&triggers), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn projects_that_wait_take_turns_and_are_woken() {
        let (slots, triggers) = slots(2, 1);
        let (mut a, b, c) = (turns("a", 9), turns("b", 1), turns("c", 1));
        let held: Vec<bool> = a.iter().chain(&b).chain(&c).map(|turn| slots.take(turn)).collect();
        assert_eq!(held.iter().filter(|held| **held).count(), 2, "one of a, one of b");
        drop(a.remove(0));
        assert_eq!(woken(&triggers), ["c/app-0"], "a's next ones wait although they came before");
        assert!(!slots.take(&a[0]), "the place is kept for c");
        assert!(slots.take(&c[0]));
        drop(b);
        assert_eq!(woken(&triggers), ["a/app-1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_nobody_comes_for_is_given_on() {
        let (slots, triggers) = slots(1, 1);
        let (mut a, b) = (turns("a", 2), turns("b", 1));
        assert!(slots.take(&a[0]) && !slots.take(&a[1]));
        drop(a.remove(0));
        assert_eq!(woken(&triggers), ["a/app-1"]);
        drop(a);
        assert!(!slots.take(&b[0]));
        tokio::time::advance(RESERVED).await;
        assert!(slots.take(&b[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_held_for_long_goes_to_who_waits() {
        let (slots, triggers) = slots(1, 1);
        let (a, b) = (turns("a", 1), turns("b", 1));
        assert!(slots.take(&a[0]) && slots.take(&a[0]), "it keeps its place");
        tokio::time::advance(TIME).await;
        assert!(slots.take(&a[0]), "nobody waits");
        assert!(!slots.take(&b[0]) && !slots.take(&a[0]));
        assert_eq!(woken(&triggers), ["b/app-0"]);
        assert!(slots.take(&b[0]));
        drop(b);
        assert_eq!(woken(&triggers), ["a/app-0"]);
    }
}
