//! Measures what 2,000 simulated clusters cost the hub and the operator: their registration, a deployment on all of them, one cluster that
//! comes and goes, and a start. A tenth of the published load of `KubeFleet` is measured beside it.

mod flap;
mod placements;
mod stage;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use emco_crds::AppContext;
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::fake_edges::fleet::Fleet;
use emco_e2e::operator::{self, Operator};
use emco_e2e::usage::Usage;

use super::record::Entry;
use super::spine::count;
use super::spine::quiet::{Marks, by_resource};
use stage::{AGAIN, MANY, OBJECTS};

/// What makes this.
const HOW: &str = "make bench-fleet (simulated clusters)";
const PARTS: [&str; 2] = ["many", "placements"];
const CLUSTERS: usize = 2000;
/// Bytes of objects that may be on all simulated clusters.
const ROOM: usize = 1 << 30;
/// MiB that a program of the hub may have.
const HUB_MIB: u32 = 6 << 10;
/// How long all clusters may take to be registered, or to have a deployment.
const PATIENCE: Duration = Duration::from_mins(10);
/// Memory is read, and what happens by itself is measured, after and in this time.
const REST: Duration = Duration::from_mins(1);
/// Of the machine's processors, as much as the simulator may take of a run that says something of the operator.
const SHARE: f64 = 0.4;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures on beds of their own, one after the other; only one part if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    if let Some(only) = only.filter(|only| !PARTS.contains(only)) {
        bail!("there is no part {only}: they are {}", PARTS.join(", "));
    }
    println!("all clusters are simulated");
    let mut entries = Vec::new();
    for part in PARTS.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        let begun = (Instant::now(), Usage::of(std::process::id())?.cpu);
        let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::All).memory_mib(HUB_MIB);
        let bed = Bed::start(BedSpec::default().with(hub)).await?;
        let mut operator = Operator::start(&bed, program).await?;
        let measured = match part {
            "many" => Box::pin(many(&bed, &mut operator)).await,
            _ => Box::pin(placements::measure(&bed, &operator)).await,
        };
        drop(operator);
        bed.end().await?;
        entries.extend(measured?);
        simulated(begun)?;
    }
    Ok(entries)
}

/// Says how much of the machine the simulator took: beyond [`SHARE`], times say more of it than of the operator.
fn simulated((begun, before): (Instant, Duration)) -> Result<()> {
    let processors = std::thread::available_parallelism().context("processors cannot be counted")?.get();
    let used = Usage::of(std::process::id())?.cpu.saturating_sub(before).as_secs_f64();
    let share = used / (begun.elapsed().as_secs_f64() * count(processors));
    let too_much = if share > SHARE { ": too much, times are not the operator's" } else { "" };
    println!("the simulator used {used:.1} s of processors, {:.0} % of the machine{too_much}", share * 100.0);
    Ok(())
}

async fn many(bed: &Bed, operator: &mut Operator) -> Result<Vec<Entry>> {
    let fleet = Fleet::start(CLUSTERS, 0, ROOM)?;
    stage::project(bed).await?;
    let mut entries = registered(bed, &fleet).await?;
    entries.push(at_rest("rss_mib_registered", operator).await?);
    entries.extend(deployed(bed, &fleet, MANY).await?);
    entries.extend(deployed(bed, &fleet, AGAIN).await?);
    entries.push(at_rest("rss_mib_deployed_twice", operator).await?);
    stage::small_ones(bed).await?;
    Marks::now(bed, &["hub"])?.until_quiet().await?;
    entries.push(at_rest("rss_mib_at_rest", operator).await?);
    entries.push(flap::measure(bed, operator, &fleet).await?);
    entries.extend(started(bed, operator).await?);
    Ok(entries)
}

/// What the operator asked the hub, its pulse and open watches apart.
fn requests(events: &[AuditEvent]) -> usize {
    let is_its = |event: &&AuditEvent| event.user == "emco" && event.verb != "watch" && !event.is_lease();
    events.iter().filter(is_its).count()
}

async fn registered(bed: &Bed, fleet: &Fleet) -> Result<Vec<Entry>> {
    let (mark, begun) = (bed.hub().audit_mark()?, Instant::now());
    fleet.register(bed, MANY).await?;
    fleet.reached(bed, PATIENCE).await?;
    let took = begun.elapsed().as_secs_f64();
    Marks::now(bed, &["hub"])?.until_quiet().await?;
    let asked = requests(&bed.hub().audit_since(mark)?);
    println!("{CLUSTERS} clusters are registered after {took:.1} s, with {asked} requests to the hub");
    let each = count(asked) / count(CLUSTERS);
    Ok(vec![
        Entry::one("register_2000_s", "s", took, HOW).at_most(80.0),
        Entry::one("hub_requests_per_registration", "requests", each, HOW).at_most(10.0),
    ])
}

/// The first deployment on a cluster has a write of its own there: that the cluster is in use. So writes are measured with the second one, too.
async fn deployed(bed: &Bed, fleet: &Fleet, name: &str) -> Result<Vec<Entry>> {
    let (marks, begun) = (Marks::now(bed, &["hub"])?, Instant::now());
    let before = fleet.objects(MANY);
    stage::everywhere(bed, name, "1").await?;
    operator::deployed_within(bed, MANY, name, 1, PATIENCE).await?;
    let took = begun.elapsed().as_secs_f64();
    marks.until_quiet().await?;
    let writes: Vec<AuditEvent> =
        marks.writes()?.into_iter().filter(|write| write.resource != "events").collect();
    println!("{OBJECTS} objects are on {CLUSTERS} clusters after {took:.1} s: {}", by_resource(&writes));
    let lacks = |(before, now): &(usize, usize)| *now != before + OBJECTS;
    let lacking = before.into_iter().zip(fleet.objects(MANY)).filter(lacks).count();
    ensure!(lacking == 0, "{lacking} clusters do not have {OBJECTS} objects more");
    let each = count(writes.len()) / count(OBJECTS * CLUSTERS);
    Ok(if name == MANY {
        vec![
            Entry::one("deploy_2000_s", "s", took, HOW),
            Entry::one("first_hub_writes_per_object", "writes", each, HOW),
        ]
    } else {
        vec![
            Entry::one("deploy_again_2000_s", "s", took, HOW),
            Entry::one("hub_writes_per_object", "writes", each, HOW).at_most(0.02),
        ]
    })
}

/// Resident memory once what was used meanwhile is given back.
async fn at_rest(name: &str, operator: &Operator) -> Result<Entry> {
    tokio::time::sleep(REST).await;
    Ok(Entry::one(name, "MiB", mib(operator.process().usage()?.rss_bytes), HOW))
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below what a float holds exactly")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// From the start of a process until it stored a change that was made before, and the most memory that it had until that was everywhere.
async fn started(bed: &Bed, operator: &mut Operator) -> Result<Vec<Entry>> {
    // As a new Pod finds it: one that was killed leaves a Lease, which others wait for.
    operator.process().terminate().await?;
    stage::everywhere(bed, MANY, "2").await?;
    let begun = Instant::now();
    operator.restart(bed).await?;
    operator::wait::<AppContext, _>(bed, MANY, &format!("dig-{MANY}-2"), |_| Ok(())).await?;
    let took = begun.elapsed().as_secs_f64();
    operator::deployed_within(bed, MANY, MANY, 2, PATIENCE).await?;
    let peak = mib(operator.process().usage()?.peak_rss_bytes);
    Ok(vec![
        Entry::one("start_2000_to_first_plan_s", "s", took, HOW).at_most(5.0),
        Entry::one("rss_mib_peak_of_start", "MiB", peak, HOW),
    ])
}
