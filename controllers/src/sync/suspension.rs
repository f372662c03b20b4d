//! Holds back an owner's writes to clusters while it is suspended. Reads go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::policy::Policies;
use super::work::Work;
use crate::object::Owner;

/// What a write that is held back is answered with.
pub const HELD_BACK: &str = "its owner is suspended: nothing is written to its clusters";

/// Whether an owner is suspended, as the hub says at the moment of asking.
#[derive(Clone)]
pub struct Suspension {
    policies: Arc<dyn Policies>,
    owner: Arc<Owner>,
    /// A write was held back since somebody last asked.
    held_back: Arc<AtomicBool>,
}

impl Suspension {
    /// Of this owner.
    pub fn new(policies: Arc<dyn Policies>, owner: Owner) -> Self {
        Self { policies, owner: Arc::new(owner), held_back: Arc::default() }
    }

    /// Whether nothing may be written to its clusters now.
    pub fn holds(&self) -> bool {
        self.policies.is_suspended(&self.owner)
    }

    /// The same, right before a write: one that is held back is remembered.
    pub fn holds_back(&self) -> bool {
        let holds = self.holds();
        if holds {
            self.held_back.store(true, Ordering::Relaxed);
        }
        holds
    }

    /// Whether a write was held back since [`Self::begin`].
    pub fn held_back(&self) -> bool {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Another pass begins. Answers whether a write of the last one was held back.
    pub fn begin(&self) -> bool {
        self.held_back.swap(false, Ordering::Relaxed)
    }
}

/// Tells requests of a pass that are not sent yet whether the pass is over: its wish changed or ended, or the owner was
/// suspended or resumed since it began.
#[derive(Clone)]
pub struct PassEnd {
    pub input: watch::Receiver<Arc<Work>>,
    pub suspension: Suspension,
    /// The owner was suspended when the pass began.
    pub suspended: bool,
}

impl PassEnd {
    /// Whether nothing more of the pass is sent.
    pub fn is_over(&self) -> bool {
        self.input.has_changed().unwrap_or(true) || self.suspension.holds() != self.suspended
    }
}
