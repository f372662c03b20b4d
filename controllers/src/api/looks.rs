//! Tells looks at objects that only a report asked for from all others, and keeps what such a look needs of the one before.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Namespace and name.
type Key = (String, String);

/// The objects of one kind. Bounded by their number, and by the memory that what is kept takes.
#[derive(Default)]
pub struct Looks(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those that were asked for more than a report since their last look. Absent while nobody says so: each look is one at everything.
    asked: Option<BTreeSet<Key>>,
    rests: BTreeMap<Key, Rest>,
    /// When each of these ends.
    ends: BTreeSet<(Instant, Key)>,
    /// What all of them take.
    bytes: usize,
}

struct Rest {
    until: Instant,
    bytes: usize,
    kept: Box<dyn Any + Send>,
}

/// Most that is kept for all objects: others are looked at as a whole.
const MOST_BYTES: usize = 64 << 20;

impl State {
    fn remove(&mut self, key: &Key) -> Option<Rest> {
        let rest = self.rests.remove(key)?;
        self.ends.remove(&(rest.until, key.clone()));
        self.bytes = self.bytes.saturating_sub(rest.bytes);
        Some(rest)
    }

    /// What has ended. The caller drops it when others may go on.
    fn ended(&mut self) -> Vec<Rest> {
        let (now, mut ended) = (Instant::now(), Vec::new());
        while self.ends.first().is_some_and(|(until, _)| *until <= now) {
            let key = self.ends.pop_first().map(|(_, key)| key);
            ended.extend(key.and_then(|key| self.remove(&key)));
        }
        ended
    }
}

impl Looks {
    /// From now on [`Self::note`] is told of whatever asks for more than a report.
    pub fn begin(&self) {
        self.0.lock().asked.get_or_insert_default();
    }

    /// Whether that is so.
    pub fn is_told(&self) -> bool {
        self.0.lock().asked.is_some()
    }

    /// These are asked for more than a report. Before their looks are queued.
    pub fn note(&self, keys: impl IntoIterator<Item = Key>) {
        let mut state = self.0.lock();
        let ended = state.ended();
        if let Some(asked) = &mut state.asked {
            asked.extend(keys);
        }
        drop(state);
        drop(ended);
    }

    /// An object is no more.
    pub fn gone(&self, key: &Key) {
        let mut state = self.0.lock();
        let rest = state.remove(key);
        if let Some(asked) = &mut state.asked {
            asked.remove(key);
        }
        drop(state);
        drop(rest);
    }

    /// Begins a look: what the last one kept, unless something else than a report asks for this one. Whoever keeps nothing afterwards is
    /// looked at as a whole again.
    pub fn take<T: 'static>(&self, key: &Key) -> Option<T> {
        let mut state = self.0.lock();
        let ended = state.ended();
        let rest = state.remove(key);
        let is_asked = state.asked.as_mut().is_none_or(|asked| asked.remove(key));
        drop(state);
        drop(ended);
        let kept = rest.filter(|_| !is_asked)?.kept.downcast::<T>().ok()?;
        Some(*kept)
    }

    /// Keeps something for the next look, which takes about so much memory, until then at most.
    pub fn keep(&self, key: Key, bytes: usize, until: Instant, kept: impl Any + Send) {
        let mut state = self.0.lock();
        let mut ended = state.ended();
        ended.extend(state.remove(&key));
        let all = state.bytes.saturating_add(bytes);
        if state.asked.is_some() && all <= MOST_BYTES {
            state.bytes = all;
            state.ends.insert((until, key.clone()));
            state.rests.insert(key, Rest { until, bytes, kept: Box::new(kept) });
        }
        drop(state);
        drop(ended);
    }

    /// How many are asked for more than a report.
    #[cfg(test)]
    pub fn asked(&self) -> usize {
        self.0.lock().asked.as_ref().map_or(0, BTreeSet::len)
    }

    /// What all that is kept takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> Key {
        ("shop".to_owned(), name.to_owned())
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[test]
    fn a_look_that_anything_but_a_report_asks_for_is_one_at_everything() {
        let looks = Looks::default();
        looks.keep(key("web"), 0, later(), 7_u32);
        assert_eq!(looks.take::<u32>(&key("web")), None, "nobody says what asks");
        looks.begin();
        looks.keep(key("web"), 0, later(), 7_u32);
        assert_eq!(looks.take(&key("web")), Some(7_u32));
        assert_eq!(looks.take::<u32>(&key("web")), None, "the look kept nothing");
        looks.keep(key("web"), 0, later(), 7_u32);
        looks.note([key("web")]);
        assert_eq!(looks.take::<u32>(&key("web")), None);
        looks.keep(key("web"), 0, later(), 8_u32);
        assert_eq!(looks.take(&key("web")), Some(8_u32), "it was asked once");
    }

    #[test]
    fn what_asks_during_a_look_counts_for_the_next_one() {
        let looks = Looks::default();
        looks.begin();
        assert_eq!(looks.take::<u32>(&key("web")), None);
        looks.note([key("web")]);
        looks.keep(key("web"), 0, later(), 7_u32);
        assert_eq!(looks.take::<u32>(&key("web")), None);
    }

    #[test]
    fn objects_that_are_gone_leave_nothing_and_the_memory_is_bounded() {
        let looks = Looks::default();
        looks.begin();
        let share = MOST_BYTES / 8;
        for n in 0..16 {
            looks.keep(key(&n.to_string()), share, later(), n);
            looks.note([key(&n.to_string())]);
        }
        looks.keep(key("small"), 0, later(), 7_usize);
        assert_eq!((looks.bytes(), looks.0.lock().rests.len()), (MOST_BYTES, 9));
        // What is kept anew counts once.
        looks.keep(key("0"), share, later(), 0);
        assert_eq!((looks.bytes(), looks.0.lock().rests.len()), (MOST_BYTES, 9));
        (0..16).for_each(|n| looks.gone(&key(&n.to_string())));
        looks.gone(&key("small"));
        let state = looks.0.lock();
        assert!(state.rests.is_empty() && state.ends.is_empty() && state.bytes == 0);
        assert!(state.asked.as_ref().is_some_and(BTreeSet::is_empty));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_dropped_at_its_end_whoever_is_looked_at_then() {
        let looks = Looks::default();
        looks.begin();
        let kept = Arc::new(());
        looks.keep(key("web"), 5, later(), Arc::clone(&kept));
        tokio::time::advance(Duration::from_secs(59)).await;
        looks.note([key("other")]);
        assert_eq!((Arc::strong_count(&kept), looks.bytes()), (2, 5));
        tokio::time::advance(Duration::from_secs(1)).await;
        looks.note([key("other")]);
        assert_eq!((Arc::strong_count(&kept), looks.bytes()), (1, 0));
    }
}
