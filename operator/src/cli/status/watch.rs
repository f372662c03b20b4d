//! What the hub tells of deployments, shards and the Lease comes in; a tree goes out whenever it differs from the one before. The
//! end of a Lease is told by nobody: a timer waits for exactly that moment.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_crds::{DeploymentIntentGroup, SyncShard};
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};

use super::filter::{Filter, absent};
use super::tree::Tree;
use super::{Scope, show};
use crate::cli::args::Format;
use crate::cli::hub::{Hub, chain, is_of, shards_of};
use crate::cli::pulse::{self, Pulse, Reading};
use crate::cli::{Outcome, print};

type Seen<K> = BTreeMap<String, K>;
type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;

/// Looks until interrupted.
pub async fn run(
    hub: &Hub,
    scope: &Scope,
    filter: &Filter,
    format: Option<Format>,
) -> anyhow::Result<Outcome> {
    // A wrong name or a missing right is an error now, not something to wait for.
    {
        let (groups, shards) = super::read(hub, scope).await?;
        if let Some(absent) = absent(&groups, &shards, filter) {
            bail!("{absent}");
        }
    }
    let mut reading = pulse::read(hub).await;
    let one = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
    let name = scope.name.as_deref();
    let mut groups = Watched::new(scope.groups(hub), name.map_or_else(watcher::Config::default, one));
    let labels = name.map(shards_of);
    let config =
        labels.map_or_else(watcher::Config::default, |labels| watcher::Config::default().labels(&labels));
    let mut shards = Watched::new(scope.shards(hub), config);
    let leases = Api::<Lease>::namespaced(hub.client.clone(), &hub.operator_namespace);
    let mut lease = Watched::new(leases, one(emco_crds::names::object::LEASE));
    let mut told = None;
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        if groups.complete && shards.complete {
            if lease.complete {
                let now = Timestamp::now().checked_add(reading.ahead).unwrap_or_else(|_| Timestamp::now());
                reading.pulse = Pulse::of(lease.seen.values().next(), now, &hub.operator_namespace);
            }
            let all: Vec<DeploymentIntentGroup> = groups.seen.values().cloned().collect();
            let rows: Vec<SyncShard> = shards
                .seen
                .values()
                .filter(|shard| name.is_none_or(|name| is_of(shard, name)))
                .cloned()
                .collect();
            let tree = Tree::of(&all, &rows, reading.pulse.clone(), filter);
            if told.as_ref() != Some(&tree) {
                print(&text(&tree, format)?)?;
                told = Some(tree);
            }
        }
        tokio::select! {
            event = groups.events.next() => groups.take(event, "deployment intent groups")?,
            event = shards.events.next() => shards.take(event, "shards")?,
            // Whoever may not watch the Lease was told so by its reading.
            event = lease.events.next() => drop(lease.take(event, "the operator's Lease")),
            () = expires(&reading) => {}
            _ = &mut interrupted => return Ok(Outcome::AsWanted),
        }
    }
}

/// The moment a Lease ends unless it is renewed.
async fn expires(reading: &Reading) {
    let now = Timestamp::now().checked_add(reading.ahead).unwrap_or_else(|_| Timestamp::now());
    match reading.pulse.until {
        Some(until) => {
            let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            tokio::time::sleep(left + Duration::from_millis(10)).await;
        }
        None => std::future::pending().await,
    }
}

/// One tree of many: JSON in one line, else text after a line with the time.
fn text(tree: &Tree, format: Option<Format>) -> anyhow::Result<String> {
    match format {
        Some(Format::Json) => Ok(serde_json::to_string(tree)? + "\n"),
        Some(Format::Yaml) => Ok(format!("---\n{}", serde_yaml::to_string(tree)?)),
        Some(Format::Wide) | None => {
            let now = Timestamp::now();
            let wide = format == Some(Format::Wide);
            Ok(format!("--- {now:.0}\n{}", show::text_with_warning(tree, wide)))
        }
    }
}

/// Objects of a watch.
struct Watched<K: Resource + 'static> {
    events: Events<K>,
    seen: Seen<K>,
    fresh: Seen<K>,
    /// Whether a whole list has come.
    complete: bool,
}

impl<K> Watched<K>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    fn new(api: Api<K>, config: watcher::Config) -> Self {
        let events = watcher(api, config).default_backoff().boxed();
        Self { events, seen: Seen::new(), fresh: Seen::new(), complete: false }
    }

    /// Takes an event. A watch that broke begins anew by itself; one that is refused is an error.
    fn take(&mut self, event: Option<watcher::Result<watcher::Event<K>>>, what: &str) -> anyhow::Result<()> {
        let key = |object: &K| format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Some(Ok(watcher::Event::Init)) => self.fresh.clear(),
            Some(Ok(watcher::Event::InitApply(object))) => drop(self.fresh.insert(key(&object), object)),
            Some(Ok(watcher::Event::InitDone)) => {
                self.seen = std::mem::take(&mut self.fresh);
                self.complete = true;
            }
            Some(Ok(watcher::Event::Apply(object))) => drop(self.seen.insert(key(&object), object)),
            Some(Ok(watcher::Event::Delete(object))) => drop(self.seen.remove(&key(&object))),
            Some(Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))) if status.code == 403 => {
                return Err(anyhow!("you may not watch {what}: {}", status.message));
            }
            Some(Err(error)) => {
                eprintln!(
                    "warning: the watch of {what} broke and begins anew: {}",
                    crate::cli::output::printable(&chain(&error))
                );
            }
            None => return Err(anyhow!("the watch of {what} ended")),
        }
        Ok(())
    }
}
