//! Bounds the Events of one object within an hour: who changes to and fro all the time fills neither the hub nor what people read. The last
//! places are for what is new.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Events of one object within an [`HOUR`].
const MOST: usize = 25;
/// The last of them are for reasons that none of the others has.
const FOR_NEW: usize = 5;
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
    /// There are others after it, or it is the first with its reason.
    Free,
    /// After it there are only places for other reasons, for the time being.
    LastOfKnown,
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
        let is_new = all.iter().all(|(_, of)| of != reason);
        let most = if is_new { MOST } else { MOST - FOR_NEW };
        if all.len() >= most {
            return Place::None;
        }
        all.push_back((now, reason.to_owned()));
        match all.len() {
            MOST => Place::Last,
            number if number == MOST - FOR_NEW => Place::LastOfKnown,
            _ => Place::Free,
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
        assert_eq!(taken(&budget, &["Ready", "NotReady"], 10), [Place::Free; 10]);
        tokio::time::advance(HOUR / 2).await;
        let rest = taken(&budget, &["Ready", "NotReady"], 12);
        assert_eq!((rest[8], rest[9], rest[10]), (Place::Free, Place::LastOfKnown, Place::None));
        assert_eq!(budget.take("b", "Ready"), Place::Free, "another object");
        budget.give_back("a", "NotReady");
        assert_eq!(taken(&budget, &["Ready"], 2), [Place::LastOfKnown, Place::None]);
        tokio::time::advance(HOUR / 2).await;
        let again = taken(&budget, &["Ready"], 11);
        assert_eq!((again[9], again[10]), (Place::LastOfKnown, Place::None), "the first ten are an hour old");
        tokio::time::advance(HOUR * 2).await;
        budget.take("c", "Ready");
        assert_eq!(budget.0.lock().of.len(), 1, "objects without Events are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_to_and_fro_leaves_room_for_what_is_new() {
        let budget = EventBudget::default();
        let places = taken(&budget, &["Ready", "NotReady", "Revision"], 300);
        let count = |place: Place| places.iter().filter(|one| **one == place).count();
        assert_eq!((count(Place::Free), count(Place::LastOfKnown), count(Place::Last)), (19, 1, 0));
        assert_eq!(taken(&budget, &["TemplateError"], 2), [Place::Free, Place::None]);
        let new = taken(&budget, &["Drift", "NotRemoved", "Abandoned", "RemovalBudget", "OneMore"], 5);
        assert_eq!(new, [Place::Free, Place::Free, Place::Free, Place::Last, Place::None]);
    }
}
