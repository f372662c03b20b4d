//! Remembers the last live list of what keeps Clusters that are being deleted, so that those that wait for one share it.

use std::collections::BTreeMap;

use emco_engine::identity::ClusterId;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The last list. Whoever makes the next one holds the lock.
#[derive(Default)]
pub struct ReleaseProofs(Mutex<Option<ListedHolders>>);

/// A list of the hub's shards, as far as Clusters that are being deleted go.
pub(crate) struct ListedHolders {
    /// When the list began.
    pub begun: Instant,
    /// What the deletion of each cluster waits for; `None` where nothing keeps it.
    pub kept: BTreeMap<ClusterId, Option<String>>,
}

impl ReleaseProofs {
    pub(crate) async fn lock(&self) -> MutexGuard<'_, Option<ListedHolders>> {
        self.0.lock().await
    }
}
