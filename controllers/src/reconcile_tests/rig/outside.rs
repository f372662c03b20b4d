//! Everything outside of a process: its death changes nothing of it, and another process may begin on a copy.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::super::world::{Seeing, TestClock};
use super::{Rig, Shown, context};
use crate::memory::MemoryServer;
use crate::store::RevisionSettings;

/// The hub, the clusters and how they are seen, the clocks, and what a process is started with.
pub struct Outside {
    pub hub: MemoryServer,
    pub seeing: Arc<Seeing>,
    clock: TestClock,
    settings: RevisionSettings,
    hidden_namespace: Option<Value>,
    /// A cache of archives by digest, which is never copied.
    charts: Arc<tempfile::TempDir>,
}

impl Outside {
    /// A copy as it is now, with servers and clocks of its own.
    pub fn copied(&self) -> Self {
        Self {
            hub: self.hub.copied(),
            seeing: Arc::new(self.seeing.copied()),
            clock: self.clock.copied(),
            settings: self.settings.clone(),
            hidden_namespace: self.hidden_namespace.clone(),
            charts: Arc::clone(&self.charts),
        }
    }
}

impl Rig {
    /// What is outside of this process.
    pub fn outside(&self) -> Outside {
        Outside {
            hub: self.hub.clone(),
            seeing: Arc::clone(&self.seeing),
            clock: self.clock.clone(),
            settings: self.settings.clone(),
            hidden_namespace: self.hidden_namespace.clone(),
            charts: Arc::clone(&self.charts),
        }
    }

    /// A process that begins there.
    pub fn on(outside: Outside) -> Self {
        let Outside { hub, seeing, clock, settings, hidden_namespace, charts } = outside;
        let (ctx, writers) = context((Arc::new(hub.clone()), &hub), &clock, &seeing, &charts, &settings);
        Self {
            hub,
            seeing,
            ctx,
            clock,
            settings,
            hidden_namespace,
            resuspended: BTreeSet::new(),
            writers,
            shown: Shown::new(),
            charts,
        }
    }
}
