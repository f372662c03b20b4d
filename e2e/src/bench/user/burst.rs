//! Lets a dozen large deployments come and go: how much memory the operator keeps a minute later.

use std::time::{Duration, Instant};

use anyhow::Result;
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_e2e::operator::{self, settled};
use emco_e2e::usage::Usage;
use emco_e2e::wait::{wait_for, wait_for_some, wait_until_gone};
use kube::api::DeleteParams;
use kube::runtime::watcher;
use serde_json::json;

use super::HOW;
use super::chart;
use super::stage::{EVERYWHERE, NAME, Stage, since};
use crate::bench::record::Entry;
use crate::bench::spine::count;

const DEPLOYMENTS: usize = 12;
/// For all of them to come, or to go.
const PATIENCE: Duration = Duration::from_mins(8);
/// Edits before the quiet state: what every operator does on its first day.
const WARM: usize = 10;
/// Until memory is looked at: after the edits, and after the burst.
const REST: Duration = Duration::from_mins(1);

/// Measures on the stage.
pub async fn measure(stage: &Stage) -> Result<Vec<Entry>> {
    for number in 0..WARM {
        let generation = stage.edit(&json!({"version": format!("warm {number}")})).await?;
        stage.applied(generation).await?;
    }
    tokio::time::sleep(REST).await;
    let quiet = usage(stage)?;
    println!(
        "burst: {:.1} MB, {:.1} of no file, before they came",
        in_mb(quiet.rss_bytes),
        in_mb(quiet.anonymous_bytes)
    );
    let start = Instant::now();
    come(stage).await?;
    println!("burst: {DEPLOYMENTS} deployments came within {:.1} s", since(start));
    let start = Instant::now();
    go(stage).await?;
    println!("burst: they went within {:.1} s", since(start));
    let mut after = usage(stage)?;
    let gone = Instant::now();
    while gone.elapsed() < REST {
        let (all, anonymous) = (in_mb(after.rss_bytes), in_mb(after.anonymous_bytes));
        println!("burst: {all:.1} MB, {anonymous:.1} of no file, {:.0} s after they went", since(gone));
        tokio::time::sleep(REST / 6).await;
        after = usage(stage)?;
    }
    let ratio = |of: fn(&Usage) -> u64| in_mb(of(&after)) / in_mb(of(&quiet));
    Ok(vec![
        Entry::one("rss_quiet_mb", "MB", in_mb(quiet.rss_bytes), HOW),
        Entry::one("rss_burst_peak_mb", "MB", in_mb(after.peak_rss_bytes), HOW),
        Entry::one("rss_after_burst_mb", "MB", in_mb(after.rss_bytes), HOW),
        Entry::one("rss_after_burst_ratio", "", ratio(|usage| usage.rss_bytes), HOW).at_most(1.5),
        // Without the pages of the program itself, of which one that is not optimized has many.
        Entry::one("heap_after_burst_ratio", "", ratio(|usage| usage.anonymous_bytes), HOW),
    ])
}

fn usage(stage: &Stage) -> Result<Usage> {
    stage.operator.process().usage()
}

fn in_mb(bytes: u64) -> f64 {
    count(usize::try_from(bytes / 1000).unwrap_or(usize::MAX)) / 1000.0
}

fn burst() -> watcher::Config {
    watcher::Config::default().labels("bench=burst")
}

async fn come(stage: &Stage) -> Result<()> {
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": chart::LARGE, "namespace": NAME},
        "spec": {"apps": [{"name": chart::LARGE, "chart": {"configMapRef": {"name": "charts", "key": "large-1.0.0.tgz"}}}]},
    });
    let mut all = format!("{app}\n");
    for number in 0..DEPLOYMENTS {
        all.push_str(&format!(
            "---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: burst-{number}, namespace: {NAME}, labels: {{bench: burst}}}}
spec:
  compositeAppRef: {{name: {}}}
  {EVERYWHERE}
",
            chart::LARGE
        ));
    }
    stage.bed.hub().kubectl().apply(&all).await?;
    let digs = stage.bed.hub().api::<DeploymentIntentGroup>(NAME).await?;
    let all_there = wait_for_some(digs, burst(), PATIENCE, "the burst", |digs| {
        let ready = digs.values().filter(|dig| settled(dig).is_ok()).count();
        let why = digs.values().find_map(|dig| settled(dig).err()).unwrap_or_default();
        if ready == DEPLOYMENTS { Ok(()) } else { Err(format!("{ready} are ready; {why}")) }
    });
    operator::unless_ended(stage.operator.process(), all_there).await
}

async fn go(stage: &Stage) -> Result<()> {
    let digs = stage.bed.hub().api::<DeploymentIntentGroup>(NAME).await?;
    let all = kube::api::ListParams::default().labels("bench=burst");
    digs.delete_collection(&DeleteParams::default(), &all).await?;
    wait_for(digs, PATIENCE, "the end of the burst", |digs| {
        let left = digs.len().saturating_sub(1);
        if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
    })
    .await?;
    let apps = stage.bed.hub().api::<CompositeApp>(NAME).await?;
    apps.delete(chart::LARGE, &DeleteParams::default()).await?;
    wait_until_gone(apps, chart::LARGE, operator::SOON).await
}
