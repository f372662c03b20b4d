//! Measures how fast real charts are rendered: a table, and `bench/helm.json` in the target folder.
//!
//! Helm itself runs in the same run and in turns with ours, so that a busy machine slows both.
mod clusters;
mod entry;
mod real;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use emco_helm::{Chart, Compiled, Limits, RenderRequest};
use entry::Entry;
use serde_json::{Value, json};

const HOW: &str = "make bench-helm CHARTS=DIR";
const TURNS: u32 = 15;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, mode, chart] = args.as_slice()
        && mode == clusters::MODE
    {
        return clusters::measure(Path::new(chart));
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("there is no target folder")?;
    let folder = target.join("bench");
    let charts = real::charts(&folder.join("charts"))?;
    let helm = real::helm()?;
    let mut entries = one_chart(&charts.join(real::LARGE), &helm)?;
    entries.extend(clusters::run(&charts.join(real::INGRESS))?);
    let file = folder.join("helm.json");
    entry::write(&file, &entries)?;
    entry::print(&entries);
    println!("written to {}", file.display());
    Ok(())
}

/// A large chart: rendered here again and again, rendered here for the first time, and by both programs.
fn one_chart(chart: &Path, helm: &Path) -> Result<Vec<Entry>> {
    let compiled = load(chart)?;
    let [mut renders, mut firsts, mut execs, mut helms] = [const { Vec::new() }; 4];
    let ours = Path::new(env!("CARGO_BIN_EXE_emco-helm"));
    for turn in 0..TURNS {
        helms.push(exec(helm, chart)?);
        execs.push(exec(ours, chart)?);
        firsts.push(milliseconds(|| render(&load(chart)?, &Value::Null))?);
        renders
            .push(milliseconds(|| render(&compiled, &json!({"commonLabels": {"turn": turn.to_string()}})))?);
    }
    let name = |what: &str| format!("kube_prometheus_stack_{what}");
    let render = Entry::median(&name("render_ms"), "ms", renders)?;
    let helm = entry::median(&helms)?;
    let faster = Entry::one(&name("speedup_vs_helm"), "times", helm / render.value);
    let faster = Entry { samples: render.samples.iter().map(|ms| helm / ms).collect(), ..faster };
    Ok(vec![
        render.at_most(60.0).beside(helm),
        faster,
        Entry::median(&name("exec_ms"), "ms", execs)?.beside(helm),
        Entry::median("first_render_ms", "ms", firsts)?.beside(helm),
    ])
}

fn load(chart: &Path) -> Result<Compiled> {
    let loaded = Chart::load_path(chart, &Limits::default());
    let loaded = loaded.with_context(|| format!("cannot load the chart {}", chart.display()))?;
    Ok(Compiled::new(loaded)?)
}

fn render(compiled: &Compiled, values: &Value) -> Result<()> {
    let rendered = compiled.render(&RenderRequest { values: values.clone(), ..RenderRequest::default() })?;
    ensure!(rendered.manifests.len() > 10, "{} rendered next to nothing", compiled.chart().name());
    Ok(())
}

/// Milliseconds of `program template` as a process of its own.
fn exec(program: &Path, chart: &Path) -> Result<f64> {
    milliseconds(|| {
        let mut command = Command::new(program);
        command.args(["template", "myrel"]).arg(chart).args(["--namespace", "myns", "--include-crds"]);
        // A Helm that is built from its module knows no version of Kubernetes by itself.
        command.args(["--kube-version", "1.32.0"]);
        let out = command.output().with_context(|| format!("cannot start {}", program.display()))?;
        let said = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success() && !out.stdout.is_empty(), "{} failed: {said}", program.display());
        Ok(())
    })
}

fn milliseconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
