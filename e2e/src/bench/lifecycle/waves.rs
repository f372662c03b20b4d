//! Measures a rollout of five waves beside one of none, on 8 and on 1,000 clusters: what a wave costs in time, and in writes to the hub.
//!
//! The clusters are servers that store what they are sent, so that a wave's own work takes next to no time. What a rollout costs in any
//! case, with waves or without, is subtracted from both numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::fake_edges::{self, FakeEdges};
use emco_e2e::operator::{self, Operator, is, settled};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::super::record::Entry;
use super::HOW;

/// Project and namespace.
const NAME: &str = "waves";
const CLUSTERS: [usize; 2] = [8, 1000];
/// Pairs of a rollout with waves and one without.
const PAIRS: usize = 15;
/// The four that are named, and the rest.
const WAVES: u32 = 5;
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: \"{{ .Release.Name }}\"}
data: {version: {{ .Values.version | quote }}}
";
/// How long all of them may take to be registered.
const REGISTERED: Duration = Duration::from_mins(10);

fn waves() -> Value {
    let sizes = ["12%", "25%", "25%", "13%"];
    let waves: Vec<Value> = sizes
        .iter()
        .enumerate()
        .map(|(at, size)| json!({"name": format!("wave-{at}"), "size": size}))
        .collect();
    json!({"waves": waves})
}

/// All of it.
pub async fn measure(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    operator::project(bed, NAME).await?;
    let most = CLUSTERS.into_iter().max().unwrap_or_default();
    let fakes = FakeEdges::start(most).await?;
    fakes.register(bed, NAME).await?;
    fakes.reached(bed, REGISTERED).await?;
    operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await?;
    let files = [("values.yaml", "version: none\n"), ("templates/note.yaml", NOTE)];
    let charts = [operator::chart(NAME, "1.0.0", &files)?];
    operator::chart_map(bed, NAME, "charts", &charts).await?;
    let mut entries = Vec::new();
    for count in CLUSTERS {
        println!("waves on {count} clusters");
        let name = format!("on-{count}");
        let placement = format!(
            "placement: {{anyOf: [{{count: {count}, from: [{{provider: {}, selector: {{}}}}]}}]}}",
            fake_edges::PROVIDER
        );
        bed.hub().kubectl().apply(&operator::deployment(NAME, &name, &charts, &placement)).await?;
        operator::wait(bed, NAME, &name, settled).await?;
        let of = Waved { bed, digs: bed.hub().api(NAME).await?, name };
        entries.extend(of.measure(count).await?);
    }
    entries.extend(super::pairs::measure(bed, operator, (NAME, &charts)).await?);
    Ok(entries)
}

/// What one rollout took.
struct Rollout {
    /// Until all is done.
    seconds: f64,
    /// How often the operator wrote to the hub, by verb and resource.
    writes: BTreeMap<String, u32>,
}

impl Rollout {
    fn sum(&self) -> Result<f64> {
        let sum: u32 = self.writes.values().sum();
        ensure!(sum > 0, "the audit log has no write of a rollout");
        Ok(f64::from(sum))
    }
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum: u32 = self.writes.values().sum();
        write!(f, "{:.3} s, {sum} writes to the hub:", self.seconds)?;
        self.writes.iter().try_for_each(|(what, count)| write!(f, " {count} x {what};"))
    }
}

struct Waved<'a> {
    bed: &'a Bed,
    digs: Api<DeploymentIntentGroup>,
    name: String,
}

impl Waved<'_> {
    async fn measure(&self, count: usize) -> Result<Vec<Entry>> {
        let (mut overheads, mut writes) = (Vec::new(), Vec::new());
        for number in 0..PAIRS {
            let plain = self.change(&format!("p{number}"), &Value::Null).await?;
            let waved = self.change(&format!("w{number}"), &waves()).await?;
            overheads.push((waved.seconds - plain.seconds) / f64::from(WAVES - 1));
            writes.push((waved.sum()? - plain.sum()?) / f64::from(WAVES - 1));
            if number + 1 == PAIRS {
                println!("all at once: {plain}");
                println!("in waves: {waved}");
            }
        }
        let overhead = Entry::median(&format!("wave_overhead_s_{count}"), "s", overheads, HOW);
        let writes = Entry::median(&format!("hub_writes_per_wave_{count}"), "", writes, HOW);
        Ok(vec![
            overhead.context("nothing was measured")?.at_most(0.2),
            writes.context("nothing was measured")?.at_most(4.0),
        ])
    }

    /// Changes the value, rolled out like this.
    async fn change(&self, version: &str, rollout: &Value) -> Result<Rollout> {
        let values = json!([{"app": NAME, "values": {"version": version}}]);
        let patch = Patch::Merge(json!({"spec": {"overrideValues": values, "rollout": rollout}}));
        let mark = self.bed.hub().audit_mark()?;
        let changed = self.digs.patch(&self.name, &PatchParams::default(), &patch).await?;
        let (begun, generation) = (Instant::now(), changed.metadata.generation);
        operator::wait(self.bed, NAME, &self.name, |dig: &DeploymentIntentGroup| {
            if dig.metadata.generation != generation {
                return Err("the watch is behind".to_owned());
            }
            settled(dig)
        })
        .await?;
        let seconds = begun.elapsed().as_secs_f64();
        let events = self.bed.hub().audit_since(mark)?;
        let mut writes = BTreeMap::new();
        for event in
            events.iter().filter(|event| event.user == "emco" && event.is_write() && !event.is_lease())
        {
            let what = format!("{} {} {}", event.verb, event.resource, event.subresource);
            *writes.entry(what.trim_end().to_owned()).or_default() += 1;
        }
        Ok(Rollout { seconds, writes })
    }
}
