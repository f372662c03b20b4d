//! Keeps the Lease on a thread, a runtime and a connection of its own, so that no work can delay a renewal.
//!
//! Work that is too busy to hear that the Lease is lost cannot end by itself. The keeper waits a moment and then ends the
//! process, so that nothing is sent which was allowed before.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::pulse::{BEAT, Pulse, STUCK, Silence};
use super::{Elector, Identity, LeaseFence, LeaseSettings, Lost};
use crate::api::ApiServer;
use crate::api::boot_clock::{BootClock, SystemBootClock};
use crate::api::requests::Requests;
use crate::api::world::Clock;
use crate::api::world::system::SystemClock;
use crate::driver::hub::HubApi;
use crate::sync::Fence;

/// For the work to end after the Lease is lost.
const END: Duration = Duration::from_secs(1);
/// Silence of the work after which, while the fence is closed, it does not end in time by itself.
const DEAF: Duration = Duration::from_secs(5);

/// What the keeper needs. Outside of this crate only [`Keeping::of`] makes one, so that what tests show of it is what runs.
pub struct Keeping {
    /// Connects to the hub; called on the keeper's own runtime, which then drives the connection. The error is a sentence.
    pub(super) connect: Box<dyn FnOnce() -> Result<Arc<dyn ApiServer>, String> + Send>,
    /// Judges the lease.
    pub(super) boot: Arc<dyn BootClock>,
    /// For people.
    pub(super) wall: Arc<dyn Clock>,
    /// Who we are.
    pub(super) identity: Identity,
    /// Times and names.
    pub(super) settings: LeaseSettings,
    /// Of the runtime that does the work.
    pub(super) pulse: Arc<Pulse>,
    /// Ends the process, since the lease is lost and the work did not end.
    pub(super) end: Box<dyn Fn(&Lost) + Send>,
}

impl Keeping {
    /// The Lease of an operator in this namespace, kept with a connection of its own to the hub, by the clocks of the machine.
    pub fn of(
        (config, requests): (kube::Config, Arc<Requests>),
        namespace: &str,
        identity: Identity,
        pulse: Arc<Pulse>,
        end: impl Fn(&Lost) + Send + 'static,
    ) -> Self {
        Self {
            connect: Box::new(move || match HubApi::connect(config, requests) {
                Ok(hub) => Ok(Arc::new(hub)),
                Err(error) => Err(format!("the hub's connection settings cannot be used: {error}")),
            }),
            boot: Arc::new(SystemBootClock),
            wall: Arc::new(SystemClock),
            identity,
            settings: LeaseSettings::of(namespace),
            pulse,
            end: Box::new(end),
        }
    }
}

#[derive(Clone, Debug)]
enum Phase {
    Waiting,
    Leading(i64),
    Lost(Lost),
    Released,
}

/// Takes part in the election, and keeps what it won. Dropped, it renews no more.
pub struct Keeper {
    identity: String,
    fence: Arc<LeaseFence>,
    phase: watch::Receiver<Phase>,
    release: CancellationToken,
    ended: CancellationToken,
    _quit: DropGuard,
}

/// What the thread and its owner say to each other.
struct Line {
    phase: watch::Sender<Phase>,
    release: CancellationToken,
    ended: CancellationToken,
    quit: CancellationToken,
}

impl Keeper {
    /// Starts the thread, which connects and becomes a candidate. The error is a sentence.
    pub async fn start(keeping: Keeping) -> Result<Self, String> {
        let (phase, told) = watch::channel(Phase::Waiting);
        let tokens = || CancellationToken::new();
        let (release, ended, quit) = (tokens(), tokens(), tokens());
        let identity = keeping.identity.as_str().to_owned();
        let line = Line { phase, release: release.clone(), ended: ended.clone(), quit: quit.clone() };
        let (sender, connected) = oneshot::channel();
        thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || run(keeping, &line, sender))
            .map_err(|error| format!("the thread that keeps the lease cannot be started: {error}"))?;
        let fence = connected.await.map_err(|_| "the thread that keeps the lease ended".to_owned())??;
        Ok(Self { identity, fence, phase: told, release, ended, _quit: quit.drop_guard() })
    }

    /// Who we are in the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Open while the lease is ours for longer than an edge request takes.
    pub fn fence(&self) -> Arc<LeaseFence> {
        Arc::clone(&self.fence)
    }

    /// Waits until this process holds the lease; the epoch of its reign.
    pub async fn acquired(&mut self) -> Result<i64, Lost> {
        match self.until(|phase| !matches!(phase, Phase::Waiting)).await? {
            Phase::Leading(epoch) => Ok(epoch),
            Phase::Lost(lost) => Err(lost),
            Phase::Waiting | Phase::Released => Err(Lost::Ended),
        }
    }

    /// Waits until the lease is lost. The work has a moment to end then.
    pub async fn lost(&mut self) -> Lost {
        match self.until(|phase| matches!(phase, Phase::Lost(_))).await {
            Ok(Phase::Lost(lost)) | Err(lost) => lost,
            Ok(_) => Lost::Ended,
        }
    }

    /// The work has ended, as it must when the lease is lost: the process may end in its own way.
    pub fn work_ended(&self) {
        self.ended.cancel();
    }

    /// Gives the lease back, so that the next holder need not wait. Call it when nothing writes any more.
    pub async fn release(mut self) {
        self.work_ended();
        self.release.cancel();
        let _ = self.until(|phase| matches!(phase, Phase::Lost(_) | Phase::Released)).await;
    }

    async fn until(&mut self, met: impl FnMut(&Phase) -> bool) -> Result<Phase, Lost> {
        // Without its thread nobody renews: the fence closes by itself.
        self.phase.wait_for(met).await.map(|phase| phase.clone()).map_err(|_| Lost::Ended)
    }
}

fn run(keeping: Keeping, line: &Line, connected: oneshot::Sender<Result<Arc<LeaseFence>, String>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = connected.send(Err(format!("the runtime that keeps the lease cannot be made: {error}")));
            return;
        }
    };
    runtime.block_on(async {
        let Keeping { connect, boot, wall, identity, settings, pulse, end } = keeping;
        let hub = match connect() {
            Ok(hub) => hub,
            Err(why) => {
                let _ = connected.send(Err(why));
                return;
            }
        };
        let elector = Elector::new(hub, boot, wall, identity, settings);
        if connected.send(Ok(elector.fence())).is_err() {
            return;
        }
        tokio::select! {
            () = elect(&elector, line, pulse, end.as_ref()) => {}
            () = line.quit.cancelled() => {}
        }
    });
    // What is left is a resolver that waits for a name server.
    runtime.shutdown_background();
}

async fn elect(elector: &Elector, line: &Line, pulse: Arc<Pulse>, end: &(dyn Fn(&Lost) + Send)) {
    let mut leading = elector.acquire().await;
    line.phase.send_replace(Phase::Leading(leading.epoch()));
    let fence = elector.fence();
    let lost = tokio::select! {
        lost = leading.keep() => lost,
        lost = stalled(&fence, pulse) => lost,
        () = line.release.cancelled() => {
            leading.release().await;
            line.phase.send_replace(Phase::Released);
            return;
        }
    };
    fence.set(Duration::ZERO);
    line.phase.send_replace(Phase::Lost(lost.clone()));
    let patience = if matches!(lost, Lost::Stuck(_)) { Duration::ZERO } else { END };
    if timeout(patience, line.ended.cancelled()).await.is_err() {
        end(&lost);
    }
}

/// Returns when the work has to be ended from here: it does not hear that the lease is about to end, or nothing at all.
pub(super) async fn stalled(fence: &LeaseFence, pulse: Arc<Pulse>) -> Lost {
    let mut silence = Silence::of(pulse);
    loop {
        sleep(BEAT).await;
        let silent = silence.look();
        if silent >= STUCK || silent >= DEAF && !fence.may_write() {
            return Lost::Stuck(silent.as_secs());
        }
    }
}
