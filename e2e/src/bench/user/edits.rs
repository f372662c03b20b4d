//! Edits the deployment: how soon it is ready, a refusal visible and what is unready named, and what is logged for that.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_e2e::operator::refused;
use serde_json::json;

use super::HOW;
use super::log::LogMark;
use super::stage::{EDGES, PAUSE, Stage, since};
use crate::bench::record::Entry;
use crate::bench::spine::count;

const EDITS: usize = 30;
const REFUSALS: usize = 20;
const UNREADY: usize = 8;
/// At rest, and before that.
const REST: Duration = Duration::from_mins(1);
const CALM: Duration = Duration::from_secs(5);

/// Measures on the stage.
pub async fn measure(stage: &Stage) -> Result<Vec<Entry>> {
    let log = LogMark::now(stage.operator.process())?;
    let ready = ready(stage).await?;
    let lines = log.since()?;
    println!("one of {EDITS} edits logged:");
    for line in lines.iter().skip(lines.len() - lines.len().div_ceil(EDITS)) {
        println!("  {line}");
    }
    let per_revision = count(lines.len()) / count(EDITS);
    let refusal = refusals(stage).await?;
    let named = unready(stage).await?;
    tokio::time::sleep(CALM).await;
    let log = LogMark::now(stage.operator.process())?;
    tokio::time::sleep(REST).await;
    let rest = log.since()?;
    for line in &rest {
        println!("logged at rest: {line}");
    }
    let entry = |name: &str, samples: Vec<f64>, part: f64| {
        Entry::quantile(name, "s", samples, part, HOW).context("nothing was measured")
    };
    Ok(vec![
        entry("edit_to_ready_s_p50", ready, 0.5)?.at_most(0.6),
        entry("refusal_visible_s_p99", refusal, 0.99)?.at_most(1.0),
        entry("unready_named_s_p99", named, 0.99)?.at_most(5.0),
        Entry::one("log_lines_per_revision", "lines", per_revision, HOW).at_most(12.0),
        Entry::one("log_lines_per_minute_at_rest", "lines", count(rest.len()), HOW).at_most(0.0),
    ])
}

/// Seconds from an edit until its Pods are ready on both edges.
async fn ready(stage: &Stage) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    for number in 1..=EDITS {
        let (start, version) = (Instant::now(), number.to_string());
        let generation = stage.edit(&json!({"version": version})).await?;
        stage.applied(generation).await?;
        samples.push(since(start));
        stage.check(&version).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(samples)
}

/// Seconds from an edit that the chart's schema refuses until `Ready` is False for it.
async fn refusals(stage: &Stage) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    for number in 1..=REFUSALS {
        let (start, wrong) = (Instant::now(), format!("two-{number}"));
        let generation = stage.edit(&json!({"replicaCount": wrong})).await?;
        let said =
            stage.says(generation, |dig| refused(dig.status.as_ref(), types::READY, "SchemaViolation"));
        said.await?;
        samples.push(since(start));
        let generation = stage.edit(&json!({"version": format!("after {wrong}")})).await?;
        stage.applied(generation).await?;
    }
    Ok(samples)
}

/// Seconds from an edit whose Pods fit no node until the status names workload and cause for both edges.
async fn unready(stage: &Stage) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    for number in 1..=UNREADY {
        let start = Instant::now();
        let generation = stage.edit(&json!({"disk": format!("disk-{number}")})).await?;
        let named = stage.says(generation, |dig| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            let named = |edge: &str| {
                failing.iter().any(|one| {
                    one.cluster.ends_with(edge)
                        && one.message.contains("Deployment/shop/shop-web")
                        && one.message.contains("Unschedulable")
                })
            };
            if EDGES.iter().all(|edge| named(edge)) { Ok(()) } else { Err(format!("{failing:?}")) }
        });
        named.await?;
        samples.push(since(start));
        let generation = stage.edit(&json!({"version": format!("mended {number}")})).await?;
        stage.applied(generation).await?;
    }
    Ok(samples)
}
