//! Runs the watches of the hub and a controller per kind. Every kind has one watch, one store and one controller;
//! everything runs until it is told to stop, and what runs then is brought to its end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::project::MemberRole;
use emco_crds::{Cluster, OwnerKind, SyncShard};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::Api;
use tokio_util::sync::CancellationToken;

use crate::driver::metrics::Metrics;
use crate::driver::triggers::Triggers;
use crate::object::context::Reconciled;
use crate::object::meta::{self, name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::{
    approval, cluster, cluster_maps, cluster_provider, composite_app, composite_profile, deployment,
    generic_action_intent, health_rules, logical_cloud, project,
};
use crate::store::{Collector, give_back};
use crate::stores::{Stores, Writers};
use crate::sync::Sync;
use crate::tenancy::owned_namespace;

mod cluster_maps_changed;
mod control;
mod forward;
pub mod hub;
pub mod installation;
pub mod lease;
pub mod metrics;
mod owners;
mod predicates;
mod sources;
mod stream;
pub mod triggers;

use cluster_maps_changed::ClusterMapsChanged;
use control::control;
use forward::{charts, connections, people};
use predicates::{
    ApprovalChanged, ClusterChanged, ContentChanged, IntentChanged, PlanChanged, RefsChanged, RowsChanged,
    SyncPolicyChanged,
};
use stream::{Change, watch, watch_named};

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

/// Objects of one kind reconciled at once, divided by `api/places.rs` among namespaces.
const AT_ONCE: u16 = 12;
/// Deployments looked at once. How many of them plan is for [`deployment::PlanTurns`] to say.
const DEPLOYMENTS_AT_ONCE: u16 = 16;

/// Runs all watches and controllers until `stop`. Boxed, so that they are compiled here and not by who awaits them.
pub fn drive(parts: Parts, stop: CancellationToken) -> BoxFuture<'static, Result<(), DriveError>> {
    drive_all(parts, stop).boxed()
}

#[allow(clippy::too_many_lines)] // one paragraph per kind
async fn drive_all(parts: Parts, stop: CancellationToken) -> Result<(), DriveError> {
    let Parts { ctx, writers, client, sync, metrics } = parts;
    let triggers = Arc::new(Triggers::default());
    let stores = ctx.stores.clone();
    let mut tasks: Vec<BoxFuture<'static, &'static str>> = Vec::new();

    macro_rules! kind {
        ($field:ident, $type:ty, $at_once:expr, $reconcile:expr, $tell:expr) => {{
            let queued = triggers.$field.stream::<$type>();
            let (stores, triggers) = (stores.clone(), Arc::clone(&triggers));
            let tell = $tell;
            let stream = watch::<$type>(
                Api::all(client.clone()),
                writers.$field,
                Arc::clone(&ctx.stores.listed),
                move |change| {
                    tell(&stores, &triggers, change);
                },
            );
            let reconcile = $reconcile;
            let run = control(
                stream,
                ctx.stores.$field.store(),
                queued,
                (Arc::clone(&ctx), Arc::clone(&metrics)),
                $at_once,
                reconcile,
                stop.clone(),
            );
            tasks.push(run.map(|()| stringify!($field)).boxed());
        }};
    }

    let maps_changed = Arc::new(ClusterMapsChanged::default());
    let maps = Arc::clone(&maps_changed);
    kind!(
        providers,
        emco_crds::ClusterProvider,
        AT_ONCE,
        global(|c, n| Box::pin(async move { cluster_provider::reconcile(&c, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::ClusterProvider>| {
            triggers.provider(stores);
            maps.provider(stores, &change);
        }
    );
    let cluster_changed = ClusterChanged::default();
    kind!(
        clusters,
        Cluster,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { cluster::reconcile(&c, &ns, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, Cluster>| if cluster_changed
            .changed(&change)
        {
            triggers.cluster(stores, change.object);
            cluster_maps_changed::cluster(stores, &change);
        }
    );
    let (project_sync, project_turns) = (Arc::clone(&sync), Arc::clone(&ctx));
    let maps = Arc::clone(&maps_changed);
    kind!(
        projects,
        emco_crds::Project,
        AT_ONCE,
        global(|c, n| Box::pin(async move { project::reconcile(&c, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::Project>| {
            // Before anybody looks again.
            for namespace in stores.suspended.note(change.object, change.gone) {
                project_turns.turns.stop_all(&namespace);
                project_sync.suspension_changed(&namespace);
            }
            triggers.project(stores, change.object);
            maps.project(stores, &change);
        }
    );
    kind!(
        clouds,
        emco_crds::LogicalCloud,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { logical_cloud::reconcile(&c, &ns, &n).await })),
        |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::LogicalCloud>| {
            let cloud = change.object;
            triggers.cloud(stores, cloud, change.gone);
            triggers.owner(namespace(cloud), &OwnerKind::LogicalCloud, name(cloud));
            triggers
                .referenced(stores, namespace(cloud), |dig| dig.spec.logical_cloud_ref.name == name(cloud));
        }
    );
    kind!(
        apps,
        emco_crds::CompositeApp,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { composite_app::reconcile(&c, &ns, &n).await })),
        |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::CompositeApp>| {
            let app = change.object;
            triggers.referenced(stores, namespace(app), |dig| dig.spec.composite_app_ref.name == name(app));
        }
    );
    kind!(
        profiles,
        emco_crds::CompositeProfile,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { composite_profile::reconcile(&c, &ns, &n).await })),
        |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::CompositeProfile>| {
            let profile = change.object;
            triggers.referenced(stores, namespace(profile), |dig| {
                dig.spec.composite_profile_ref.as_ref().is_some_and(|named| named.name == name(profile))
            });
        }
    );
    let intent_changed = IntentChanged::default();
    kind!(
        intents,
        emco_crds::GenericActionIntent,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { generic_action_intent::reconcile(&c, &ns, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::GenericActionIntent>| {
            if intent_changed.changed(&change) {
                triggers.intent(stores, namespace(change.object), name(change.object));
            }
        }
    );
    let (refs_changed, policy_changed) = (RefsChanged::default(), SyncPolicyChanged::default());
    let plan_changed = PlanChanged::default();
    let dig_sync = Arc::clone(&sync);
    let planner = Arc::clone(&ctx);
    let planned = Arc::clone(&triggers);
    ctx.turns.wake_with(move |namespace, name| planned.digs.enqueue(namespace, name));
    kind!(
        digs,
        emco_crds::DeploymentIntentGroup,
        DEPLOYMENTS_AT_ONCE,
        local(|c, ns, n| Box::pin(async move { deployment::reconcile(&c, &ns, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::DeploymentIntentGroup>| {
            let dig = change.object;
            let _stopped =
                planner.turns.changed(namespace(dig), name(dig), meta::generation(dig), meta::deleting(dig));
            if refs_changed.changed(&change) {
                triggers.dig(stores, dig, change.gone);
                triggers.owner(namespace(dig), &OwnerKind::DeploymentIntentGroup, name(dig));
            }
            if plan_changed.changed(&change) {
                triggers.plan(stores, dig);
            }
            if policy_changed.changed(&change) {
                dig_sync.policy_changed(&OwnerKind::DeploymentIntentGroup, namespace(dig), name(dig));
            }
        }
    );
    let approval_changed = ApprovalChanged::default();
    kind!(
        approvals,
        emco_crds::DeploymentApproval,
        AT_ONCE,
        local(|c, ns, n| Box::pin(async move { approval::reconcile(&c, &ns, &n).await })),
        move |stores: &Stores, triggers: &Triggers, change: Change<'_, emco_crds::DeploymentApproval>| {
            if approval_changed.changed(&change) {
                triggers.approval(stores, change.object);
            }
        }
    );

    let (rows_changed, content_changed) = (RowsChanged::default(), ContentChanged::default());
    let (s, w, shard_sync) = (stores.clone(), Arc::clone(&triggers), Arc::clone(&sync));
    tasks.push(drained(
        "shards",
        watch::<SyncShard>(
            Api::all(client.clone()),
            writers.shards,
            Arc::clone(&ctx.stores.listed),
            move |change| {
                if change.gone {
                    shard_sync.shard_gone(namespace(change.object), name(change.object));
                } else {
                    shard_sync.shard(change.object.clone());
                }
                w.shard(change.object);
                if let Some(clusters) = rows_changed.changed(&change) {
                    w.rows(&s, &clusters, change.object);
                }
                if content_changed.changed(&s, &change) {
                    w.content(&s, change.object);
                }
            },
        ),
    ));
    let w = Arc::clone(&triggers);
    tasks.push(drained(
        "appcontexts",
        watch::<emco_crds::AppContext>(
            Api::all(client.clone()),
            writers.contexts,
            Arc::clone(&ctx.stores.listed),
            move |change| {
                let owner = &change.object.spec.owner;
                w.owner(namespace(change.object), &owner.kind, &owner.name);
                w.producer(&owner.kind, namespace(change.object), &owner.name);
            },
        ),
    ));
    let (s, w) = (stores.clone(), Arc::clone(&triggers));
    tasks.push(drained(
        "namespaces",
        watch(Api::all(client.clone()), writers.namespaces, Arc::clone(&ctx.stores.listed), move |change| {
            w.namespace(&s, name(change.object));
            maps_changed.namespace(&s, &change);
        }),
    ));
    for (role, writer) in MemberRole::ALL.into_iter().zip(writers.members) {
        let (of, w) = (Arc::clone(&ctx), Arc::clone(&triggers));
        let bindings =
            watch_named(Api::<RoleBinding>::all(client.clone()), role.binding(), writer, move |change| {
                if let Some(project) = owned_namespace::project_of(&of, namespace(change.object)) {
                    w.projects.enqueue("", &project);
                }
            });
        tasks.push(drained(role.binding(), bindings));
    }
    tasks.push(
        sources::follow(client, Arc::clone(&ctx), Arc::clone(&triggers), stop.clone())
            .map(|()| "sources")
            .boxed(),
    );
    tasks.push(Collector::default().run(Arc::clone(&ctx)).map(|()| "collector").boxed());
    let following = health_rules::follow(Arc::clone(&ctx), sync.health_rules());
    tasks.push(following.map(|()| "health rules").boxed());
    tasks.push(give_back(Arc::clone(&ctx)).map(|()| "memory").boxed());
    let following = owners::orphans(Arc::clone(&ctx), Arc::clone(&triggers), Arc::clone(&metrics));
    tasks.push(following.map(|()| "orphans").boxed());
    let following = owners::ledgers(Arc::clone(&ctx), Arc::clone(&triggers));
    tasks.push(following.map(|()| "ledgers").boxed());
    tasks.push(cluster_maps::follow(Arc::clone(&ctx)).map(|()| "cluster maps").boxed());
    tasks.push(people(Arc::clone(&ctx), Arc::clone(&triggers)).map(|()| "people").boxed());
    tasks.push(charts(Arc::clone(&ctx), Arc::clone(&triggers)).map(|()| "charts").boxed());
    tasks.push(connections(Arc::clone(&ctx), Arc::clone(&triggers)).map(|()| "connections").boxed());

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

type Step = BoxFuture<'static, Reconciled>;

fn global(run: impl Fn(Arc<Context>, String) -> Step) -> impl Fn(Arc<Context>, String, String) -> Step {
    move |ctx, _, name| run(ctx, name)
}

fn local(
    run: impl Fn(Arc<Context>, String, String) -> Step,
) -> impl Fn(Arc<Context>, String, String) -> Step {
    run
}

fn drained<S: futures::Stream + Send + 'static>(
    what: &'static str,
    stream: S,
) -> BoxFuture<'static, &'static str> {
    stream.for_each(|_| futures::future::ready(())).map(move |()| what).boxed()
}
