//! Measures how fast 200 objects get to eight edges, against a client that does nothing but apply them, and the processor
//! time that the hub's side needs for it.
//!
//! Runs of both come in adjacent pairs, in alternating order: the machine's own moods spread more than the two differ.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Audit, Bed};
use emco_e2e::operator::{self, Operator, SOON};
use emco_e2e::wait::wait_until_gone;
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use super::arrivals::Arrivals;
use super::bare::Bare;
use super::sample::count;
use super::stage::{self, EDGES, NAME};
use super::{HOW, mix};
use crate::bench::record::Entry;

const OBJECTS: usize = 200;
const PAIRS: usize = 16;
/// What is left of the operator's speed at least.
const RATIO: f64 = 0.9;
/// Milliseconds of processor time: hub, its etcd, operator.
const CPU: f64 = 0.6;

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let (bed, operator) = stage::start(program, OBJECTS, Audit::Off).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed, &operator))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    let bare = Bare::new(bed, &EDGES).await?;
    let mut seen = Arrivals::watch(bed, &EDGES).await?;
    let digs: Api<DeploymentIntentGroup> = bed.hub().api(NAME).await?;
    let (mut ratios, mut costs, mut speeds, mut bare_speeds) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let all = count(OBJECTS * EDGES.len());
    // The first of either warms up: discovery, connections, caches.
    for pair in 0..=PAIRS {
        let (mut direct, mut ours) = (0.0, (0.0, 0.0));
        for turn in 0..2 {
            if (pair + turn) % 2 == 0 {
                let prefix = format!("bare{pair}");
                let objects: Vec<_> = (0..OBJECTS).map(|number| mix::object(&prefix, number)).collect();
                direct = bare.apply(bed, &EDGES, &objects, &mut seen).await?;
                bare.remove().await?;
            } else {
                ours = once(bed, operator, &digs, &format!("{}{pair}", mix::APP), &mut seen).await?;
            }
        }
        println!("pair {pair}: {:.0} objects/s directly, {:.0} by the operator", all / direct, all / ours.0);
        if pair > 0 {
            ratios.push(direct / ours.0);
            costs.push(ours.1 / all);
            speeds.push(all / ours.0);
            bare_speeds.push(all / direct);
        }
    }
    let none = "no pair was measured";
    let reference = Entry::median("", "", bare_speeds, HOW).context(none)?.value;
    let mut speed = Entry::median("objects_per_s", "objects/s", speeds, HOW).context(none)?;
    speed.reference = Some(reference);
    Ok(vec![
        Entry::median("throughput_ratio_vs_direct_apply", "times", ratios, HOW)
            .context(none)?
            .at_least(RATIO),
        speed,
        Entry::median("hub_cpu_ms_per_object", "ms", costs, HOW).context(none)?.at_most(CPU),
    ])
}

/// Deploys and removes. Answers the seconds until the last object had come, and the milliseconds of processor time until the hub
/// says so too.
async fn once(
    bed: &Bed,
    operator: &Operator,
    digs: &Api<DeploymentIntentGroup>,
    name: &str,
    seen: &mut Arrivals,
) -> Result<(f64, f64)> {
    let before = cpu(bed, operator).await?;
    let prefix = format!("{name}-");
    let start = Instant::now();
    digs.create(&PostParams::default(), &stage::deployment(name, 0)?).await?;
    let last = seen.until(OBJECTS * EDGES.len(), |object| object.starts_with(&prefix)).await?;
    stage::applied(bed, name).await?;
    let used = cpu(bed, operator).await?.saturating_sub(before);
    digs.delete(name, &DeleteParams::default()).await?;
    wait_until_gone(digs.clone(), name, SOON).await?;
    Ok((last.duration_since(start).as_secs_f64(), used.as_secs_f64() * 1000.0))
}

/// Of everything on the hub's side.
async fn cpu(bed: &Bed, operator: &Operator) -> Result<Duration> {
    let hub = bed.hub().usage().await?;
    let of =
        |program: &str| hub.get(program).map(|usage| usage.cpu).with_context(|| format!("no {program} runs"));
    Ok(of("kube-apiserver")? + of("etcd")? + operator.process().usage()?.cpu)
}
