//! Measures how soon a deployment is ready, what it costs the hub, what the operator needs, whether it writes when nothing
//! happens, how soon a change and a restart are everywhere, and how far from a bare client it is.

mod arrivals;
mod bare;
mod fleet;
mod latency;
mod mix;
mod phases;
pub(super) mod quiet;
mod restart;
mod sample;
mod stage;
mod throughput;

use std::path::Path;

use anyhow::{Result, bail};

use super::record::Entry;

pub(super) use sample::count;

/// What makes this.
const HOW: &str = "make bench-spine";

/// Measures on beds of their own, one after the other; only one part if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    let parts = ["sample", "fleet", "latency", "restart", "throughput"];
    if let Some(only) = only.filter(|only| !parts.contains(only)) {
        bail!("there is no part {only}: they are {}", parts.join(", "));
    }
    let mut entries = Vec::new();
    for part in parts.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        entries.extend(match part {
            "sample" => sample::measure(program).await?,
            "fleet" => fleet::measure(program).await?,
            "latency" => Box::pin(latency::measure(program)).await?,
            "restart" => Box::pin(restart::measure(program)).await?,
            _ => Box::pin(throughput::measure(program)).await?,
        });
    }
    Ok(entries)
}
