//! Measures what the first deployment of many objects to many edges costs the hub in writes, and the operator in memory.
//!
//! 200 ConfigMaps of one chart on each of eight edges: API servers alone, since nothing has to run.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator};
use serde_json::json;

use super::HOW;
use super::quiet::{Marks, by_resource};
use super::sample::count;
use crate::bench::record::Entry;

const EDGES: [&str; 8] = ["edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8"];
const OBJECTS: usize = 200;
const PROVIDER: &str = "fleet";
/// Project, its namespace, application and deployment.
const NAME: &str = "many";
/// Writes to the hub for each object on an edge.
const GOAL: f64 = 0.02;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
    let edge = |name: &str| PlaneSpec::new(name, Parts::ApiServer);
    let spec = EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name)));
    let bed = Bed::start(spec).await?;
    let operator = Operator::start(&bed, program).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed, &operator))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    prepare(bed).await?;
    Marks::now(bed, &["hub"])?.until_quiet().await?;
    let marks = Marks::now(bed, &["hub"])?;
    bed.hub().kubectl().apply(&objects()).await?;
    operator::deployed(bed, NAME, NAME, 1).await.context("the objects do not get to the edges")?;
    marks.until_quiet().await?;
    let usage = operator.process().usage()?;
    let on_edges = OBJECTS * EDGES.len();
    for edge in EDGES {
        let found = operator::ours(bed, edge, "configmaps", Some(NAME)).await?.len();
        ensure!(found == OBJECTS, "{edge} has {found} objects instead of {OBJECTS}");
    }
    let (events, writes): (Vec<_>, Vec<_>) =
        marks.writes()?.into_iter().partition(|write| write.resource == "events");
    println!("for {on_edges} objects the operator wrote to the hub {}", by_resource(&writes));
    println!("and, not counted among them, {}", by_resource(&events));
    #[expect(clippy::cast_precision_loss, reason = "memory is far below what a float holds exactly")]
    let mib = |bytes: u64| bytes as f64 / MIB;
    Ok(vec![
        Entry::one("hub_writes_per_object", "writes", count(writes.len()) / count(on_edges), HOW)
            .at_most(GOAL),
        Entry::one("hub_events_per_object", "writes", count(events.len()) / count(on_edges), HOW),
        Entry::one("operator_rss_mib", "MiB", mib(usage.rss_bytes), HOW),
        Entry::one("operator_peak_rss_mib", "MiB", mib(usage.peak_rss_bytes), HOW),
    ])
}

async fn prepare(bed: &Bed) -> Result<()> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    operator::project(bed, NAME).await?;
    let template = format!(
        "{{{{- range until {OBJECTS} }}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {{{{ $.Release.Name }}}}-{{{{ . }}}}}}
data: {{number: {{{{ . | quote }}}}, text: {{{{ sha256sum (printf \"%d\" .) }}}}}}
{{{{- end }}}}
"
    );
    let chart = operator::chart(NAME, "1.0.0", &[("templates/maps.yaml", template.as_str())])?;
    operator::chart_map(bed, NAME, NAME, &[chart]).await?;
    operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
        operator::is(cloud.status.as_ref(), types::READY, "True")
    })
    .await
}

fn objects() -> String {
    let metadata = json!({"name": NAME, "namespace": NAME});
    let chart = json!({"configMapRef": {"name": NAME, "key": "many-1.0.0.tgz"}});
    let items = json!([
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata,
         "spec": {"apps": [{"name": "maps", "chart": chart}]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata,
         "spec": {"compositeAppRef": {"name": NAME}, "placement": {"allOf": [{"selector": {}}]}}},
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}
