//! Measures how much later small edits come to clusters while one of their eight is frozen, and to a cluster on which another
//! tenant changes 5,000 objects.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator, settled};
use emco_e2e::package::Package;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::super::record::Entry;
use super::HOW;

const EDGES: [&str; 8] = ["edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8"];
const PROVIDER: &str = "fleet";
/// Quiet edits and edits beside something, one after the other.
const PAIRS: usize = 15;
/// Of each half of a pair: beside a frozen cluster there are 525 samples on the seven others.
const EDITS: usize = 5;
const EVERY: Duration = Duration::from_secs(1);
/// For an edit to come.
const PATIENCE: Duration = Duration::from_mins(1);
const OBJECTS: &str = "5000";
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";
const MAPS: &str = "
{{- range until (int .Values.objects) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: map-{{ . }}}
data: {say: {{ $.Values.say | quote }}}
{{- end }}
";

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).own_etcd();
    let edge = |name: &str| PlaneSpec::new(name, Parts::ApiServer);
    let bed = Bed::start(EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name))))
        .await?;
    let operator = Operator::start(&bed, program).await?;
    let measured = Box::pin(async {
        operator::register(&bed, PROVIDER, &EDGES).await?;
        let mut entries = Box::pin(frozen(&bed)).await?;
        entries.extend(Box::pin(beside_many(&bed)).await?);
        Ok(entries)
    });
    let entries = operator::unless_ended(operator.process(), measured).await?;
    drop(operator);
    bed.end().await?;
    Ok(entries)
}

/// The last of eight clusters is frozen in the second half of each pair.
async fn frozen(bed: &Bed) -> Result<Vec<Entry>> {
    let mut edited = Edited::start(bed, "peers", ("note", NOTE), &EDGES).await?;
    let (last, others) = EDGES.split_last().context("there are no clusters")?;
    let mut halves = Halves::default();
    for _ in 0..PAIRS {
        halves.quiet.push(edited.edits(others).await?);
        bed.edge(last).freeze().await?;
        let beside = edited.edits(others).await;
        bed.edge(last).thaw().await?;
        halves.beside.push(beside?);
        // The frozen one is back, with what it missed.
        edited.came(&[last]).await?;
    }
    Ok(vec![
        halves.ratio("frozen_peer_p50_ratio", 0.5)?.at_most(1.05),
        halves.ratio("frozen_peer_p99_ratio", 0.99)?.at_most(1.2),
    ])
}

/// Another tenant changes all of its objects on the same cluster in the second half of each pair.
async fn beside_many(bed: &Bed) -> Result<Vec<Entry>> {
    let at = EDGES.first().copied().context("there are no clusters")?;
    let mut small = Edited::start(bed, "small", ("note", NOTE), &[at]).await?;
    let mut large = Edited::start(bed, "large", ("maps", MAPS), &[at]).await?;
    let mut halves = Halves::default();
    for _ in 0..PAIRS {
        halves.quiet.push(small.edits(&[at]).await?);
        large.edit().await?;
        halves.beside.push(small.edits(&[at]).await?);
        large.settled(bed).await?;
        small.settled(bed).await?;
    }
    Ok(vec![
        halves.ratio("small_tenant_ratio_beside_5000", 0.5)?.at_most(1.2),
        halves.ratio("small_tenant_p99_ratio_beside_5000", 0.99)?,
    ])
}

/// Seconds of edits, half by half.
#[derive(Default)]
struct Halves {
    quiet: Vec<Vec<f64>>,
    beside: Vec<Vec<f64>>,
}

impl Halves {
    /// What a part of all edits does not exceed, beside something over in quiet; its spread is that of the pairs.
    fn ratio(&self, name: &str, part: f64) -> Result<Entry> {
        let none = "nothing was measured";
        let of = |samples: Vec<f64>| Entry::quantile(name, "s", samples, part, HOW).map(|entry| entry.value);
        let pairs = self.quiet.iter().zip(&self.beside);
        let ratios = pairs.map(|(quiet, beside)| Some(of(beside.clone())? / of(quiet.clone())?));
        let mut entry =
            Entry::median(name, "ratio", ratios.collect::<Option<_>>().context(none)?, HOW).context(none)?;
        let (quiet, beside) =
            (of(self.quiet.concat()).context(none)?, of(self.beside.concat()).context(none)?);
        println!("{name}: {:.1} ms beside it, {:.1} ms in quiet", beside * 1000.0, quiet * 1000.0);
        entry.value = beside / quiet;
        Ok(entry)
    }
}

/// A deployment whose value is counted up, and the note on its clusters that says it.
struct Edited {
    name: &'static str,
    digs: Api<DeploymentIntentGroup>,
    seen: UnboundedReceiver<(&'static str, usize, Instant)>,
    /// Ends the watches when dropped.
    _watches: JoinSet<()>,
    number: usize,
}

impl Edited {
    /// Makes the project and its app on these clusters; answers when it runs.
    async fn start(
        bed: &Bed,
        name: &'static str,
        (app, template): (&str, &str),
        edges: &[&'static str],
    ) -> Result<Self> {
        operator::project(bed, name).await?;
        let values = format!("say: none\nobjects: {OBJECTS}\n");
        let package: Package =
            operator::chart(app, "1.0.0", &[("values.yaml", &values), ("templates/all.yaml", template)])?;
        operator::chart_map(bed, name, "charts", std::slice::from_ref(&package)).await?;
        let terms: Vec<_> = edges.iter().map(|edge| json!({"provider": PROVIDER, "cluster": edge})).collect();
        let spec = format!("placement: {}", json!({"allOf": terms}));
        bed.hub().kubectl().apply(&operator::deployment(name, name, &[package], &spec)).await?;
        operator::wait(bed, name, name, settled).await?;
        let (send, seen) = unbounded_channel();
        let mut watches = JoinSet::new();
        for edge in edges {
            watches.spawn(follow(bed.edge(edge).api(name).await?, edge, send.clone()));
        }
        let digs = bed.hub().api(name).await?;
        Ok(Self { name, digs, seen, _watches: watches, number: 0 })
    }

    /// Counts up. Answers when the hub had accepted that.
    async fn edit(&mut self) -> Result<Instant> {
        self.number += 1;
        let app = if self.name == "large" { "maps" } else { "note" };
        let values = json!([{"app": app, "values": {"say": self.number.to_string()}}]);
        let patch = Patch::Merge(json!({"spec": {"overrideValues": values}}));
        self.digs.patch(self.name, &PatchParams::default(), &patch).await?;
        Ok(Instant::now())
    }

    /// Some edits, one a second: how long each took to each of the clusters.
    async fn edits(&mut self, edges: &[&'static str]) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        for _ in 0..EDITS {
            let begun = self.edit().await?;
            let came = self.came(edges).await?;
            all.extend(came.into_iter().map(|at| at.saturating_duration_since(begun).as_secs_f64()));
            tokio::time::sleep_until((begun + EVERY).into()).await;
        }
        Ok(all)
    }

    /// Waits until the last number is on each of the clusters; when it was seen there.
    async fn came(&mut self, edges: &[&'static str]) -> Result<Vec<Instant>> {
        let mut missing = edges.to_vec();
        let mut came = Vec::new();
        let until = tokio::time::Instant::now() + PATIENCE;
        while !missing.is_empty() {
            let Ok(seen) = tokio::time::timeout_at(until, self.seen.recv()).await else {
                bail!("edit {} of {} did not come to {}", self.number, self.name, missing.join(", "));
            };
            let (edge, number, at) = seen.context("the watches of the clusters ended")?;
            if number == self.number && missing.contains(&edge) {
                missing.retain(|missing| *missing != edge);
                came.push(at);
            }
        }
        Ok(came)
    }

    async fn settled(&self, bed: &Bed) -> Result<()> {
        operator::wait(bed, self.name, self.name, settled).await
    }
}

/// Tells of each number that the note says.
async fn follow(
    maps: Api<ConfigMap>,
    edge: &'static str,
    send: UnboundedSender<(&'static str, usize, Instant)>,
) {
    let events = watcher(maps, watcher::Config::default().fields("metadata.name=note")).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) = event else { continue };
        let number = map.data.as_ref().and_then(|data| data.get("say")?.parse().ok());
        if let Some(number) = number
            && send.send((edge, number, Instant::now())).is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_all_edits_and_its_spread_of_the_pairs() {
        let halves =
            Halves { quiet: vec![vec![1.0; 5], vec![2.0; 5]], beside: vec![vec![2.0; 5], vec![2.0; 5]] };
        let entry = halves.ratio("x", 0.99).unwrap();
        assert!((entry.value - 1.0).abs() < 1e-9);
        assert_eq!([entry.min, entry.max].map(f64::to_bits), [1.0, 2.0].map(f64::to_bits));
        assert!(Halves::default().ratio("x", 0.5).is_err());
    }
}
