//! In: the operator's program. Out: how soon one more manifest of an application that runs is on the last of eight edges, and how
//! soon an operator that was killed is back at work with 20,000 objects there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Audit, Bed};
use emco_e2e::operator::Operator;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::HOW;
use super::arrivals::Arrivals;
use super::phases::Phases;
use super::quiet::{Marks, by_resource};
use super::sample::count;
use super::stage::{self, EDGES, NAME};
use crate::bench::record::Entry;
use crate::bench::spine::mix;

const OBJECTS: usize = 250;
/// Deployments when the operator is killed: 2,500 objects on each edge.
const DEPLOYMENTS: usize = 10;
const CHANGES: usize = 200;
/// Between two changes: most of what one causes is over.
const EVERY: Duration = Duration::from_millis(500);
const RESTARTS: usize = 7;
const P50: f64 = 0.06;
const P99: f64 = 0.13;
const RESTART: f64 = 0.5;

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
    let planes: Vec<&str> = EDGES.to_vec();
    let name = "mix0";
    let marks = Marks::now(bed, &planes)?;
    deploy(&digs, name, &mut seen).await?;
    marks.until_quiet().await?;
    let first = marks.writes()?;
    println!("the first deployment wrote to the edges {}", by_resource(&first));
    let per_object = count(first.len()) / count(OBJECTS * EDGES.len());

    let mut samples = Vec::new();
    let before = cpu(bed, operator).await?;
    let mut phases = Phases::begin(bed)?;
    for extra in 1..=CHANGES {
        let start = change(&digs, name, extra).await?;
        phases.changed();
        let wanted = format!("{name}-extra-{extra}");
        let last = seen.until(EDGES.len(), |object| object == wanted).await?;
        samples.push(last.saturating_duration_since(start).as_secs_f64());
        tokio::time::sleep_until((start + EVERY).into()).await;
    }

    for ((what, before), (_, after)) in before.into_iter().zip(cpu(bed, operator).await?) {
        let each = after.saturating_sub(before).as_secs_f64() * 1000.0 / count(CHANGES);
        println!("each change took {each:.1} ms of processor time of {what}");
    }

    println!("{CHANGES} changes wrote to the hub {}", by_resource(&phases.hub()?));
    for (what, after) in phases.medians()? {
        println!("{after:.1} ms after a change {what}");
    }

    for number in 1..DEPLOYMENTS {
        deploy(&digs, &format!("mix{number}"), &mut seen).await?;
    }
    Marks::now(bed, &planes)?.until_quiet().await?;
    let mut restarts = Vec::new();
    for restart in 1..=RESTARTS {
        operator.kill().await?;
        let extra = CHANGES + restart;
        change(&digs, name, extra).await?;
        let start = Instant::now();
        operator.restart(bed).await?;
        let wanted = format!("{name}-extra-{extra}");
        let last = seen.until(EDGES.len(), |object| object == wanted).await?;
        restarts.push(last.duration_since(start).as_secs_f64());
        Marks::now(bed, &planes)?.until_quiet().await?;
    }
    println!("back at work after {restarts:.3?} s");

    operator.kill().await?;
    let marks = Marks::now(bed, &planes)?;
    operator.restart(bed).await?;
    marks.until_quiet().await?;
    let again = marks.writes()?;
    println!("a restart without any change wrote to the edges {}", by_resource(&again));

    let none = "nothing was measured";
    Ok(vec![
        Entry::one("edge_writes_per_object", "writes", per_object, HOW),
        Entry::one(
            "edge_writes_per_object_resync",
            "writes",
            count(again.len()) / count(OBJECTS * EDGES.len()),
            HOW,
        )
        .at_most(0.0),
        Entry::median("latency_p50_s", "s", samples.clone(), HOW).context(none)?.at_most(P50),
        Entry::quantile("latency_p99_s", "s", samples, 0.99, HOW).context(none)?.at_most(P99),
        Entry::median("restart_to_applied_s_20000_objects", "s", restarts, HOW)
            .context(none)?
            .at_most(RESTART),
    ])
}

/// Processor time used so far, idle time's work included.
async fn cpu(bed: &Bed, operator: &Operator) -> Result<[(&'static str, Duration); 4]> {
    let hub = bed.hub().usage().await?;
    let of = |program: &str| hub.get(program).map(|usage| usage.cpu).unwrap_or_default();
    let mut edges = Duration::ZERO;
    for edge in EDGES {
        edges += bed.edge(edge).usage().await?.values().map(|usage| usage.cpu).sum::<Duration>();
    }
    Ok([
        ("the hub's API server", of("kube-apiserver")),
        ("its etcd", of("etcd")),
        ("the operator", operator.process().usage()?.cpu),
        ("all edges", edges),
    ])
}

async fn deploy(digs: &Api<DeploymentIntentGroup>, name: &str, seen: &mut Arrivals) -> Result<()> {
    digs.create(&PostParams::default(), &stage::deployment(name, 0)?).await?;
    let prefix = format!("{name}-");
    seen.until(OBJECTS * EDGES.len(), |object| object.starts_with(&prefix)).await.map(drop)
}

/// Adds a manifest. Answers when the hub had accepted that.
async fn change(digs: &Api<DeploymentIntentGroup>, name: &str, extra: usize) -> Result<Instant> {
    let values = json!({"spec": {"overrideValues": [{"app": mix::APP, "values": {"extra": extra}}]}});
    digs.patch(name, &PatchParams::default(), &Patch::Merge(values)).await?;
    Ok(Instant::now())
}
