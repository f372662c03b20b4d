//! Runs the watches of the hub and a controller per kind. Every kind has one watch, one store and one controller;
//! everything runs until it is told to stop, and what runs then is brought to its end.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::project::MemberRole;
use emco_crds::{AppContext, SyncShard};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::api::Api;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::api::key_queue::KeyQueue;
use crate::api::pulse::Pulse;
use crate::driver::metrics::Metrics;
use crate::kinds::{self, each_kind};
use crate::object::meta::{name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Reach};
use crate::reconcile::{cluster_maps, hardware, health_rules};
use crate::store::{Collector, give_back};
use crate::stores::{Feed, Listed, NamespaceMeta, Objects, Writers};
use crate::sync::Sync;
use crate::tenancy::owned_namespace;
use crate::triggers::{Change, ContentChanged, RowsChanged};

mod control;
mod forward;
pub mod hub;
pub mod installation;
pub mod lease;
pub mod metrics;
mod owners;
mod reports;
mod sources;
mod stream;

use control::control;
use forward::{branches, charts, connections, paced, people};
use reports::Reports;
use stream::{watch, watch_named};

/// What the driver drives.
pub struct Parts {
    /// Handles of the process.
    pub ctx: Arc<Context>,
    /// Writers of the context's stores.
    pub writers: Writers,
    /// The hub, for watches.
    pub client: kube::Client,
    /// Gets the shards.
    pub sync: Arc<Sync>,
    /// Counts reconciles.
    pub metrics: Arc<Metrics>,
}

/// Why the driver ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A watch or controller ended by itself.
    #[error("{0} ended although nobody stopped it")]
    Ended(&'static str),
}

/// Runs all watches and controllers until `stop`. Boxed, so that they are compiled here and not by who awaits them.
pub fn drive(parts: Parts, stop: CancellationToken) -> BoxFuture<'static, Result<(), DriveError>> {
    drive_all(parts, stop).boxed()
}

async fn drive_all(parts: Parts, stop: CancellationToken) -> Result<(), DriveError> {
    let Parts { ctx, writers, client, sync, metrics } = parts;
    let reach = Reach { ctx, triggers: Arc::default(), sync, maps: Arc::default() };
    let driver = Driver { reach, client, metrics, stop };
    let (stores, triggers) = (&driver.reach.ctx.stores, &driver.reach.triggers);
    let mut tasks: Vec<Task> = Vec::new();
    macro_rules! controllers {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {$(
            let (kind, feed) = (stringify!($kind), writers.$store);
            let run = driver.controller::<kinds::$kind>(kind, feed, &stores.$store, &triggers.$store);
            tasks.push(run.map(|()| stringify!($store)).boxed());
        )*};
    }
    each_kind!(reconciled => controllers);
    tasks.push(driver.shards(writers.shards));
    tasks.push(driver.contexts(writers.contexts));
    tasks.push(driver.namespaces(writers.namespaces));
    tasks.extend(MemberRole::ALL.into_iter().zip(writers.members).map(|(role, of)| driver.members(role, of)));
    tasks.extend(driver.followers());
    until_stopped(tasks, &driver.stop).await
}

type Task = BoxFuture<'static, &'static str>;

/// Watches and controllers begin with what is here.
struct Driver {
    reach: Reach,
    client: kube::Client,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
}

impl Driver {
    /// The watch and the controller of a kind of the table.
    fn controller<K: Controlled>(
        &self,
        kind: &'static str,
        feed: Feed<K>,
        store: &Objects<K>,
        queue: &Arc<KeyQueue>,
    ) -> BoxFuture<'static, ()> {
        let (reach, mut listener) = (self.reach.clone(), K::listener(&self.reach));
        let api = Api::all(self.client.clone());
        let stream = watch(api, feed, self.waited_for(), K::trim, move |change| listener(&reach, &change));
        let reconcile = |ctx: Arc<Context>, namespace: String, name: String| {
            async move { K::reconcile(&ctx, &namespace, &name).await }.boxed()
        };
        let shared = (Arc::clone(&self.reach.ctx), Arc::clone(&self.metrics));
        let of = (kind, K::AT_ONCE, K::APART);
        control(stream, store.store(), queue.stream::<K>(), shared, of, reconcile, self.stop.clone()).boxed()
    }

    /// A watch that nothing is reconciled for.
    fn watched<K>(
        &self,
        what: &'static str,
        feed: Feed<K>,
        mut listener: impl FnMut(&Reach, &Change<'_, K>) + Send + 'static,
    ) -> Task
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + std::marker::Sync + 'static,
    {
        let reach = self.reach.clone();
        let api = Api::all(self.client.clone());
        drained(what, watch(api, feed, self.waited_for(), |_| {}, move |change| listener(&reach, &change)))
    }

    /// Those who hear of the list of a kind that others wait for.
    fn waited_for(&self) -> (Arc<Listed>, Arc<Pulse>) {
        let ctx = &self.reach.ctx;
        (Arc::clone(&ctx.stores.listed), Arc::clone(&ctx.pulse))
    }

    fn shards(&self, feed: Feed<SyncShard>) -> Task {
        let (rows_changed, content_changed) = (RowsChanged::default(), ContentChanged::default());
        let mut reports = Reports::default();
        self.watched("shards", feed, move |Reach { ctx, triggers, sync, .. }, change| {
            if change.gone {
                sync.shard_gone(namespace(change.object), name(change.object));
            } else {
                sync.shard(change.object.clone());
            }
            if reports.is_only(change) {
                triggers.reported(change.object);
            } else {
                triggers.shard(change.object);
            }
            if let Some(clusters) = rows_changed.changed(change) {
                triggers.rows(&ctx.stores, &clusters, change.object);
            }
            if content_changed.changed(&ctx.stores, change) {
                triggers.content(&ctx.stores, change.object);
            }
        })
    }

    fn contexts(&self, feed: Feed<AppContext>) -> Task {
        self.watched("appcontexts", feed, |Reach { ctx, triggers, .. }, change| {
            for (namespace, name) in ctx.stores.stored_bytes.note(change.object, change.gone) {
                triggers.digs.enqueue(&namespace, &name);
            }
            let owner = &change.object.spec.owner;
            triggers.owner(namespace(change.object), &owner.kind, &owner.name);
            triggers.producer(&owner.kind, namespace(change.object), &owner.name);
        })
    }

    fn namespaces(&self, feed: Feed<NamespaceMeta>) -> Task {
        self.watched("namespaces", feed, |Reach { ctx, triggers, maps, .. }, change| {
            triggers.namespace_shown(ctx, name(change.object));
            maps.namespace(&ctx.stores, change);
        })
    }

    /// Bindings of one role in the namespaces of projects.
    fn members(&self, role: MemberRole, feed: Feed<RoleBinding>) -> Task {
        let reach = self.reach.clone();
        let api = Api::<RoleBinding>::all(self.client.clone());
        let pulse = Arc::clone(&self.reach.ctx.pulse);
        let bindings = watch_named(api, role.binding(), feed, pulse, move |change| {
            if let Some(project) = owned_namespace::project_of(&reach.ctx, namespace(change.object)) {
                reach.triggers.projects.enqueue("", &project);
            }
        });
        drained(role.binding(), bindings)
    }

    /// What else runs beside controllers.
    fn followers(&self) -> Vec<Task> {
        let (ctx, triggers) = (|| Arc::clone(&self.reach.ctx), || Arc::clone(&self.reach.triggers));
        let sources = sources::follow(self.client.clone(), ctx(), triggers(), self.stop.clone());
        let orphans = owners::orphans(ctx(), triggers(), Arc::clone(&self.metrics));
        vec![
            sources.map(|()| "sources").boxed(),
            Collector::default().run(ctx()).map(|()| "collector").boxed(),
            health_rules::follow(ctx(), self.reach.sync.health_rules()).map(|()| "health rules").boxed(),
            give_back(ctx()).map(|()| "memory").boxed(),
            orphans.map(|()| "orphans").boxed(),
            owners::ledgers(ctx(), triggers()).map(|()| "ledgers").boxed(),
            cluster_maps::follow(ctx()).map(|()| "cluster maps").boxed(),
            hardware::follow(ctx(), triggers()).map(|()| "hardware").boxed(),
            people(ctx(), triggers()).map(|()| "people").boxed(),
            charts(ctx(), triggers()).map(|()| "charts").boxed(),
            connections(ctx(), triggers()).map(|()| "connections").boxed(),
            paced(ctx(), triggers()).map(|()| "pace of clusters").boxed(),
            branches(ctx(), triggers()).map(|()| "branches").boxed(),
        ]
    }
}

/// Runs tasks until `stop`; none of them ends before.
async fn until_stopped(tasks: Vec<Task>, stop: &CancellationToken) -> Result<(), DriveError> {
    let mut running: futures::stream::FuturesUnordered<_> =
        tasks.into_iter().map(tokio::spawn).map(AbortOnDrop).collect();
    tokio::select! {
        () = stop.cancelled() => {}
        ended = running.next() => match ended {
            Some(Ok(what)) if !stop.is_cancelled() => return Err(DriveError::Ended(what)),
            Some(Err(_)) if !stop.is_cancelled() => return Err(DriveError::Ended("a controller")),
            _ => {}
        },
    }
    // What is being reconciled is brought to its end, within a bound.
    let _ = tokio::time::timeout(Duration::from_secs(5), control::idle()).await;
    Ok(())
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;
    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        self.0.poll_unpin(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn drained<S: futures::Stream + Send + 'static>(
    what: &'static str,
    stream: S,
) -> BoxFuture<'static, &'static str> {
    stream.for_each(|_| futures::future::ready(())).map(move |()| what).boxed()
}
