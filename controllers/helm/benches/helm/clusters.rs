//! Measures time and memory of rendering a chart for a thousand clusters.
//!
//! It is measured in a process of its own, whose peak of memory is that of these renders alone.
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_helm::{Compiled, RenderRequest};
use serde_json::{Value, json};

use super::entry::Entry;

/// The argument that makes this program measure a chart for many clusters.
pub const MODE: &str = "--clusters";
const CLUSTERS: usize = 1000;
const THREADS: usize = 2;
const RUNS: usize = 3;

/// Measures in processes of their own.
pub fn run(chart: &Path) -> Result<Vec<Entry>> {
    let (mut seconds, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let me = std::env::current_exe().context("this program does not know where it is")?;
        let out = Command::new(me).arg(MODE).arg(chart).output().context("cannot start this program")?;
        ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr).trim());
        let (took, peak): (f64, f64) = serde_json::from_slice(&out.stdout)?;
        seconds.push(took);
        peaks.push(peak);
    }
    Ok(vec![
        Entry::median("ingress_nginx_1000_renders_s", "s", seconds)?.at_most(5.0),
        Entry::median("ingress_nginx_1000_renders_peak_mib", "MiB", peaks)?.at_most(200.0),
    ])
}

/// Prints seconds and MiB as a list in JSON.
pub fn measure(chart: &Path) -> Result<()> {
    let start = Instant::now();
    let compiled = super::load(chart)?;
    let next = AtomicUsize::new(0);
    let different = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work(&compiled, &next))).collect();
        let mut all = BTreeSet::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| anyhow!("a thread that rendered ended early"))??);
        }
        Ok::<_, anyhow::Error>(all.len())
    })?;
    let took = start.elapsed().as_secs_f64();
    ensure!(different == CLUSTERS, "{different} different results for {CLUSTERS} different values");
    println!("{}", json!([took, peak_mib()?]));
    Ok(())
}

/// Renders for cluster after cluster; answers a hash of what each got.
fn work(compiled: &Compiled, next: &AtomicUsize) -> Result<BTreeSet<u64>> {
    let mut hashes = BTreeSet::new();
    loop {
        let cluster = next.fetch_add(1, Ordering::Relaxed);
        if cluster >= CLUSTERS {
            return Ok(hashes);
        }
        let rendered =
            compiled.render(&RenderRequest { values: values(cluster), ..RenderRequest::default() })?;
        let mut hash = DefaultHasher::new();
        for document in &rendered.documents {
            document.text.hash(&mut hash);
        }
        hashes.insert(hash.finish());
    }
}

fn values(cluster: usize) -> Value {
    json!({"controller": {
        "replicaCount": cluster % 5 + 1,
        "podLabels": {"cluster": format!("edge-{cluster}")},
        "config": {"worker-connections": (1024 + cluster).to_string()},
        "service": {"annotations": {"pool": format!("pool-{}", cluster % 7)}},
    }})
}

/// The most memory this process has used, from `/proc`.
fn peak_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
    Ok(kib.context("/proc/self/status names no VmHWM")? / 1024.0)
}
