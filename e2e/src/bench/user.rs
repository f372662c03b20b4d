//! Measures what people wait for: a change, a refusal, a cause, a cluster that returns, another leader; and what the one on call reads,
//! log and memory.

mod burst;
mod chart;
mod clusters;
mod edits;
mod failover;
mod log;
mod oncall;
mod stage;

use std::path::Path;

use anyhow::{Result, bail};

use super::record::Entry;

/// What makes this.
const HOW: &str = "make bench-user";
/// In the order of their runs: the burst begins with an operator that did little before.
const PARTS: [&str; 5] = ["burst", "edits", "oncall", "clusters", "failover"];

/// Measures on one bed, with one operator per part; only one part if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    if let Some(only) = only.filter(|only| !PARTS.contains(only)) {
        bail!("there is no part {only}: they are {}", PARTS.join(", "));
    }
    let mut stage = stage::Stage::start(program).await?;
    let mut entries = Vec::new();
    for part in PARTS.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        println!("{part}: load {}", load());
        stage.afresh().await?;
        entries.extend(match part {
            "burst" => Box::pin(burst::measure(&stage)).await?,
            "edits" => Box::pin(edits::measure(&stage)).await?,
            "oncall" => Box::pin(oncall::measure(&stage)).await?,
            "clusters" => Box::pin(clusters::measure(&stage)).await?,
            _ => Box::pin(failover::measure(&mut stage)).await?,
        });
        println!("{part}: load {}", load());
    }
    stage.end().await?;
    Ok(entries)
}

/// The load of the machine within the last minute, for who compares two runs.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}
