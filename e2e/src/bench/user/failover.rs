//! Ends the leader, in order and by force: how soon what is edited then is on the edges by the hand of the standby.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_e2e::operator::Operator;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::HOW;
use super::log::LogMark;
use super::stage::{EDGES, Stage, since};
use crate::bench::record::Entry;

/// Orderly ends, and then kills.
const ORDERLY: usize = 3;
const KILLS: usize = 7;
/// For a takeover: far beyond the goal, so that a miss is a number.
const PATIENCE: Duration = Duration::from_mins(2);
/// More in each round, so that the kills spread over the 2 s between two renewals.
const STEP: Duration = Duration::from_millis(300);

/// Measures with a second process beside the stage's.
pub async fn measure(stage: &mut Stage) -> Result<Vec<Entry>> {
    let standby = Operator::standby(&stage.bed, &stage.program, "standby").await?;
    LogMark::beginning(standby.process()).until("standing by").await?;
    let mut replicas = [None, Some(standby)];
    let (mut handovers, mut failovers) = (Vec::new(), Vec::new());
    let mut pause = Duration::ZERO;
    for round in 0..ORDERLY + KILLS {
        tokio::time::sleep(pause).await;
        pause += STEP;
        let leader = replicas[round % 2].as_ref().unwrap_or(&stage.operator);
        let start = Instant::now();
        if round < ORDERLY {
            leader.process().terminate().await?;
        } else {
            leader.kill().await?;
        }
        let version = format!("failover {round}");
        let generation = stage.edit(&json!({"version": version})).await?;
        for edge in EDGES {
            let maps = stage.bed.edge(edge).api::<ConfigMap>("shop").await?;
            wait_for_object(maps, "shop-version", PATIENCE, |map| {
                map.data.as_ref().and_then(|data| data.get("version")) == Some(&version)
            })
            .await?;
        }
        let samples = if round < ORDERLY { &mut handovers } else { &mut failovers };
        samples.push(since(start));
        println!("failover {round}: {:.2} s", since(start));
        stage.applied(generation).await?;
        let (bed, again) = (&stage.bed, replicas[round % 2].as_mut().unwrap_or(&mut stage.operator));
        let log = LogMark::now(again.process())?;
        again.restart(bed).await?;
        log.until("standing by").await?;
    }
    let median = |name: &str, samples| Entry::median(name, "s", samples, HOW).context("nothing was measured");
    Ok(vec![median("handover_s_p50", handovers)?, median("failover_s_p50", failovers)?.at_most(15.0)])
}
