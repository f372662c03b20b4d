//! Notes when each object came to the edges, as a watcher of its metadata sees it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use emco_e2e::bed::Bed;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// For everything that is waited for to come.
const PATIENCE: Duration = Duration::from_mins(3);

/// An object that came, or was changed.
struct Arrival {
    edge: usize,
    name: String,
    at: Instant,
}

/// Watches the three kinds of the mix on every edge.
pub struct Arrivals {
    seen: UnboundedReceiver<Arrival>,
    /// Ends the watches when dropped.
    _watches: JoinSet<()>,
}

impl Arrivals {
    /// Watches from now on; answers once every watch has listed what is there.
    pub async fn watch(bed: &Bed, edges: &[&str]) -> Result<Self> {
        let (send, mut seen) = unbounded_channel();
        let mut watches = JoinSet::new();
        for (edge, name) in edges.iter().enumerate() {
            let client = bed.edge(name).client().await?;
            watches.spawn(follow::<ConfigMap>(client.clone(), edge, send.clone()));
            watches.spawn(follow::<Service>(client.clone(), edge, send.clone()));
            watches.spawn(follow::<Deployment>(client, edge, send.clone()));
        }
        for _ in 0..edges.len() * 3 {
            while !seen.recv().await.context("a watch ended")?.name.is_empty() {}
        }
        Ok(Self { seen, _watches: watches })
    }

    /// Waits until `count` different objects, names and edges taken together, came whose name `wanted` accepts. Answers when the
    /// last of them was seen.
    pub async fn until(&mut self, count: usize, wanted: impl Fn(&str) -> bool) -> Result<Instant> {
        let mut found = BTreeSet::new();
        let all = async {
            while let Some(Arrival { edge, name, at }) = self.seen.recv().await {
                if wanted(&name) && found.insert((edge, name)) && found.len() == count {
                    return Ok(at);
                }
            }
            bail!("the watches of the edges ended")
        };
        match tokio::time::timeout(PATIENCE, all).await {
            Ok(at) => at,
            Err(_) => bail!("only {} of {count} objects came within {} s", found.len(), PATIENCE.as_secs()),
        }
    }
}

/// Tells of every object; one without a name says that all that is there was listed.
async fn follow<K>(client: Client, edge: usize, send: UnboundedSender<Arrival>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
{
    let api = Api::<PartialObjectMeta<K>>::all(client);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let name = match event {
            Ok(watcher::Event::Apply(object)) => object.name_any(),
            Ok(watcher::Event::InitDone) => String::new(),
            _ => continue,
        };
        if send.send(Arrival { edge, name, at: Instant::now() }).is_err() {
            return;
        }
    }
}
