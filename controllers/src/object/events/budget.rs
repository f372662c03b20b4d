//! Bounds the Events of one object within an hour: who changes to and fro all the time fills neither the hub nor what people read.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Events of one object within an [`HOUR`].
const MOST: usize = 25;
const HOUR: Duration = Duration::from_hours(1);

/// The Events of the last hour that this process wrote.
#[derive(Default)]
pub struct EventBudget(Mutex<Written>);

#[derive(Default)]
struct Written {
    /// By the UID of the object that they are about.
    of: BTreeMap<String, VecDeque<Instant>>,
    /// The time of the last look for objects without any.
    swept: Option<Instant>,
}

/// An Event's place among those of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There are others after it.
    Free,
    /// The last one for the time being.
    Last,
    /// There is none.
    None,
}

impl EventBudget {
    /// Takes a place for an Event about an object.
    pub fn take(&self, uid: &str) -> Place {
        let now = Instant::now();
        let is_over = |time: &Instant| now.duration_since(*time) >= HOUR;
        let mut written = self.0.lock();
        if written.swept.as_ref().is_none_or(is_over) {
            written.swept = Some(now);
            written.of.retain(|_, times| times.back().is_some_and(|last| !is_over(last)));
        }
        let times = written.of.entry(uid.to_owned()).or_default();
        while times.front().is_some_and(is_over) {
            times.pop_front();
        }
        if times.len() >= MOST {
            return Place::None;
        }
        times.push_back(now);
        if times.len() == MOST { Place::Last } else { Place::Free }
    }

    /// Gives a place back: the Event was not written.
    pub fn give_back(&self, uid: &str) {
        if let Some(times) = self.0.lock().of.get_mut(uid) {
            times.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_has_so_many_places_in_any_hour() {
        let budget = EventBudget::default();
        let taken = |wanted: usize| -> Vec<Place> { (0..wanted).map(|_| budget.take("a")).collect() };
        assert_eq!(taken(10), [Place::Free; 10]);
        tokio::time::advance(HOUR / 2).await;
        let rest = taken(20);
        assert_eq!((rest[13], rest[14], rest[15]), (Place::Free, Place::Last, Place::None));
        assert_eq!(budget.take("b"), Place::Free, "another object");
        budget.give_back("a");
        assert_eq!(taken(2), [Place::Last, Place::None]);
        tokio::time::advance(HOUR / 2).await;
        let again = taken(11);
        assert_eq!((again[9], again[10]), (Place::Last, Place::None), "the first ten are an hour old");
        tokio::time::advance(HOUR * 2).await;
        budget.take("c");
        assert_eq!(budget.0.lock().of.len(), 1, "objects without Events are forgotten");
    }
}
