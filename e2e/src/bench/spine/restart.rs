//! Measures how soon a killed operator is back at work with 20,000 objects on eight edges, and that it writes nothing there
//! unless something changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

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

/// Of each deployment on each edge.
const OBJECTS: usize = 250;
/// 2,500 objects on each edge.
const DEPLOYMENTS: usize = 10;
const RESTARTS: usize = 7;
const GOAL: f64 = 0.5;

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let (bed, mut operator) = stage::start(program, OBJECTS, Audit::Writes).await?;
    let entries = Box::pin(on(&bed, &mut operator)).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed, operator: &mut Operator) -> Result<Vec<Entry>> {
    let digs: Api<DeploymentIntentGroup> = bed.hub().api(NAME).await?;
    let mut seen = Arrivals::watch(bed, &EDGES).await?;
    for number in 0..DEPLOYMENTS {
        stage::deploy(&digs, &format!("mix{number}"), OBJECTS, &mut seen).await?;
    }
    Marks::now(bed, &EDGES)?.until_quiet().await?;
    let mut restarts = Vec::new();
    let mut used: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut phases = Phases::begin(bed)?;
    for extra in 1..=RESTARTS {
        operator.kill().await?;
        stage::change(&digs, "mix0", extra).await?;
        let start = Instant::now();
        phases.changed();
        let before = stage::cpu(bed, None).await?;
        operator.restart(bed).await?;
        let wanted = format!("mix0-extra-{extra}");
        let last = seen.until(EDGES.len(), |object| object == wanted).await?;
        restarts.push(last.duration_since(start).as_secs_f64());
        let after = stage::cpu(bed, Some(operator.process())).await?;
        for ((what, before), (_, after)) in before.into_iter().zip(after) {
            used.entry(what).or_default().push(after.saturating_sub(before).as_secs_f64() * 1000.0);
        }
        Marks::now(bed, &EDGES)?.until_quiet().await?;
    }
    println!("back at work after {restarts:.3?} s");
    println!("they wrote to the hub {}", by_resource(&phases.hub()?));
    for (what, after) in phases.medians()? {
        println!("{after:.1} ms after a restart {what}");
    }
    for (what, times) in used {
        println!("until then they took ms of processor time of {what}: {times:.0?}");
    }

    operator.kill().await?;
    let marks = Marks::now(bed, &EDGES)?;
    operator.restart(bed).await?;
    marks.until_quiet().await?;
    let again = marks.writes()?;
    println!("a restart without any change wrote to the edges {}", by_resource(&again));
    let again = count(again.len()) / count(OBJECTS * DEPLOYMENTS * EDGES.len());
    Ok(vec![
        Entry::one("edge_writes_per_object_resync", "writes", again, HOW).at_most(0.0),
        Entry::median("restart_to_applied_s_20000_objects", "s", restarts, HOW)
            .context("nothing was measured")?
            .at_most(GOAL),
    ])
}
