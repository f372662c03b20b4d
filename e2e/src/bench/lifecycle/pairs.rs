//! Measures the memory of an operator that keeps 20 apps on each of 1,000 clusters.

use std::time::Duration;

use anyhow::Result;
use emco_e2e::bed::Bed;
use emco_e2e::fake_edges;
use emco_e2e::operator::{self, Operator, settled};
use emco_e2e::package::Package;

use super::super::record::Entry;
use super::HOW;

const APPS: usize = 20;
/// Until what was used once is given back.
const REST: Duration = Duration::from_mins(1);
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: \"{{ .Release.Name }}-{{ .Chart.Name }}\"}
data: {chart: {{ .Chart.Name | quote }}}
";

/// On all clusters that are registered for a project, beside what runs there of `charts`.
pub async fn measure(
    bed: &Bed,
    operator: &Operator,
    (project, charts): (&str, &[Package]),
) -> Result<Vec<Entry>> {
    println!("{APPS} apps on each cluster");
    let chart = |number| operator::chart(&format!("app-{number}"), "1.0.0", &[("templates/note.yaml", NOTE)]);
    let apps: Vec<Package> = (0..APPS).map(chart).collect::<Result<_>>()?;
    operator::chart_map(bed, project, "charts", &[&apps, charts].concat()).await?;
    let placement = format!("placement: {{allOf: [{{provider: {}, selector: {{}}}}]}}", fake_edges::PROVIDER);
    bed.hub().kubectl().apply(&operator::deployment(project, "pairs", &apps, &placement)).await?;
    operator::wait(bed, project, "pairs", settled).await?;
    tokio::time::sleep(REST).await;
    let usage = operator.process().usage()?;
    let mib = |bytes: u64| f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
    Ok(vec![
        Entry::one("operator_rss_mib_20000_pairs", "MiB", mib(usage.rss_bytes), HOW).at_most(120.0),
        Entry::one("operator_peak_rss_mib_20000_pairs", "MiB", mib(usage.peak_rss_bytes), HOW),
    ])
}
