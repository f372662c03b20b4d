//! What a process leaves that dies: a copy of everything outside of it, made before each of its writes.
//!
//! A server carries out one request after the other, and a write changes nothing before it arrives. So such a copy is what there is
//! when a process dies after the writes before: those have arrived, whatever it was about to send has not, and what it had only
//! read or thought is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::super::rig::{Outside, Rig};
use super::{Engine, Life};
use crate::api::{Method, Request};
use crate::memory::{Faults, MemoryServer};

/// What one process left.
pub struct Left {
    outside: Outside,
    edges: BTreeMap<&'static str, MemoryServer>,
    suspended: bool,
}

/// What processes leave that die in the course of one life.
#[derive(Default)]
pub struct Deaths {
    /// Writes of that life, to the hub and to edges.
    pub writes: u64,
    /// What is there after so many of them. Where a write changed nothing, what is there after the writes before stands for both.
    pub each: Vec<(u64, Left)>,
    /// The revisions of the servers when the last copy was made.
    revisions: Vec<u64>,
}

struct Recorder {
    outside: Outside,
    edges: BTreeMap<&'static str, MemoryServer>,
    suspended: Arc<AtomicBool>,
    deaths: Mutex<Deaths>,
}

impl Recorder {
    /// The hub and the edges.
    fn servers(&self) -> impl Iterator<Item = &MemoryServer> {
        std::iter::once(&self.outside.hub).chain(self.edges.values())
    }

    /// Keeps what is there now.
    fn keep(&self) {
        let revisions: Vec<u64> = self.servers().map(MemoryServer::revision).collect();
        let mut deaths = self.deaths.lock();
        if deaths.revisions != revisions {
            let outside = self.outside.copied();
            let edges = self.edges.keys().map(|name| (*name, outside.seeing.server(name))).collect();
            let left = Left { outside, edges, suspended: self.suspended.load(Ordering::SeqCst) };
            let writes = deaths.writes;
            deaths.each.push((writes, left));
            deaths.revisions = revisions;
        }
    }

    /// Keeps what is there before each write; besides, what went wrong before goes wrong still.
    fn faults(self: &Arc<Self>, before: Option<Faults>) -> Faults {
        let me = Arc::clone(self);
        Arc::new(move |request: &Request, number: u64| {
            if request.method != Method::Get {
                me.keep();
                me.deaths.lock().writes += 1;
            }
            before.as_ref().and_then(|before| before(request, number))
        })
    }
}

/// A life whose writes are recorded.
pub struct Record {
    recorder: Arc<Recorder>,
    /// What went wrong with each server before.
    before: Vec<(MemoryServer, Option<Faults>)>,
}

impl Record {
    /// Keeps what is there after the last write, and ends.
    pub fn end(self) -> Deaths {
        for (server, faults) in self.before {
            server.faults(faults);
        }
        self.recorder.keep();
        std::mem::take(&mut *self.recorder.deaths.lock())
    }
}

impl Life {
    /// Keeps what the process would leave at each of its writes from here on.
    pub fn record(&self) -> Record {
        let recorder = Arc::new(Recorder {
            outside: self.rig.outside(),
            edges: self.edges.clone(),
            suspended: Arc::clone(&self.suspended),
            deaths: Mutex::default(),
        });
        let mut before = Vec::new();
        for server in recorder.servers() {
            let faults = server.take_faults();
            server.faults(Some(recorder.faults(faults.clone())));
            before.push((server.clone(), faults));
        }
        Record { recorder, before }
    }

    /// The process after one that died.
    pub fn after(left: Left) -> Self {
        let Left { outside, edges, suspended } = left;
        let rig = Rig::on(outside);
        let suspended = Arc::new(AtomicBool::new(suspended));
        let engine = Some(Engine::start(&rig.ctx, &suspended));
        Self { rig, edges, engine, suspended }
    }
}
