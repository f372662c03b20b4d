//! Keeps what is still missing before the process is ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// What is missing, by name. Clones share it.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, String>>>);

/// Something is missing until this is dropped.
pub struct Hold {
    readiness: Readiness,
    name: &'static str,
}

impl Readiness {
    /// Not ready until the hold is dropped. `why` is a sentence for whoever asks.
    pub fn hold(&self, name: &'static str, why: impl Into<String>) -> Hold {
        self.0.lock().insert(name, why.into());
        Hold { readiness: self.clone(), name }
    }

    /// What is missing, each with a sentence; empty when ready.
    pub fn missing(&self) -> BTreeMap<&'static str, String> {
        self.0.lock().clone()
    }
}

impl Hold {
    /// Says better why; whether that is news.
    pub fn explain(&self, why: impl Into<String>) -> bool {
        let why = why.into();
        let mut missing = self.readiness.0.lock();
        let news = missing.get(self.name) != Some(&why);
        missing.insert(self.name, why);
        news
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.readiness.0.lock().remove(self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_until_its_hold_is_dropped() {
        let readiness = Readiness::default();
        let hub = readiness.hold("hub", "not asked yet");
        let crds = readiness.hold("crds", "not looked at yet");
        assert!(hub.explain("it refuses connections"));
        assert!(!hub.explain("it refuses connections"));
        assert_eq!(readiness.missing()["hub"], "it refuses connections");
        drop(hub);
        assert_eq!(readiness.missing().into_keys().collect::<Vec<_>>(), ["crds"]);
        drop(crds);
        assert!(readiness.missing().is_empty());
    }
}
