//! Parses the documents of rendered files once, while renders go on printing the same.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

use super::manifests::Hook;

/// Bytes of text that are kept of late, and as many of what was kept before that. What it says takes some times as much.
const MOST_BYTES: usize = 512 * 1024;

/// So many times its text does an ordinary document take in memory at most; one that takes more counts as a longer text.
const ORDINARY: usize = 16;

/// What one document says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub json: Json,
    pub kind: String,
    pub hook: Option<Hook>,
    /// What reading it took of the memory that a render may use.
    pub bytes: usize,
}

/// Documents of the last renders of a chart: of most, a change of values changes few.
#[derive(Debug, Default)]
pub(super) struct Documents(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    late: BTreeMap<Box<str>, Arc<Read>>,
    /// Of `late`.
    bytes: usize,
    before: BTreeMap<Box<str>, Arc<Read>>,
}

impl Documents {
    /// What a document says, if it was read before.
    pub fn get(&self, text: &str) -> Option<Arc<Read>> {
        let mut kept = self.lock();
        if let Some(read) = kept.late.get(text) {
            return Some(Arc::clone(read));
        }
        let (text, read) = kept.before.remove_entry(text)?;
        kept.put(text, Arc::clone(&read));
        Some(read)
    }

    /// Keeps what a document says.
    pub fn put(&self, text: &str, read: &Read) {
        self.lock().put(text.into(), Arc::new(read.clone()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // A panic while the lock was held leaves a cache that is merely incomplete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn put(&mut self, text: Box<str>, read: Arc<Read>) {
        let bytes = text.len().max(read.bytes / ORDINARY);
        if bytes > MOST_BYTES {
            return;
        }
        if self.bytes + bytes > MOST_BYTES {
            self.before = std::mem::take(&mut self.late);
            self.bytes = 0;
        }
        // Two renders at once may read the same.
        if self.late.insert(text, read).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(number: usize) -> Read {
        Read { json: Json::from(number), kind: String::new(), hook: None, bytes: 0 }
    }

    #[test]
    fn a_short_text_that_says_much_takes_the_place_of_a_long_one() {
        let documents = Documents::default();
        for number in 0..100 {
            documents.put(&format!("a: {number}"), &Read { bytes: 1 << 20, ..read(number) });
        }
        let kept = documents.lock();
        let all = kept.late.len() + kept.before.len();
        assert!(all <= 2 * MOST_BYTES * ORDINARY / (1 << 20), "{all} are kept");
    }

    fn text(number: usize) -> String {
        format!("number: {number:05}\n").repeat(1024)
    }

    #[test]
    fn what_is_used_stays_and_what_is_kept_is_bounded() {
        let documents = Documents::default();
        for number in 0..500 {
            documents.put(&text(number), &read(number));
            assert_eq!(
                documents.get(&text(0)).map(|read| read.json.clone()),
                Some(Json::from(0)),
                "{number}"
            );
        }
        let kept = documents.lock();
        let bytes: usize = kept.late.keys().chain(kept.before.keys()).map(|text| text.len()).sum();
        assert!(bytes <= 2 * MOST_BYTES, "{bytes}");
        drop(kept);
        assert!(documents.get(&text(499)).is_some() && documents.get(&text(100)).is_none());
        documents.put(&"x".repeat(MOST_BYTES + 1), &read(0));
        assert!(documents.get(&text(499)).is_some(), "what is too large drives nothing out");
    }
}
