//! Follows deployments, shards and the operator's Lease on the hub, and says when something of them changed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use emco_crds::{DeploymentIntentGroup, SyncShard};
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};

use super::Scope;
use crate::cli::hub::{Hub, chain, is_of, shards_of};
use crate::cli::pulse::{Pulse, Reading};

/// Longest pause before a watch that broke begins anew: a person waits.
const PAUSE: Duration = Duration::from_secs(3);

type Seen<K> = BTreeMap<String, K>;
type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;

/// Everything that a tree is made of, kept up to date.
pub struct Feed {
    pub groups: Watched<DeploymentIntentGroup>,
    pub shards: Watched<SyncShard>,
    lease: Watched<Lease>,
    reading: Reading,
    /// The deployment whose shards count; all if absent.
    name: Option<String>,
    operator_namespace: String,
}

impl Feed {
    /// Begins to follow what is in scope.
    pub fn new(hub: &Hub, scope: &Scope, reading: Reading) -> Self {
        let one = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let name = scope.name.as_deref();
        let labels = name.map(shards_of);
        let config =
            labels.map_or_else(watcher::Config::default, |labels| watcher::Config::default().labels(&labels));
        let leases = Api::<Lease>::namespaced(hub.client.clone(), &hub.operator_namespace);
        Self {
            groups: Watched::new(
                scope.groups(hub),
                name.map_or_else(watcher::Config::default, one),
                "deployment intent groups",
            ),
            shards: Watched::new(scope.shards(hub), config, "shards"),
            lease: Watched::new(leases, one(emco_crds::names::object::LEASE), "the operator's Lease"),
            reading,
            name: scope.name.clone(),
            operator_namespace: hub.operator_namespace.clone(),
        }
    }

    /// True once whole lists of deployments and shards have come.
    pub const fn is_complete(&self) -> bool {
        self.groups.complete && self.shards.complete
    }

    /// The pulse of the operator, judged now.
    pub fn pulse(&mut self) -> Pulse {
        if self.lease.complete {
            self.reading.pulse =
                Pulse::of(self.lease.seen.values().next(), self.now(), &self.operator_namespace);
        }
        self.reading.pulse.clone()
    }

    /// The shards of deployments in scope.
    pub fn rows(&self) -> impl Iterator<Item = &SyncShard> {
        let name = self.name.as_deref();
        self.shards.seen.values().filter(move |shard| name.is_none_or(|name| is_of(shard, name)))
    }

    /// Waits for the next change. A watch that breaks begins anew by itself; one that is refused is an error.
    pub async fn changed(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        tokio::select! {
            event = self.groups.events.next() => self.groups.take(event),
            event = self.shards.events.next() => self.shards.take(event),
            event = self.lease.events.next() => {
                // The reading of the Lease has told already that it may not be watched.
                drop(self.lease.take(event));
                Ok(())
            }
            () = expires(&self.reading, now) => Ok(()),
        }
    }

    /// Error of a watch that broke and did not come back yet.
    pub fn broken(&self) -> Option<&str> {
        self.groups.broken.as_deref().or(self.shards.broken.as_deref())
    }

    /// Takes note of an answer of the hub: a watch that is resumed in silence works again, or breaks again soon.
    pub fn heard(&mut self) {
        self.groups.broken = None;
        self.shards.broken = None;
    }

    /// Takes note that the hub gives no answer.
    pub fn unheard(&mut self, why: &str) {
        self.groups.broken = Some(why.to_owned());
    }

    /// The time of the hub.
    fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(self.reading.ahead).unwrap_or_else(|_| Timestamp::now())
    }
}

/// The moment a Lease ends unless it is renewed. Nobody tells of it.
async fn expires(reading: &Reading, now: Timestamp) {
    match reading.pulse.until {
        Some(until) => {
            let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            tokio::time::sleep(left + Duration::from_millis(10)).await;
        }
        None => std::future::pending().await,
    }
}

/// Pauses as client-go makes them, and none that a person would take for the end.
#[derive(Default)]
struct Soon(DefaultBackoff);

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause.min(PAUSE))
    }
}

impl Backoff for Soon {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Objects of a watch.
pub struct Watched<K: Resource + 'static> {
    events: Events<K>,
    pub seen: Seen<K>,
    fresh: Seen<K>,
    /// True once a whole list has come.
    pub complete: bool,
    /// Error since which nothing comes.
    pub broken: Option<String>,
    what: &'static str,
}

impl<K> Watched<K>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    /// Begins to watch.
    pub fn new(api: Api<K>, config: watcher::Config, what: &'static str) -> Self {
        let events = watcher(api, config)
            .modify(|object| object.managed_fields_mut().clear())
            .backoff(Soon::default())
            .boxed();
        Self { events, seen: Seen::new(), fresh: Seen::new(), complete: false, broken: None, what }
    }

    /// Waits for the next change, and takes it in.
    pub async fn changed(&mut self) -> anyhow::Result<()> {
        let event = self.events.next().await;
        self.take(event)
    }

    fn take(&mut self, event: Option<watcher::Result<watcher::Event<K>>>) -> anyhow::Result<()> {
        let key = |object: &K| format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        let what = self.what;
        if matches!(event, Some(Ok(_))) {
            self.broken = None;
        }
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
                self.broken = Some(format!("the watch of {what} broke and begins anew: {}", chain(&error)));
            }
            None => return Err(anyhow!("the watch of {what} ended")),
        }
        Ok(())
    }
}
