//! Counts requests to all simulated clusters, by what they ask.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::Method;
use serde_json::{Value, json};

/// Requests since the start.
#[derive(Default)]
pub(super) struct Requests {
    reads: AtomicU64,
    watches: AtomicU64,
    applies: AtomicU64,
    others: AtomicU64,
    connections: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Gets and lists.
    pub reads: u64,
    /// Watches that began.
    pub watches: u64,
    /// Patches: of what is applied, and of marks.
    pub applies: u64,
    /// Creations, replacements and deletions.
    pub others: u64,
    /// Connections that were taken.
    pub connections: u64,
}

impl Requests {
    pub fn note(&self, method: &Method, watch: bool) {
        let counter = match method.as_str() {
            "GET" if watch => &self.watches,
            "GET" => &self.reads,
            "PATCH" => &self.applies,
            _ => &self.others,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            reads: of(&self.reads),
            watches: of(&self.watches),
            applies: of(&self.applies),
            others: of(&self.others),
            connections: of(&self.connections),
        }
    }
}

impl Counts {
    /// As it is asked for.
    pub fn json(&self) -> Value {
        let Self { reads, watches, applies, others, connections } = self;
        json!({"reads": reads, "watches": watches, "applies": applies, "others": others, "connections": connections})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask() {
        let requests = Requests::default();
        for (method, watch) in
            [(Method::GET, false), (Method::GET, true), (Method::PATCH, false), (Method::DELETE, false)]
        {
            requests.note(&method, watch);
        }
        requests.connected();
        let all = Counts { reads: 1, watches: 1, applies: 1, others: 1, connections: 1 };
        assert_eq!(requests.read(), all);
        assert_eq!(all.json()["applies"], 1);
    }
}
