//! An engine that dies at one of its writes, and what has to be the same as if it had not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::Notify;

use super::rig::Rig;
use crate::api::{ApiError, Method, Request};
use crate::crash_points;
use crate::memory::{Fault, MemoryServer};

/// Where the write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cluster `a`.
    Edge,
    /// The status of the shard.
    Hub,
}

/// One death: at which write, and whether the write arrives.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub place: Place,
    pub n: u64,
    pub arrives: bool,
}

/// A death at the first writes to each place, before the write arrives and before its answer does: at all of them, or at a sample.
pub fn all(edge: u64, hub: u64) -> impl Iterator<Item = Death> {
    [(Place::Edge, edge), (Place::Hub, hub)].into_iter().flat_map(|(place, writes)| {
        crash_points::chosen(0..writes)
            .into_iter()
            .flat_map(move |n| [false, true].map(|arrives| Death { place, n, arrives }))
    })
}

impl Death {
    fn server(self, rig: &Rig) -> MemoryServer {
        match self.place {
            Place::Edge => rig.edge("a"),
            Place::Hub => rig.hub.clone(),
        }
    }

    /// Runs a story until it ends, or until the engine dies; then another engine starts.
    pub async fn strikes(self, rig: &Rig, story: impl Future<Output = ()>) {
        let (died, count) = (Arc::new(Notify::new()), AtomicU64::new(0));
        let bell = Arc::clone(&died);
        let counts = move |request: &Request| {
            let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
            let engine = self.place == Place::Edge || request.path.ends_with("/status");
            request.method != Method::Get && !dry && engine
        };
        self.server(rig).faults(Some(Arc::new(move |request, _| {
            if !counts(request) || count.fetch_add(1, Ordering::Relaxed) != self.n {
                return None;
            }
            bell.notify_one();
            let (reason, message) = ("ConnectionLost", "the process died".to_owned());
            let lost = ApiError::Unreachable { reason, message };
            Some(if self.arrives { Fault::LoseAnswer } else { Fault::Refuse(lost) })
        })));
        tokio::select! {
            () = story => {}
            () = died.notified() => {}
        }
        rig.crash().await;
        self.server(rig).faults(None);
        rig.start().await;
    }
}

/// What is on the cluster and what the row says of it, without what tells one object or write from the next.
pub fn end(rig: &Rig) -> (BTreeMap<String, Value>, Value) {
    let mut objects = rig.edge("a").objects();
    for metadata in objects.values_mut().filter_map(|object| object["metadata"].as_object_mut()) {
        metadata.retain(|key, _| !matches!(key.as_str(), "uid" | "resourceVersion" | "generation"));
    }
    let row = rig.row("a").map(|row| {
        let applied = row.applied.and_then(|applied| applied.combination);
        serde_json::json!([
            applied,
            row.total,
            row.applied_count,
            row.ready,
            row.error.map(|error| error.reason)
        ])
    });
    (objects, row.unwrap_or_default())
}
