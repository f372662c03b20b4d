//! Runs a hub and edges until Ctrl-C, for a person to try things on.

use anyhow::{Context, Result};
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use tokio::signal::unix::{SignalKind, signal};

/// More than this would not be quick, nor useful by hand.
const MOST: usize = 20;

/// Prints the folder of the bed, which holds logs and audit logs, then `NAME KUBECONFIG` for each plane, then `ready`.
pub fn up(edges: usize) -> Result<()> {
    anyhow::ensure!(edges <= MOST, "--edges {edges}: at most {MOST}");
    let hub = PlaneSpec::new("hub", Parts::Controllers);
    let edges = (1..=edges).map(|number| PlaneSpec::edge(&format!("edge-{number}")));
    let planes = std::iter::once(hub).chain(edges).map(|plane| plane.audit(Audit::Writes));
    let spec = planes.fold(BedSpec::default(), BedSpec::with);
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        // Listening from here on, so that none is lost between two waits.
        let mut interrupted = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
        let bed = tokio::select! {
            bed = Bed::start(spec) => bed?,
            _ = interrupted.recv() => return Ok(()),
        };
        println!("bed {}", bed.dir().display());
        for plane in bed.planes() {
            println!("{} {}", plane.name(), plane.kubectl().kubeconfig().display());
        }
        println!("ready");
        interrupted.recv().await;
        bed.end().await
    })
}
