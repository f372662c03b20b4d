//! A project that edits its small app once a second and looks when each edit is on its edge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::DeploymentIntentGroup;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::on;
use crate::bed::Bed;
use crate::operator::{chart, chart_map, deployed, deployment, project};

/// The project, its namespace and its deployment.
pub const NAME: &str = "victim";
/// Its only edge.
const EDGE: &str = "a";
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";

/// The project at work.
pub struct Victim {
    digs: Api<DeploymentIntentGroup>,
    seen: UnboundedReceiver<(usize, Instant)>,
    /// Ends the watch when dropped.
    _watch: JoinSet<()>,
    /// The last edit that was made.
    last: usize,
}

/// What became of some edits.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    /// Seconds from the hub's answer to an edit until the edge had it or a later one. For one that never came: as long as it
    /// was waited for.
    pub seconds: Vec<f64>,
    /// How many never came.
    pub lost: usize,
}

impl Victim {
    /// Makes the project and deploys its app, or goes on with what is there; answers when it runs.
    pub async fn start(bed: &Bed) -> Result<Self> {
        project(bed, NAME).await?;
        let package =
            chart("note", "1.0.0", &[("values.yaml", "say: none\n"), ("templates/note.yaml", NOTE)])?;
        chart_map(bed, NAME, "charts", std::slice::from_ref(&package)).await?;
        let spec = format!("placement: {}", on(EDGE));
        bed.hub().kubectl().apply(&deployment(NAME, NAME, &[package], &spec)).await?;
        deployed(bed, NAME, NAME, 1).await.context("the app of the victim does not run")?;
        let maps: Api<ConfigMap> = bed.edge(EDGE).api(NAME).await?;
        let last = said(&maps.get("note").await?).unwrap_or_default();
        let (send, seen) = unbounded_channel();
        let mut watch = JoinSet::new();
        watch.spawn(follow(maps, send));
        Ok(Self { digs: bed.hub().api(NAME).await?, seen, _watch: watch, last })
    }

    /// Makes `count` edits, one each `every` whether or not those before have come, and waits at most `patience` for the
    /// last.
    pub async fn edit(&mut self, count: usize, every: Duration, patience: Duration) -> Result<Edits> {
        let mut waiting: BTreeMap<usize, Instant> = BTreeMap::new();
        let mut edits = Edits::default();
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for _ in 0..count {
            loop {
                tokio::select! {
                    _ = tick.tick() => break,
                    came = self.seen.recv() => note(&mut waiting, &mut edits, came)?,
                }
            }
            self.last += 1;
            let say = json!({"spec": {"overrideValues": [{"app": "note", "values": {"say": self.last.to_string()}}]}});
            self.digs.patch(NAME, &PatchParams::default(), &Patch::Merge(say)).await?;
            waiting.insert(self.last, Instant::now());
        }
        let until = tokio::time::Instant::now() + patience;
        while !waiting.is_empty() {
            match tokio::time::timeout_at(until, self.seen.recv()).await {
                Ok(came) => note(&mut waiting, &mut edits, came)?,
                Err(_) => break,
            }
        }
        edits.lost = waiting.len();
        edits.seconds.extend(waiting.into_values().map(|at| at.elapsed().as_secs_f64()));
        Ok(edits)
    }
}

/// An edit is there when it or a later one is.
fn note(
    waiting: &mut BTreeMap<usize, Instant>,
    edits: &mut Edits,
    came: Option<(usize, Instant)>,
) -> Result<()> {
    let (number, at) = came.context("the watch of the victim's edge ended")?;
    let later = waiting.split_off(&(number + 1));
    let done = std::mem::replace(waiting, later);
    edits.seconds.extend(done.into_values().map(|made| at.saturating_duration_since(made).as_secs_f64()));
    Ok(())
}

/// The number of the edit that a note is of.
fn said(map: &ConfigMap) -> Option<usize> {
    map.data.as_ref()?.get("say")?.parse().ok()
}

/// Sends each number that the note says.
async fn follow(maps: Api<ConfigMap>, send: UnboundedSender<(usize, Instant)>) {
    let events = watcher(maps, watcher::Config::default().fields("metadata.name=note")).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) = event else { continue };
        if let Some(number) = said(&map)
            && send.send((number, Instant::now())).is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_that_a_later_one_overtook_has_come_with_it() {
        let start = Instant::now();
        let mut waiting = BTreeMap::from([(1, start), (2, start), (3, start)]);
        let mut edits = Edits::default();
        note(&mut waiting, &mut edits, Some((2, start + Duration::from_secs(1)))).unwrap();
        assert_eq!(edits.seconds.len(), 2);
        assert_eq!(waiting.into_keys().collect::<Vec<_>>(), [3]);
        assert!(note(&mut BTreeMap::new(), &mut edits, None).is_err());
    }
}
