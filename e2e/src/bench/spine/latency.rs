//! Measures how soon one more manifest of a running application is on the last of eight edges, and what is written for that.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Audit, Bed};
use emco_e2e::operator::Operator;
use kube::Api;

use super::HOW;
use super::arrivals::Arrivals;
use super::phases::Phases;
use super::quiet::{Marks, by_resource};
use super::sample::count;
use super::stage::{self, EDGES, NAME};
use crate::bench::record::Entry;

/// Where edges note whose they are, and how far their hub had come.
const NOTES: &str = "emco-system";
const OBJECTS: usize = 250;
const CHANGES: usize = 200;
/// Between two changes: most of what one causes is over.
const EVERY: Duration = Duration::from_millis(500);
/// To an edge, for an object that is new there.
const WRITES: f64 = 1.0;
const P50: f64 = 0.06;
const P99: f64 = 0.13;

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let (bed, operator) = stage::start(program, OBJECTS, Audit::Writes).await?;
    let entries = Box::pin(on(&bed, &operator)).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    let digs: Api<DeploymentIntentGroup> = bed.hub().api(NAME).await?;
    let mut seen = Arrivals::watch(bed, &EDGES).await?;
    let name = "mix0";
    let marks = Marks::now(bed, &EDGES)?;
    stage::deploy(&digs, name, OBJECTS, &mut seen).await?;
    marks.until_quiet().await?;
    let mut first = marks.writes()?;
    // How far the hub has come is noted on each edge once in ten seconds, however many objects that is for.
    first.retain(|write| write.namespace != NOTES);
    println!("the first deployment wrote to the edges {}", by_resource(&first));
    let per_object = count(first.len()) / count(OBJECTS * EDGES.len());

    let mut samples = Vec::new();
    let before = stage::cpu(bed, Some(operator.process())).await?;
    let mut phases = Phases::begin(bed)?;
    for extra in 1..=CHANGES {
        let start = stage::change(&digs, name, extra).await?;
        phases.changed();
        let wanted = format!("{name}-extra-{extra}");
        let last = seen.until(EDGES.len(), |object| object == wanted).await?;
        samples.push(last.saturating_duration_since(start).as_secs_f64());
        tokio::time::sleep_until((start + EVERY).into()).await;
    }

    let after = stage::cpu(bed, Some(operator.process())).await?;
    for ((what, before), (_, after)) in before.into_iter().zip(after) {
        let each = after.saturating_sub(before).as_secs_f64() * 1000.0 / count(CHANGES);
        println!("each change took {each:.1} ms of processor time of {what}");
    }

    println!("{CHANGES} changes wrote to the hub {}", by_resource(&phases.hub()?));
    for (what, after) in phases.medians()? {
        println!("{after:.1} ms after a change {what}");
    }

    let none = "nothing was measured";
    Ok(vec![
        Entry::one("edge_writes_per_object", "writes", per_object, HOW).at_most(WRITES),
        Entry::median("latency_p50_s", "s", samples.clone(), HOW).context(none)?.at_most(P50),
        Entry::quantile("latency_p99_s", "s", samples, 0.99, HOW).context(none)?.at_most(P99),
    ])
}
