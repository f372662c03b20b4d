//! Starts the control planes that a test wants; they are gone when the bed is dropped.

mod bootstrap;
mod certs;
mod etcd;
mod faults;
mod kubeconfig;
mod kubelet;
mod plane;
mod ports;
mod ready;
mod shared;
mod spec;
mod start;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

pub(crate) use certs::Authority;
pub use faults::Snapshot;
pub use plane::Plane;
pub use shared::{SharedBed, serial};
pub use spec::{Audit, BedSpec, Capacity, Etcd, NodeSpec, Parts, PlaneSpec};

use crate::programs::Programs;
use crate::supervisor::{Process, ProgramSpec, Supervisor};

/// Running control planes on 127.0.0.1. Dropping the bed ends them and removes all their data, once the last [`Process`] of
/// [`Bed::run`] is dropped, too.
pub struct Bed {
    supervisor: Arc<Supervisor>,
    programs: Programs,
    planes: BTreeMap<String, Plane>,
    /// With its place, which keeps its ports reserved.
    _shared_etcd: Option<(etcd::EtcdPlace, Process)>,
}

impl Bed {
    /// Finds or builds the programs, starts all planes and waits until each is ready for objects.
    pub async fn start(spec: BedSpec) -> Result<Self> {
        start::start(spec).await
    }

    /// The plane called `hub`.
    ///
    /// # Panics
    /// When the bed was started without one.
    pub fn hub(&self) -> &Plane {
        self.edge("hub")
    }

    /// The plane called `name`.
    ///
    /// # Panics
    /// When the bed was started without one.
    pub fn edge(&self, name: &str) -> &Plane {
        let names = || self.planes.keys().cloned().collect::<Vec<_>>().join(", ");
        self.planes.get(name).unwrap_or_else(|| panic!("this bed has no plane {name}, only {}", names()))
    }

    /// All planes by name, the hub among them.
    pub fn planes(&self) -> impl Iterator<Item = &Plane> {
        self.planes.values()
    }

    /// The folder for everything that lives as long as the bed: data, logs, whatever a test adds.
    pub fn dir(&self) -> &Path {
        self.supervisor.root()
    }

    /// The process that owns all others of this bed.
    pub fn supervisor(&self) -> &Arc<Supervisor> {
        &self.supervisor
    }

    /// The programs that this bed runs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Starts any other program (the operator, a file server) that is to end with the bed. Its log is `NAME.log` in the
    /// folder `logs` of the bed.
    pub async fn run(
        &self,
        name: &str,
        program: &Path,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Result<Process> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let spec = ProgramSpec {
            name: name.to_owned(),
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: env.iter().map(pair).collect(),
            log: self.log(name),
        };
        self.supervisor.run(spec).await
    }

    /// Where the log of the program `name` of [`Bed::run`] is.
    pub fn log(&self, name: &str) -> std::path::PathBuf {
        start::log_file(self.dir(), name)
    }

    /// Ends everything now instead of when the bed is dropped, without holding up the runtime.
    pub async fn end(self) -> Result<()> {
        tokio::task::spawn_blocking(move || drop(self)).await.context("the bed did not end")
    }
}
