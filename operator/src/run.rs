//! Runs the operator until it is stopped or cannot go on, and returns the one reason.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_controllers::api::world::system::SystemRandom;
use emco_controllers::driver::hub::HubApi;
use emco_controllers::driver::lease::{Identity, Keeper, Keeping, Lost, Pulse};
use emco_controllers::driver::metrics::Metrics;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::readiness::Readiness;
use crate::telemetry::{self, LogFilter};
use crate::version::{COMMIT, VERSION};
use crate::{http, limits, listener, probes};

mod prepare;
mod state;
mod work;

use state::Shown;

/// For what is under way when the operator is told to stop. Longer than a request to a cluster takes, so that none is
/// cut off; shorter than the 30 s after which Kubernetes kills.
const GRACE: Duration = Duration::from_secs(15);

/// Handles of the process that exist from its beginning.
pub struct Process {
    /// As the command line says.
    pub args: RunArgs,
    /// What is missing.
    pub readiness: Readiness,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// For `/debug/state`.
    pub shown: Arc<Shown>,
    /// Of the runtime that all this runs on.
    pub pulse: Arc<Pulse>,
    /// Cancelled when the process shall end.
    pub stop: CancellationToken,
}

/// Runs the operator.
pub fn main(args: RunArgs) -> ExitCode {
    let started = telemetry::start(&args.log, args.log_format).and_then(|log| {
        limits::raise_open_files();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Ok((log, runtime.context("the threads cannot be started")?))
    });
    let (log, runtime) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("emco-operator: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(Box::pin(serve(args, log)));
    runtime.shutdown_timeout(Duration::from_secs(2));
    match result {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("the operator ends: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Listens first, so that probes see why the rest waits.
async fn serve(args: RunArgs, log: LogFilter) -> anyhow::Result<()> {
    tracing::info!(version = VERSION.as_str(), namespace = args.namespace, "emco-operator starts");
    args.proxy()?;
    let readiness = Readiness::default();
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"), COMMIT);
    let shown = Arc::new(Shown::new(readiness.clone()));
    let pulse = Arc::new(Pulse::default());
    let probed = http::bind("--probe-listen", args.probe_listen).await?;
    let scraped = http::bind("--listen", args.listen).await?;
    let debug = http::bind("--debug-listen", args.debug_listen).await?;
    for (listener, flag) in [(&probed, "--probe-listen"), (&scraped, "--listen"), (&debug, "--debug-listen")]
    {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, flag, "listening");
    }
    let probed = probed.into_std().context("the listener of probes cannot be handed over")?;
    probes::start(probed, readiness.clone(), Arc::clone(&pulse))?;
    let stop = stop_on_signals()?;
    let state = Arc::clone(&shown);
    let listeners = async {
        tokio::join!(
            listener::serve(scraped, http::metrics(Arc::clone(&metrics))),
            listener::serve(debug, http::debug(Arc::new(move || state.show()), log)),
        )
    };
    let beating = Arc::clone(&pulse);
    // A task of its own: it beats while any thread of the runtime is free.
    tokio::spawn(async move { beating.beat().await });
    let metrics = Arc::clone(&metrics);
    let process = Process { args, readiness, metrics, shown, pulse, stop };
    tokio::select! {
        result = Box::pin(operate(process)) => result,
        _ = listeners => bail!("the listeners ended"),
    }
}

/// The first signal asks to end; a second one ends at once.
fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let token = stop.clone();
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be listened to")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened to")?;
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if again {
                tracing::warn!("told to stop a second time: ending at once");
                std::process::exit(130);
            }
            tracing::info!("told to stop: no new work is begun, what is under way may end within {GRACE:?}");
            token.cancel();
        }
    });
    Ok(stop)
}

async fn operate(process: Process) -> anyhow::Result<()> {
    let random = Arc::new(SystemRandom::new());
    if let Some(file) = &process.args.ca_bundle {
        trust(file).with_context(|| format!("--ca-bundle {}", file.display()))?;
    }
    let config = prepare::hub_config().await?;
    let identity = Identity::claim(&process.args.state_dir, random.as_ref()).map_err(anyhow::Error::msg)?;
    tracing::info!(hub = %config.cluster_url, identity = identity.as_str(), kept = identity.is_kept(), "connecting");
    let hub = HubApi::connect(config.clone(), process.metrics.requests())
        .context("the hub's connection settings cannot be used")?;
    let ready = prepare::wait_for_hub(&hub, &process);
    if process.stop.run_until_cancelled(ready).await.is_none() {
        return Ok(());
    }
    let mut keeper = keeper(&process, &config, identity).await?;
    process.shown.candidate(&keeper);
    process.metrics.watch_lease(keeper.fence());
    let Some(acquired) = process.stop.run_until_cancelled(keeper.acquired()).await else { return Ok(()) };
    let epoch = acquired?;
    process.metrics.leading(Some(epoch));
    process.shown.leading(epoch);
    let parts = work::Leader { config, hub, random, fence: keeper.fence(), epoch };
    let result = lead(&process, parts, keeper).await;
    process.metrics.leading(None);
    result
}

/// Has sources of charts trusted by the authorities of a file.
fn trust(file: &Path) -> anyhow::Result<()> {
    let pem = std::fs::read(file).context("it cannot be read")?;
    emco_controllers::chart::trust(&pem).map_err(anyhow::Error::msg)
}

/// Becomes a candidate, on a thread and with a connection apart from all work.
async fn keeper(process: &Process, config: &kube::Config, identity: Identity) -> anyhow::Result<Keeper> {
    let hub = (config.clone(), process.metrics.requests());
    let end = |lost: &Lost| {
        tracing::error!("the operator ends at once, since its work does not end by itself: {lost}");
        std::process::exit(1);
    };
    let keeping = Keeping::of(hub, &process.args.namespace, identity, Arc::clone(&process.pulse), end);
    Keeper::start(keeping).await.map_err(anyhow::Error::msg)
}

/// Why leading ended.
enum End {
    Stopped,
    Lost(Lost),
    Ended(anyhow::Result<()>),
}

/// Everything that writes runs in here, while the lease is renewed beside it.
async fn lead(process: &Process, parts: work::Leader, mut keeper: Keeper) -> anyhow::Result<()> {
    let halt = CancellationToken::new();
    let mut work = Box::pin(work::run(process, parts, halt.clone()));
    let mut end = tokio::select! {
        () = process.stop.cancelled() => End::Stopped,
        lost = keeper.lost() => End::Lost(lost),
        ended = &mut work => End::Ended(ended),
    };
    halt.cancel();
    if matches!(end, End::Stopped) {
        tokio::select! {
            lost = keeper.lost() => end = End::Lost(lost),
            ended = timeout(GRACE, &mut work) => match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => end = End::Ended(Err(error)),
                Err(_) => tracing::warn!("not everything ended within {GRACE:?}: it is cut off"),
            },
        }
    }
    // Whatever is left of the work ends here, before others may lead.
    drop(work);
    match end {
        End::Stopped => {
            keeper.release().await;
            Ok(())
        }
        End::Lost(lost) => {
            keeper.work_ended();
            Err(lost.into())
        }
        End::Ended(result) => {
            keeper.release().await;
            result
        }
    }
}
