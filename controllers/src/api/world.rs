//! Everything a reconciler may reach: the hub, the edges, the clock, randomness. A simulation gives it other ones and
//! replays exactly.

use std::sync::Arc;

use crate::api::ApiServer;
use emco_engine::identity::ClusterId;

pub mod system;
#[cfg(test)]
pub mod testing;

/// Time and waiting.
pub trait Clock: Send + Sync + 'static {
    /// Wall-clock time, Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// Randomness that is not secret: jitter, counters.
pub trait Random: Send + Sync + 'static {
    /// Uniform 64 bits.
    fn next(&self) -> u64;
    /// Fills with bytes that nobody can guess.
    fn secret(&self, bytes: &mut [u8]);
}

/// Remote clusters that are connected now.
pub trait Edges: Send + Sync + 'static {
    /// The cluster's API server while it is reachable; `None` otherwise. Never waits, never connects.
    fn get(&self, cluster: &ClusterId) -> Option<Arc<dyn ApiServer>>;
}

/// The whole world of a reconciler.
#[derive(Clone)]
pub struct World {
    /// The hub's API server.
    pub hub: Arc<dyn ApiServer>,
    /// Connected edges.
    pub edges: Arc<dyn Edges>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}
