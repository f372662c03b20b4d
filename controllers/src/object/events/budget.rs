//! Bounds the Events of one object within an hour: who changes to and fro all the time fills neither the hub nor what people read. What does
//! so with one reason leaves room for what is new.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Events of one object within an [`HOUR`].
const MOST: usize = 25;
/// Those of them with one reason. A deployment that three things happen to in turn, again and again, has room for a fourth.
const MOST_OF_REASON: usize = 7;
const HOUR: Duration = Duration::from_hours(1);

/// The Events of the last hour that this process wrote.
#[derive(Default)]
pub struct EventBudget(Mutex<Written>);

#[derive(Default)]
struct Written {
    /// Times and reasons, by the UID of the object that they are about.
    of: BTreeMap<String, VecDeque<(Instant, String)>>,
    /// The time of the last look for objects without any.
    swept: Option<Instant>,
}

/// An Event's place among those of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There are others after it.
    Free,
    /// The last one with its reason for the time being.
    LastOfReason,
    /// The last one of all for the time being.
    Last,
    /// There is none.
    None,
}

impl EventBudget {
    /// Takes a place for an Event about an object.
    pub fn take(&self, uid: &str, reason: &str) -> Place {
        let now = Instant::now();
        let is_over = |time: &Instant| now.duration_since(*time) >= HOUR;
        let mut written = self.0.lock();
        if written.swept.as_ref().is_none_or(is_over) {
            written.swept = Some(now);
            written.of.retain(|_, all| all.back().is_some_and(|(last, _)| !is_over(last)));
        }
        let all = written.of.entry(uid.to_owned()).or_default();
        while all.front().is_some_and(|(first, _)| is_over(first)) {
            all.pop_front();
        }
        let alike = all.iter().filter(|(_, of)| of == reason).count();
        if all.len() >= MOST || alike >= MOST_OF_REASON {
            return Place::None;
        }
        all.push_back((now, reason.to_owned()));
        if all.len() == MOST {
            Place::Last
        } else if alike + 1 == MOST_OF_REASON {
            Place::LastOfReason
        } else {
            Place::Free
        }
    }

    /// Gives a place back: the Event was not written.
    pub fn give_back(&self, uid: &str, reason: &str) {
        if let Some(all) = self.0.lock().of.get_mut(uid)
            && let Some(at) = all.iter().rposition(|(_, of)| of == reason)
        {
            all.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places for Events with these reasons in turn.
    fn taken(budget: &EventBudget, reasons: &[&str], wanted: usize) -> Vec<Place> {
        reasons.iter().cycle().take(wanted).map(|reason| budget.take("a", reason)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_has_so_many_places_in_any_hour() {
        let budget = EventBudget::default();
        let four = ["Ready", "NotReady", "Revision", "Drift"];
        assert_eq!(taken(&budget, &four, 10), [Place::Free; 10]);
        tokio::time::advance(HOUR / 2).await;
        let rest = taken(&budget, &four, 20);
        assert_eq!((rest[13], rest[14], rest[15]), (Place::LastOfReason, Place::Last, Place::None));
        assert_eq!(budget.take("b", "Ready"), Place::Free, "another object");
        budget.give_back("a", "Drift");
        assert_eq!((budget.take("a", "Other"), budget.take("a", "Other")), (Place::Last, Place::None));
        tokio::time::advance(HOUR / 2).await;
        let again = taken(&budget, &["New", "Newer"], 11);
        assert_eq!((again[9], again[10]), (Place::Last, Place::None), "the first ten are an hour old");
        tokio::time::advance(HOUR * 2).await;
        budget.take("c", "Ready");
        assert_eq!(budget.0.lock().of.len(), 1, "objects without Events are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_to_and_fro_leaves_room_for_what_is_new() {
        let budget = EventBudget::default();
        let places = taken(&budget, &["Ready", "NotReady", "Revision"], 300);
        let count = |place: Place| places.iter().filter(|one| **one == place).count();
        assert_eq!((count(Place::Free), count(Place::LastOfReason), count(Place::Last)), (18, 3, 0));
        assert_eq!(budget.take("a", "TemplateError"), Place::Free);
    }
}
