//! Decides whether to send more requests of this pass. A namespace that is not there refuses every object in it, and a
//! server that says when to come again does not want the next five thousand requests before.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::super::errors::{Retry, Trouble};

/// So many in a row are the server's word; fewer may be that of an admission webhook, about some objects.
const IN_A_ROW: usize = 4;

/// What one round of requests learned so far. Requests that are not sent yet ask it.
#[derive(Default)]
pub(super) struct Halt(Mutex<Learned>);

#[derive(Default)]
struct Learned {
    in_a_row: usize,
    absent: BTreeSet<String>,
}

impl Halt {
    /// Whether a request about an object in this namespace is not sent any more.
    pub(super) fn holds(&self, namespace: &str) -> bool {
        let learned = self.0.lock();
        learned.in_a_row >= IN_A_ROW || learned.absent.contains(namespace)
    }

    /// A success, or an object's own affair: the server takes requests.
    pub(super) fn answered(&self) {
        self.0.lock().in_a_row = 0;
    }

    /// This namespace is not there.
    pub(super) fn absent(&self, namespace: &str) {
        self.0.lock().absent.insert(namespace.to_owned());
    }

    /// Takes in a refusal; whether it is the one after which nothing is sent any more.
    pub(super) fn refused(&self, trouble: &Trouble) -> bool {
        if !matches!(trouble.retry, Retry::After(_)) {
            self.answered();
            return false;
        }
        let mut learned = self.0.lock();
        learned.in_a_row += 1;
        learned.in_a_row == IN_A_ROW
    }
}
