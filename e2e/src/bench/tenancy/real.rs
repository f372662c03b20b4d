//! Measures on eight real control planes: API servers with controllers, since a namespace ends by the hand of one.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator};

use super::super::record::Entry;
use super::super::spine::count;
use super::super::spine::quiet::{Marks, by_resource};
use super::cloud::{Clouds, KINDS, Made};
use super::{HOW, REST};

const EDGES: [&str; 8] = ["edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8"];
const PROVIDER: &str = "fleet";
/// Logical clouds, one after the other.
const ROUNDS: usize = 9;

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).own_etcd().audit(Audit::Writes);
    let edge = |name: &str| PlaneSpec::new(name, Parts::Controllers).audit(Audit::Writes);
    let bed = Bed::start(EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name))))
        .await?;
    // What earlier logical clouds leave on the hub is collected at once, and not in the minute of rest.
    let operator = Operator::start_in(&bed, program, &[("EMCO_UNREFERENCED_SECONDS", "1")]).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed) -> Result<Vec<Entry>> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    let clouds = Clouds::of(bed, EDGES.len()).await?;
    let planes: Vec<&str> = EDGES.into_iter().chain(["hub"]).collect();
    let (mut ready, mut written) = (Vec::new(), None);
    for round in 1..=ROUNDS {
        Marks::now(bed, &planes)?.until_quiet().await?;
        let made = clouds.make(round).await?;
        has(bed, &made, true).await?;
        ready.push(made.took.as_secs_f64());
        if round == ROUNDS {
            Marks::now(bed, &planes)?.until_quiet().await?;
            let marks = Marks::now(bed, &planes)?;
            tokio::time::sleep(REST).await;
            let writes = marks.writes()?;
            println!("in {} s at rest the operator wrote {}", REST.as_secs(), by_resource(&writes));
            written = Some(writes.len());
        }
        let gone = clouds.remove(&made).await?;
        has(bed, &made, false).await?;
        println!(
            "{round} of {ROUNDS}: ready on {} clusters after {:.3} s, gone after {:.3} s",
            EDGES.len(),
            made.took.as_secs_f64(),
            gone.as_secs_f64()
        );
    }
    let none = "nothing was measured";
    let ready = Entry::median("logical_cloud_ready_s_8_clusters", "s", ready, HOW).context(none)?;
    let rest = Entry::one("writes_at_rest_8_clusters", "writes", count(written.context(none)?), HOW);
    Ok(vec![ready.at_most(3.0), rest.at_most(0.0)])
}

/// What the operator says is there, or gone, is so on every cluster.
async fn has(bed: &Bed, made: &Made, there: bool) -> Result<()> {
    let wanted = if there { made.objects() } else { Vec::new() };
    let namespace = made.namespace();
    for edge in EDGES {
        let found = operator::ours(bed, edge, KINDS, there.then_some(namespace.as_str())).await?;
        ensure!(found == wanted, "{edge} has {found:?} instead of {wanted:?}");
    }
    Ok(())
}
