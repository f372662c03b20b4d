//! Measures the dashboard on a hub with many clusters and deployments, which are stored and never run.

mod fleet;
mod served;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::install_kinds;
use emco_e2e::usage::Usage;
use tokio::time::sleep;

use super::record::Entry;
use fleet::{CLUSTERS, DEPLOYMENTS, PROJECTS};
use served::Served;

const HOW: &str = "make bench-dashboard";
/// How often each page is asked for.
const ROUNDS: usize = 20;
const CHANGES: usize = 10;
/// The server sends at most two pages a second: between two changes is more.
const PAUSE: Duration = Duration::from_millis(1500);

/// Measures with the program beside that of the operator.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let emco = program.with_file_name("kubectl-emco");
    ensure!(emco.is_file(), "there is no {}: build it first (`make build`)", emco.display());
    let bed = Bed::start(BedSpec::bare_hub()).await?;
    install_kinds(&bed).await?;
    let start = Instant::now();
    fleet::make(&bed).await?;
    println!(
        "{CLUSTERS} clusters and {DEPLOYMENTS} deployments made in {:.0} s; load {}",
        start.elapsed().as_secs_f64(),
        super::user::load()
    );
    let start = Instant::now();
    let served = Served::start(&bed, &emco).await?;
    let first = served.page("").await?;
    let first_s = start.elapsed().as_secs_f64();
    let (requests, bytes) = served.transferred(&first).await?;
    let mut entries = vec![
        Entry::one("first_page_from_start_s", "s", first_s, HOW),
        Entry::one("first_page_requests", "requests", count(requests), HOW).at_most(3.0),
        Entry::one("first_page_kib", "KiB", count(bytes) / 1024.0, HOW).at_most(60.0),
    ];
    let deployment = format!("deployments/{}/{}", fleet::project(0), fleet::deployment(0));
    for (name, page) in [
        ("overview_s", String::new()),
        ("second_page_s", "?page=2".to_owned()),
        ("filtered_page_s", "?state=NotReady".to_owned()),
        ("clusters_s", "clusters?page=100".to_owned()),
        ("deployment_s", deployment.clone()),
    ] {
        let mut samples = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            served.page(&page).await?;
            samples.push(start.elapsed().as_secs_f64());
        }
        let worst = samples.iter().copied().fold(0.0, f64::max);
        entries.push(Entry { samples, ..Entry::one(name, "s", worst, HOW) }.at_most(0.3));
    }
    entries.push(changes(&bed, &served, &deployment).await?);
    let usage = Usage::of(served.pid())?;
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let mebibytes = usage.peak_rss_bytes as f64 / (1024.0 * 1024.0);
    entries.push(Entry::one("peak_memory_mib", "MiB", mebibytes, HOW));
    drop(served);
    bed.end().await?;
    Ok(entries)
}

/// From a change that the hub has taken to the page with it.
async fn changes(bed: &Bed, served: &Served, deployment: &str) -> Result<Entry> {
    let page = served.page(deployment).await?;
    let mut stream = served.stream(&page, deployment).await?;
    let mut samples = Vec::new();
    for number in 0..CHANGES {
        sleep(PAUSE).await;
        let message = format!("change number {number} of all");
        let start = Instant::now();
        fleet::say(bed, &fleet::project(0), &fleet::deployment(0), &message).await?;
        stream.until(&message).await?;
        samples.push(start.elapsed().as_secs_f64());
    }
    let worst = samples.iter().copied().fold(0.0, f64::max);
    Ok(Entry { samples, ..Entry::one("change_to_page_s", "s", worst, HOW) }.at_most(1.0))
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// Half of the projects have deployments that are not ready.
fn is_ready(project: usize) -> bool {
    project < PROJECTS / 2
}

/// What stands between two texts; an error says what is missing.
fn found<'a>(text: &'a str, before: &str, after: &str, what: &str) -> Result<&'a str> {
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(after)).map(|(found, _)| found);
    found.with_context(|| format!("the page has no {what}"))
}
