//! Lets one at a time have something that several want, by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Who has what. In the order of asking.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>);

/// The turn ends when this is dropped.
pub struct Turn {
    turns: Turns,
    key: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Waits for a turn, but not longer than this.
    pub async fn turn(&self, key: String, longest: Duration) -> Option<Turn> {
        let one = Arc::clone(self.0.lock().entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        // Forgets the name also where nothing came of it.
        let mut turn = Turn { turns: self.clone(), key, permit: None };
        turn.permit = Some(timeout(longest, one.acquire_owned()).await.ok()?.ok()?);
        Some(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.permit = None;
        let mut all = self.turns.0.lock();
        if all.get(&self.key).is_some_and(|one| Arc::strong_count(one) == 1) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_has_a_turn_and_names_are_forgotten() {
        let (turns, moment) = (Turns::default(), Duration::from_millis(10));
        let first = turns.turn("a".to_owned(), moment).await;
        assert!(first.is_some() && turns.turn("b".to_owned(), moment).await.is_some());
        assert!(turns.turn("a".to_owned(), moment).await.is_none());
        drop(first);
        assert!(turns.turn("a".to_owned(), moment).await.is_some());
        assert!(turns.0.lock().is_empty());
    }
}
