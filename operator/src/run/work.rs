//! Runs every controller under the lease until told to halt.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use emco_controllers::api::account::Account;
use emco_controllers::api::world::World;
use emco_controllers::api::world::system::{SystemClock, SystemRandom};
use emco_controllers::chart::{ChartLimits, ChartStore};
use emco_controllers::driver::hub::{Fenced, HubApi, own_hosts};
use emco_controllers::driver::installation;
use emco_controllers::driver::lease::LeaseFence;
use emco_controllers::driver::{Parts, drive};
use emco_controllers::object::context::HubContext;
use emco_controllers::object::refusals::Refusals;
use emco_controllers::publish::{PublisherParts, Publishers};
use emco_controllers::reconcile::context::Context;
use emco_controllers::remote::dialer::{Dialer, DialerSettings, NoProxy, SystemResolver};
use emco_controllers::remote::{EdgeSettings, Pool, PoolSettings};
use emco_controllers::store::{RevisionSettings, Revisions};
use emco_controllers::stores::{Stores, stores};
use emco_controllers::sync::gate::SPARE;
use emco_controllers::sync::{Sync, SyncContext, SyncSettings};
use emco_engine::snapshot::Installation;
use emco_operator::cli::Operator;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Process;
use crate::policies::StoredPolicies;

/// Between two tries to read the installation's keys.
const PAUSE: Duration = Duration::from_secs(2);

/// What the leader has.
pub struct Leader {
    /// How the hub is reached.
    pub config: kube::Config,
    /// The hub.
    pub hub: HubApi,
    /// Randomness.
    pub random: Arc<SystemRandom>,
    /// Open while the lease is ours.
    pub fence: Arc<LeaseFence>,
    /// Of the lease.
    pub epoch: i64,
}

/// Works until `halt`. Ending before that is an error.
pub async fn run(process: &Process, leader: Leader, halt: CancellationToken) -> anyhow::Result<()> {
    let Leader { config, hub, random, fence, epoch } = leader;
    let args = &process.args;
    let Some(keys) = halt.run_until_cancelled(keys(process, &hub, &random)).await else { return Ok(()) };
    let (keys, account) = keys?;
    let keys = Arc::new(keys);

    let resolver = Arc::new(SystemResolver::new().map_err(anyhow::Error::msg)?);
    let dialer = Dialer::new(
        DialerSettings {
            allow_edge_addresses: args.allow_edge_address.clone(),
            hub: own_hosts(&config, &args.hub_host),
            proxy: args.proxy()?,
            no_proxy: NoProxy::new(&args.no_proxy),
            max_connects: usize::from(args.max_connects),
            ..DialerSettings::default()
        },
        resolver,
    );
    let in_flight = usize::from(args.edge_in_flight);
    // One more than all deployments together may use: a probe never waits for slow requests of a tenant.
    let with_probes = in_flight + SPARE + 1;
    let settings = PoolSettings {
        edge: EdgeSettings { in_flight: with_probes, ..EdgeSettings::default() },
        requests: process.metrics.requests(),
        ..PoolSettings::default()
    };
    let (clock, client) = (Arc::new(SystemClock), hub.client());
    let pool = Pool::new(settings, Arc::clone(&dialer), clock.clone(), random.clone());
    let parts = PublisherParts::over_http(Arc::clone(&dialer), fence.clone(), clock.clone(), &keys.id);
    let publishers = Publishers::new(parts, &halt);
    let charts = ChartStore::new(args.state_dir.join("charts"), dialer, ChartLimits::default())
        .map_err(|error| anyhow!("the cache of charts cannot be used: {error}"))?;
    // A process that was stopped and wakes up finds the fence closed before it has learnt that another one leads.
    let hub = Arc::new(Fenced::new(Arc::new(hub), fence.clone()));
    let world = World { hub, edges: pool.clone(), clock, random };
    let (stores, writers) = stores();
    let refusals = Arc::<Refusals>::default();
    let sync = Sync::new(SyncContext {
        world: world.clone(),
        connections: pool.clone(),
        publishers: Arc::clone(&publishers),
        installation: Arc::clone(&keys),
        refusals: Arc::clone(&refusals),
        namespace: args.namespace.clone(),
        policies: Arc::new(StoredPolicies::new(stores.clone())),
        fence,
        epoch,
        settings: SyncSettings { in_flight, ..SyncSettings::default() },
    });
    process.metrics.watch_pool(&pool);
    process.metrics.watch_sync(sync.metrics());
    let stored_bytes = u64::from(args.stored_mebibytes) * 1024 * 1024;
    process.metrics.watch_stores(&stores, stored_bytes);
    process.shown.working(pool.clone(), sync.metrics());
    let answering = pool.clone();
    let reached = HubContext {
        account,
        epoch,
        publishers,
        refusals,
        pulse: Arc::clone(&process.pulse),
        ..HubContext::new(world, stores.clone(), pool, keys, &args.namespace)
    };
    let revisions = Revisions::new(RevisionSettings {
        unreferenced_for: Duration::from_secs(args.unreferenced_seconds.into()),
        stored_bytes,
        ..RevisionSettings::default()
    });
    let revisions = revisions.beside(Arc::clone(&sync));
    let mut ctx = Context::new(reached, revisions, charts, process.metrics.planning());
    ctx.answers = Arc::new(Operator::new(client.clone(), args.namespace.clone(), answering));
    let ctx = Arc::new(ctx);

    let parts =
        Parts { ctx, writers, client, sync: Arc::clone(&sync), metrics: Arc::clone(&process.metrics) };
    let driving = async {
        let result = drive(parts, halt.clone()).await;
        halt.cancel();
        result
    };
    let syncing = async {
        // Before all deployments and projects were read, nobody knows which of them are suspended.
        if halt.run_until_cancelled(stores.suspensions_listed()).await.is_some() {
            sync.run(halt.clone()).await;
        }
        let early = !halt.is_cancelled();
        halt.cancel();
        early
    };
    let loading = halt.run_until_cancelled(first_lists(process, &stores));
    let (driven, early, _) = tokio::join!(Box::pin(driving), Box::pin(syncing), loading);
    driven?;
    if early { Err(anyhow!("the sync engine ended although nobody stopped it")) } else { Ok(()) }
}

/// What this installation is, and who we are in it.
async fn keys(
    process: &Process,
    hub: &HubApi,
    random: &SystemRandom,
) -> anyhow::Result<(Installation, Option<Account>)> {
    let hold = process.readiness.hold("installation", "its keys are not read yet");
    loop {
        let problem = match installation::load(hub, &process.args.namespace, random).await {
            Ok(keys) => match Account::of(hub).await {
                Ok(account) => return Ok((keys, account)),
                Err(error) => format!("the hub does not tell who we are: {error}"),
            },
            Err(error) if error.is_fatal() => {
                return Err(error).context("this installation has no usable keys");
            }
            Err(error) => error.to_string(),
        };
        if hold.explain(problem.clone()) {
            tracing::warn!(problem, "the installation's keys are not available; trying again");
        }
        sleep(PAUSE).await;
    }
}

/// Not ready while a kind was not listed once. A writer that is gone means the process ends anyway.
async fn first_lists(process: &Process, stores: &Stores) {
    let hold = process.readiness.hold("lists", "not everything on the hub was read yet");
    if let Some(kind) = stores.missing() {
        hold.explain(format!("{kind} and perhaps more kinds of the hub were not read yet"));
    }
    stores.loaded().await;
    drop(hold);
    tracing::info!("everything on the hub was read: working");
}
