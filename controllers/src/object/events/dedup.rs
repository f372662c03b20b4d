//! Remembers which Events were written in the present second.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// Names of the Events that were written in this second. The name of an Event includes its second: a condition that changes to and
/// fro within one is reported once, since the hub would refuse the second Event.
#[derive(Default)]
pub struct EventDedup(Mutex<(String, BTreeSet<String>)>);

impl EventDedup {
    pub(crate) fn is_first(&self, now: &str, name: &str) -> bool {
        let mut written = self.0.lock();
        if written.0 != now {
            *written = (now.to_owned(), BTreeSet::new());
        }
        written.1.insert(name.to_owned())
    }
}
