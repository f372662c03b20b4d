//! Watches over renderings.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Watches over renderings: measures them, bounds how many run at once, ends those of no use. Here is no clock and no process.
pub trait Supervisor: Sync {
    /// One rendering of one app for one cluster: runs it, once.
    fn rendering(&self, render: &mut dyn FnMut());

    /// Set when the plan is of no use any more: what is being rendered ends then, and the plan with it.
    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Called on the thread of a rendering that takes long.
    fn slow(&self) -> Option<fn()> {
        None
    }
}

/// Nobody watches.
pub struct Unsupervised;

impl Supervisor for Unsupervised {
    fn rendering(&self, render: &mut dyn FnMut()) {
        render();
    }
}
