//! Counts false alarms and missed mistakes of what is said about misspelt values, over every chart of the corpus.
//!
//! None of the values that charts are tried with by their own authors may be called misspelt. Of every chart, values that it has are
//! then set under misspelt names.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_helm::{Chart, Compiled, Limits, RenderRequest, Rendered, UnreadValue, merge_values, yaml};
use serde_json::{Map, Value};

use super::corpus::Case;

/// Values of each chart that are set under a misspelt name, one at a time.
const SEEDED: usize = 4;
/// Shorter names are not misspelt.
const SHORTEST: usize = 4;
/// The least share of misspelt names that must be found, in percent.
const LEAST: usize = 60;
/// With fewer misspelt names their share says nothing.
const MEANINGFUL: usize = 50;
/// Mistakes of the authors in the values that they try their charts with: no template reads them, and none ever does.
const KNOWN: [(&str, &str); 7] = [
    ("argo-argo-events", "singleNamespace"),
    // The template reads `hostname`.
    ("argo-argocd-image-updater", "ingress.hosts"),
    // It is below `metricsProvider`.
    ("dd-datadog", "clusterAgent.wpaController"),
    // It is `enabled`.
    ("kyverno-kyverno", "webhooksCleanup.enable"),
    // It went below `admissionController`.
    ("kyverno-kyverno", "networkPolicy"),
    // The template reads `maxUnavailable` only.
    ("prom-prometheus-postgres-exporter", "podDisruptionBudget.minAvailable"),
    ("prom-prometheus-postgres-exporter", "serviceMonitor.jobLabel"),
];

/// What came of all charts.
#[derive(Default)]
struct Total {
    charts: usize,
    files: usize,
    /// Of [`KNOWN`], by file.
    known: usize,
    alarms: usize,
    seeded: usize,
    /// Of them, those that are not found in a table that a template read as a whole: it may name anything.
    whole: usize,
    found: usize,
    named: usize,
}

/// Tries all of them; an error where a chart's own values are called misspelt.
pub fn check(cases: &[Case]) -> Result<()> {
    let mut total = Total::default();
    for case in cases {
        try_case(case, &mut total).with_context(|| case.name.clone())?;
    }
    let Total { charts, files, known, alarms, seeded, whole, found, named } = total;
    let share = found * 100 / seeded.max(1);
    println!(
        "{charts} charts with {files} files of values: {known} known mistakes found, {alarms} others called misspelt"
    );
    println!(
        "of {seeded} misspelt values {found} found ({share} %), {named} with the name that was meant; of the others {whole} in tables \
         that are read as a whole"
    );
    ensure!(alarms == 0, "{alarms} values of the charts' own are called misspelt");
    ensure!(
        seeded < MEANINGFUL || share >= LEAST,
        "{share} % of misspelt values are found, less than {LEAST} %"
    );
    Ok(())
}

fn try_case(case: &Case, total: &mut Total) -> Result<()> {
    let Ok(chart) = Chart::load_path(&case.chart, &Limits::default()) else { return Ok(()) };
    let defaults = chart.values();
    let Ok(compiled) = Compiled::new(chart) else { return Ok(()) };
    let needed = case.values.as_deref().map_or_else(|| Ok(Value::Object(Map::new())), read)?;
    total.charts += 1;
    for file in case.files() {
        let mut values = needed.clone();
        merge_values(&mut values, read(&file)?);
        // One that a chart refuses says nothing.
        let Ok(rendered) = render(&compiled, values) else { continue };
        total.files += 1;
        for UnreadValue { path, similar } in rendered.unread {
            if KNOWN.contains(&(case.name.as_str(), path.join(".").as_str())) {
                total.known += 1;
                continue;
            }
            total.alarms += 1;
            println!(
                "FAILED  {}: {}: {path:?} is called misspelt for {similar:?}",
                case.name,
                file.display()
            );
        }
    }
    let mut all = defaults;
    merge_values(&mut all, needed.clone());
    let mut leaves = Vec::new();
    collect(&all, &mut Vec::new(), &mut leaves);
    let step = leaves.len() / SEEDED + 1;
    for (path, value) in leaves.iter().skip(step / 2).step_by(step) {
        let Some((misspelt, values)) = seeded(path, value, &needed) else { continue };
        let Ok(rendered) = render(&compiled, values) else { continue };
        total.seeded += 1;
        let known = rendered.unread.iter().find(|unread| misspelt.starts_with(&unread.path));
        total.found += usize::from(known.is_some());
        total.named += usize::from(known.is_some_and(|unread| unread.similar.as_deref() == Some(path)));
        let whole = (0..misspelt.len())
            .find(|length| misspelt.get(..*length).is_some_and(|path| rendered.reads.values.contains(path)));
        total.whole += usize::from(known.is_none() && whole.is_some());
        if known.is_none() && std::env::var_os("EMCO_MISSPELT").is_some() {
            println!("missed  {}: {} {whole:?}", case.name, misspelt.join("."));
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Value> {
    let text = std::fs::read(file).with_context(|| file.display().to_string())?;
    let values = yaml::to_json(text.as_slice()).map_err(|error| anyhow!("{}: {error}", file.display()))?;
    Ok(if values.is_null() { Value::Object(Map::new()) } else { values })
}

fn render(compiled: &Compiled, values: Value) -> Result<Rendered, emco_helm::RenderError> {
    compiled.render(&RenderRequest { values, skip_schema: true, ..RenderRequest::default() })
}

/// Values that are no tables, by path.
fn collect(value: &Value, path: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, Value)>) {
    let Value::Object(map) = value else { return };
    for (key, value) in map {
        path.push(key.clone());
        match value {
            Value::Null => {}
            Value::Object(inner) if !inner.is_empty() => collect(value, path, leaves),
            _ if key.len() >= SHORTEST => leaves.push((path.clone(), value.clone())),
            _ => {}
        }
        path.pop();
    }
}

/// The value under a name of which two letters changed places; `None` where that name says the same.
fn seeded(path: &[String], value: &Value, needed: &Value) -> Option<(Vec<String>, Value)> {
    let (name, above) = path.split_last()?;
    let mut letters: Vec<char> = name.chars().collect();
    let middle = letters.len() / 2;
    letters.swap(middle - 1, middle);
    let misspelt: String = letters.into_iter().collect();
    if misspelt == *name {
        return None;
    }
    let path: Vec<String> = above.iter().cloned().chain([misspelt]).collect();
    let wrap = |value: Value, name: &String| Value::Object(Map::from_iter([(name.clone(), value)]));
    let mut values = needed.clone();
    merge_values(&mut values, path.iter().rev().fold(value.clone(), wrap));
    Some((path, values))
}
