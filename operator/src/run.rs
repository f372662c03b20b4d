//! Settings come in; the operator runs until it is stopped or cannot go on, and the one reason goes out.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_controllers::hub::HubApi;
use emco_controllers::lease::{Elector, Identity, Leading, LeaseSettings, Lost, SystemBootClock};
use emco_controllers::metrics::Metrics;
use emco_controllers::world::system::{SystemClock, SystemRandom};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::readiness::Readiness;
use crate::telemetry::{self, LogFilter};
use crate::{http, limits};

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
    tracing::info!(version = env!("CARGO_PKG_VERSION"), namespace = args.namespace, "emco-operator starts");
    args.proxy()?;
    let readiness = Readiness::default();
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
    let shown = Arc::new(Shown::new(readiness.clone()));
    let public = http::bind("--listen", args.listen).await?;
    let debug = http::bind("--debug-listen", args.debug_listen).await?;
    for (listener, flag) in [(&public, "--listen"), (&debug, "--debug-listen")] {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, flag, "listening");
    }
    let stop = stop_on_signals()?;
    let state = Arc::clone(&shown);
    let listeners = async {
        tokio::join!(
            http::serve(public, http::public(readiness.clone(), Arc::clone(&metrics))),
            http::serve(debug, http::debug(Arc::new(move || state.show()), log)),
        )
    };
    let process = Process { args, readiness: readiness.clone(), metrics: Arc::clone(&metrics), shown, stop };
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
    let config = prepare::hub_config().await?;
    let identity = Identity::claim(&process.args.state_dir, random.as_ref()).map_err(anyhow::Error::msg)?;
    tracing::info!(hub = %config.cluster_url, identity = identity.as_str(), kept = identity.is_kept(), "connecting");
    let hub = HubApi::connect(config.clone()).context("the hub's connection settings cannot be used")?;
    let ready = prepare::wait_for_hub(&hub, &process);
    if process.stop.run_until_cancelled(ready).await.is_none() {
        return Ok(());
    }
    let settings = LeaseSettings::of(&process.args.namespace);
    let elector = Elector::new(
        Arc::new(hub.clone()),
        Arc::new(SystemBootClock),
        Arc::new(SystemClock),
        identity,
        settings,
    );
    process.shown.elector(&elector);
    process.metrics.watch_lease(elector.fence());
    let Some(leading) = process.stop.run_until_cancelled(elector.acquire()).await else { return Ok(()) };
    process.metrics.leading(Some(leading.epoch()));
    process.shown.leading(leading.epoch());
    let result = lead(&process, config, hub, random, &elector, leading).await;
    process.metrics.leading(None);
    result
}

/// Why leading ended.
enum End {
    Stopped,
    Lost(Lost),
    Ended(anyhow::Result<()>),
}

/// Everything that writes runs in here, while the lease is renewed beside it.
async fn lead(
    process: &Process,
    config: kube::Config,
    hub: HubApi,
    random: Arc<SystemRandom>,
    elector: &Elector,
    mut leading: Leading<'_>,
) -> anyhow::Result<()> {
    let halt = CancellationToken::new();
    let parts = work::Leader { config, hub, random, fence: elector.fence(), epoch: leading.epoch() };
    let mut work = Box::pin(work::run(process, parts, halt.clone()));
    let end = {
        let mut keep = pin!(leading.keep());
        let mut end = tokio::select! {
            () = process.stop.cancelled() => End::Stopped,
            lost = &mut keep => End::Lost(lost),
            ended = &mut work => End::Ended(ended),
        };
        halt.cancel();
        if matches!(end, End::Stopped) {
            tokio::select! {
                lost = &mut keep => end = End::Lost(lost),
                ended = timeout(GRACE, &mut work) => match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => end = End::Ended(Err(error)),
                    Err(_) => tracing::warn!("not everything ended within {GRACE:?}: it is cut off"),
                },
            }
        }
        end
    };
    // Whatever is left of the work ends here, before others may lead.
    drop(work);
    match end {
        End::Stopped => {
            leading.release().await;
            Ok(())
        }
        End::Lost(lost) => Err(lost.into()),
        End::Ended(result) => {
            leading.release().await;
            result
        }
    }
}
