//! A tenth of the load that `KubeFleet` publishes (its test `1000placements`): 100 clusters, and 100 applications on ten of them each, with a
//! ConfigMap of 1 KiB and a Deployment without replicas.

use std::time::Instant;

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::fake_edges::fleet::Fleet;
use emco_e2e::operator::{self, Operator};
use serde_json::{Value, json};

use super::super::record::Entry;
use super::super::spine::count;
use super::super::spine::quiet::{Marks, by_resource};
use super::stage::{apply, composite_app, deployment, roomy};
use super::{HOW, PATIENCE, ROOM, at_rest};

const CLUSTERS: usize = 100;
const PLACEMENTS: usize = 100;
/// Clusters of each.
const ON: usize = 10;
const PROJECT: &str = "placements";

const TEMPLATE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {text: {{ repeat 1024 \"x\" | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: web, image: registry.example.com/web:1}]}
";

/// Measures on a bed with an operator.
pub async fn measure(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    let fleet = Fleet::start(CLUSTERS, 0, ROOM)?;
    roomy(bed, PROJECT).await?;
    let chart = operator::chart("web", "1.0.0", &[("templates/web.yaml", TEMPLATE)])?;
    operator::chart_map(bed, PROJECT, PROJECT, &[chart]).await?;
    fleet.register(bed, PROJECT).await?;
    fleet.reached(bed, PATIENCE).await?;
    apply(bed, &json!([composite_app(PROJECT, "web", "web-1.0.0.tgz")])).await?;
    Marks::now(bed, &["hub"])?.until_quiet().await?;
    let idle = at_rest("rss_mib_100_registered", operator).await?;
    let marks = Marks::now(bed, &["hub"])?;
    let (begun, before) = (Instant::now(), operator.process().usage()?.cpu);
    let placed = |number: usize| {
        let from = json!([{"count": ON, "from": [{"selector": {}}]}]);
        let spec = json!({"compositeAppRef": {"name": "web"}, "placement": {"anyOf": from}});
        deployment(PROJECT, &name(number), &spec)
    };
    apply(bed, &Value::Array((0..PLACEMENTS).map(placed).collect())).await?;
    for number in 0..PLACEMENTS {
        operator::deployed_within(bed, PROJECT, &name(number), 1, PATIENCE).await?;
    }
    let took = begun.elapsed().as_secs_f64();
    let cpu = operator.process().usage()?.cpu.saturating_sub(before).as_secs_f64();
    marks.until_quiet().await?;
    let writes = marks.writes()?;
    println!("{PLACEMENTS} applications on {ON} of {CLUSTERS} clusters each: {}", by_resource(&writes));
    let there: usize = fleet.objects(PROJECT).iter().map(|found| found.saturating_sub(1)).sum();
    let wanted = 2 * ON * PLACEMENTS;
    ensure!(there == wanted, "there are {there} objects on all clusters instead of {wanted}");
    let each = count(writes.len()) / count(wanted);
    Ok(vec![
        idle,
        Entry::one("kubefleet_tenth_s", "s", took, HOW),
        Entry::one("kubefleet_tenth_cpu_s", "s", cpu, HOW),
        Entry::one("kubefleet_tenth_hub_writes_per_object", "writes", each, HOW),
    ])
}

fn name(number: usize) -> String {
    format!("web-{number:03}")
}
