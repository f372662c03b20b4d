//! Waits until the row says which cluster it is of: a row without an identity is proof that nothing was sent.

use std::time::Duration;

use tokio::time::Instant;

use super::super::super::errors::{Retry, Trouble};
use super::super::{Job, Pass};
use super::Facts;

/// Most identities are written sooner than that: a row that says what it waits for is a write.
const USUAL: Duration = Duration::from_secs(10);

const UNIDENTIFIED: &str = "nothing is sent before the row names this cluster (the UID of its kube-system): the next reconcile of the owner writes it, unless the owner is suspended or may not use the cluster, as its conditions say";

impl Job {
    /// A pass at the first contact. The controller records who the cluster is as soon as it knows it; where that takes long, the row says
    /// what it waits for.
    pub(in crate::sync::job) fn unidentified(&mut self, mut facts: Facts) -> Pass {
        let due = *self.memory.unidentified.get_or_insert_with(Instant::now) + USUAL;
        if Instant::now() < due {
            return Pass { facts, wake: Some(due), silent: true };
        }
        facts.bar(&Trouble::new("Progressing", UNIDENTIFIED, Retry::WhenBack));
        Pass::of(facts)
    }
}
