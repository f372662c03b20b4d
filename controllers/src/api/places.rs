//! Divides the places for reconciles of one kind among namespaces. Nobody waits here: an object that gets no place is queued when
//! its namespace has one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::api::key_queue::{Key, KeyQueue};
use crate::api::shares;

/// How long an object without a place waits at most: the one that was queued before it may be gone by then.
pub const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The places of one kind.
pub struct Places {
    /// For whoever comes.
    all: usize,
    /// Of them, those of one namespace.
    of_one: usize,
    /// Further places, for namespaces that have none.
    spare: usize,
    state: Mutex<State>,
    /// Objects that may be reconciled now.
    pub freed: Arc<KeyQueue>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<String, usize>,
    used: usize,
    waiting: BTreeMap<String, Queue>,
    /// The namespace that was queued last.
    last: String,
}

#[derive(Default)]
struct Queue {
    order: VecDeque<String>,
    names: BTreeSet<String>,
}

impl State {
    /// How many places one namespace may have at this moment.
    const fn most(&self, places: &Places) -> usize {
        if self.used < places.all {
            places.of_one
        } else if self.used < places.all + places.spare {
            1
        } else {
            0
        }
    }

    fn of(&self, namespace: &str) -> usize {
        self.held.get(namespace).copied().unwrap_or(0)
    }
}

impl Places {
    /// Divides as many as the controller has: of twelve, nine for whoever comes, six of them for one namespace, and three for
    /// namespaces that have none.
    pub fn new(at_once: u16) -> Self {
        let at_once = usize::from(at_once.max(1));
        let spare = at_once / 4;
        let all = at_once - spare;
        let freed = Arc::default();
        Self { all, of_one: (all * 2 / 3).max(1), spare, state: Mutex::default(), freed }
    }

    /// A place for an object, unless its namespace or all together have as many as they may: then it is queued later. Objects of no
    /// namespace are administrators'.
    pub fn take(self: &Arc<Self>, (namespace, name): &Key) -> Option<Place> {
        if namespace.is_empty() {
            return Some(Place(None));
        }
        let mut state = self.state.lock();
        if state.of(namespace) >= state.most(self) {
            let queue = state.waiting.entry(namespace.clone()).or_default();
            if queue.names.insert(name.clone()) {
                queue.order.push_back(name.clone());
            }
            return None;
        }
        if let Some(queue) = state.waiting.get_mut(namespace)
            && queue.names.remove(name)
        {
            queue.order.retain(|waiting| waiting != name);
            if queue.order.is_empty() {
                state.waiting.remove(namespace);
            }
        }
        *state.held.entry(namespace.clone()).or_default() += 1;
        state.used += 1;
        Some(Place(Some((Arc::clone(self), namespace.clone()))))
    }

    /// One place is free again: whose turn it is is queued.
    fn release(&self, namespace: &str) {
        let mut state = self.state.lock();
        state.used = state.used.saturating_sub(1);
        if let Some(held) = state.held.get_mut(namespace) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                state.held.remove(namespace);
            }
        }
        let (most, held) = (state.most(self), |namespace: &String| state.of(namespace));
        let Some(next) = shares::next(state.waiting.keys(), &state.last, held, most).cloned() else { return };
        let Some(queue) = state.waiting.get_mut(&next) else { return };
        let name = queue.order.pop_front();
        if let Some(name) = name {
            queue.names.remove(&name);
            self.freed.enqueue(&next, &name);
        }
        if queue.order.is_empty() {
            state.waiting.remove(&next);
        }
        state.last = next;
    }
}

/// One reconcile may run while this is kept.
pub struct Place(Option<(Arc<Places>, String)>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((places, namespace)) = self.0.take() {
            places.release(&namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Arc<Places>, namespace: &str, many: usize) -> Vec<Place> {
        let key = |n| (namespace.to_owned(), format!("o{n}"));
        (0..many).filter_map(|n| places.take(&key(n))).collect()
    }

    fn freed(places: &Places) -> Vec<String> {
        std::iter::from_fn(|| places.freed.take()).map(|(within, name)| format!("{within}/{name}")).collect()
    }

    #[test]
    fn slow_objects_of_two_namespaces_leave_places_to_others() {
        let places = Arc::new(Places::new(12));
        let held = ["loud", "noisy", "quiet", "small", "new", "late"].map(|name| take(&places, name, 20));
        assert_eq!(held.each_ref().map(Vec::len), [6, 3, 1, 1, 1, 0]);
        assert_eq!(take(&places, "", 20).len(), 20, "objects of no namespace are not divided");
    }

    #[test]
    fn an_object_without_a_place_is_queued_when_its_namespace_has_one() {
        let places = Arc::new(Places::new(8));
        let mut loud = take(&places, "loud", 6);
        assert!(freed(&places).is_empty());
        loud.pop();
        assert_eq!(freed(&places), ["loud/o4"]);
        loud.extend(places.take(&("loud".to_owned(), "o4".to_owned())));
        drop(loud);
        assert_eq!(freed(&places), ["loud/o5"]);
        let state = places.state.lock();
        assert!(state.waiting.is_empty() && state.held.is_empty() && state.used == 0);
    }

    #[test]
    fn namespaces_that_wait_for_places_take_turns() {
        let places = Arc::new(Places::new(1));
        let mut held = take(&places, "loud", 4);
        assert_eq!(held.len(), 1);
        assert!(take(&places, "quiet", 1).is_empty());
        let mut order = Vec::new();
        while !held.is_empty() {
            held.clear();
            for key in std::iter::from_fn(|| places.freed.take()) {
                order.push(key.0.clone());
                held.extend(places.take(&key));
            }
        }
        assert_eq!(order, ["loud", "quiet", "loud", "loud"]);
    }
}
