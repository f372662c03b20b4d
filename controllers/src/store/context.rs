//! What reads and writes of stored revisions and rows share: the hub, and what this process remembers of revisions and charts.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::caches::Revisions;
use crate::chart::ChartStore;
use crate::object::context::HubContext;

/// The hub, revisions and charts.
pub struct StoreContext {
    /// The hub and the clusters.
    pub hub: HubContext,
    /// Revisions written by this process, which the watches may not have seen yet, and their contents.
    pub revisions: Revisions,
    /// Charts.
    pub charts: Arc<ChartStore>,
}

impl Deref for StoreContext {
    type Target = HubContext;

    fn deref(&self) -> &HubContext {
        &self.hub
    }
}

impl DerefMut for StoreContext {
    fn deref_mut(&mut self) -> &mut HubContext {
        &mut self.hub
    }
}
