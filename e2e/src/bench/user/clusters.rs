//! Cuts an edge off and lets it answer again: how soon the hub says so, and has done there what was wanted meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::HOW;
use super::stage::{EDGES, Stage, since};
use crate::bench::record::Entry;

/// Half of them silent, half refusing.
const ROUNDS: usize = 6;
/// Away, once that is noticed: looks are as rare as they become for one cluster.
const AWAY: Duration = Duration::from_secs(20);

/// Measures on the stage.
pub async fn measure(stage: &Stage) -> Result<Vec<Entry>> {
    let (mut lost, mut back) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let edge = stage.bed.edge(EDGES[0]);
        let start = Instant::now();
        if round % 2 == 0 {
            edge.refuse().await?;
        } else {
            edge.cut_off().await?;
        }
        stage.reachable(EDGES[0], "False").await?;
        lost.push(since(start));
        let version = format!("while away {round}");
        let generation = stage.edit(&json!({"version": version})).await?;
        tokio::time::sleep(AWAY).await;
        let start = Instant::now();
        edge.restore().await?;
        stage.reachable(EDGES[0], "True").await?;
        stage.applied(generation).await?;
        back.push(since(start));
        stage.check(&version).await?;
    }
    let median = |name: &str, samples| Entry::median(name, "s", samples, HOW).context("nothing was measured");
    Ok(vec![median("cluster_lost_s_p50", lost)?, median("cluster_back_s_p50", back)?.at_most(5.0)])
}
