//! Follows a deployment, its shards and the edges' Pods in a table, until a condition holds.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use emco_crds::{DeploymentIntentGroup, OwnerKind, SyncShard};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::hash::Hash;

use super::screen::Screen;
use super::stage::{EDGES, Stage};
use super::view::{Pods, View};

/// Events taken together for one drawing.
const AT_ONCE: usize = 256;

/// What is watched.
pub struct Live<'a> {
    stage: &'a Stage,
    screen: &'a Screen,
    digs: Store<DeploymentIntentGroup>,
    shards: Store<SyncShard>,
    pods: Vec<(&'static str, Store<Pod>)>,
    events: BoxStream<'static, Vec<()>>,
    start: Instant,
}

impl<'a> Live<'a> {
    /// Starts the watches.
    pub async fn start(stage: &'a Stage, screen: &'a Screen, project: &str, name: &str) -> Result<Self> {
        let hub = stage.bed.hub();
        let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let owned = watcher::Config::default().labels(&OwnerKind::DeploymentIntentGroup.selector(name));
        let (digs, dig_events) = follow(hub.api(project).await?, one);
        let (shards, shard_events) = follow(hub.api(project).await?, owned);
        let mut all = vec![dig_events, shard_events];
        let mut pods = Vec::new();
        for (edge, ..) in EDGES {
            let (store, events) =
                follow(stage.bed.edge(edge).api(project).await?, watcher::Config::default());
            pods.push((edge, store));
            all.push(events);
        }
        let events = select_all(all).ready_chunks(AT_ONCE).boxed();
        Ok(Self { stage, screen, digs, shards, pods, events, start: Instant::now() })
    }

    /// Draws until the revision `at_least` or a later one runs everywhere as wanted, and says how long that took.
    pub async fn until_ready(&mut self, at_least: i64, limit: Duration) -> Result<Duration> {
        let mut table = self.screen.table();
        let deadline = tokio::time::sleep(limit);
        let ended = self.stage.operator.process().ended();
        tokio::pin!(deadline, ended);
        loop {
            let view = self.view();
            if view.dig.is_some() {
                table.draw(view.lines());
            }
            let Err(missing) = view.missing(at_least) else { return Ok(self.start.elapsed()) };
            tokio::select! {
                event = self.events.next() => if event.is_none() { bail!("the watches ended: {missing}") },
                how = &mut ended => bail!("the operator ended: {how}"),
                () = &mut deadline => bail!("not ready after {} s: {missing}", limit.as_secs()),
            }
        }
    }

    fn view(&self) -> View {
        let running =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let count = |store: &Store<Pod>| {
            let pods = store.state();
            // Pods of hooks that are done are no longer meant to run.
            let done = |pod: &Pod| {
                matches!(pod.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"))
            };
            Pods {
                running: pods.iter().filter(|pod| running(pod)).count(),
                total: pods.iter().filter(|pod| !done(pod)).count(),
            }
        };
        View {
            dig: self.digs.state().first().map(|dig| dig.as_ref().clone()),
            shards: self.shards.state().iter().map(|shard| shard.as_ref().clone()).collect(),
            pods: self.pods.iter().map(|(edge, store)| ((*edge).to_owned(), count(store))).collect(),
        }
    }
}

/// A store that follows `api`, and its events. A watch that fails is begun again: the store stays as it was until then.
fn follow<K>(api: Api<K>, config: watcher::Config) -> (Store<K>, BoxStream<'static, ()>)
where
    K: Resource<DynamicType: Default + Eq + Hash + Clone>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(api, config).default_backoff().reflect(writer).map(drop).boxed();
    (store, events)
}
