//! What a kubelet does to the operator's container: its memory limit, its probes, and a new start after its end.
//!
//! A cgroup of our own would need rights that a machine for tests does not give. So the most memory that the process ever
//! had is read twenty times a second, and it is killed when that is above the limit. The limit of the chart and the probe of
//! the chart are the ones in force.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::bed::Bed;
use crate::operator::{Operator, SOON};
use crate::secrets::listening;
use crate::usage::Usage;

/// `resources.limits.memory` of the chart.
const MEMORY_BYTES: u64 = 2 << 30;
/// Of the chart's livenessProbe, with the default of Kubernetes for the time of one.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBE_TIME: Duration = Duration::from_secs(1);
const PROBE_FAILURES: u32 = 6;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was seen since [`Kubelet::take`] was called last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// The most resident memory of any of its processes.
    pub peak_bytes: u64,
    /// How often it ended or was ended, and was started again.
    pub restarts: u32,
    /// Probes that were not answered in time.
    pub missed_probes: u32,
}

/// Keeps one operator running.
#[derive(Default)]
pub struct Kubelet {
    seen: Mutex<Seen>,
    /// The peak of the process is to be forgotten.
    forget: AtomicBool,
}

impl Kubelet {
    /// What was seen since the last call. The peak begins anew with what the process has now.
    pub fn take(&self) -> Seen {
        self.forget.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Looks after the operator until dropped; answers only when it cannot be started again.
    pub async fn run(&self, bed: &Bed, operator: &mut Operator) -> Result<()> {
        let (mut probe, mut failures) = (None::<JoinHandle<bool>>, 0);
        let mut next_probe = Instant::now() + PROBE_EVERY;
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let process = operator.process();
            if self.forget.swap(false, Ordering::Relaxed) && process.is_running() {
                Self::reset_peak(process.pid())?;
            }
            // It may end between two looks.
            if let Ok(usage) = Usage::of(process.pid()) {
                self.note(|seen| seen.peak_bytes = seen.peak_bytes.max(usage.peak_rss_bytes));
                if usage.peak_rss_bytes > MEMORY_BYTES && process.is_running() {
                    process.kill().await?;
                }
            }
            if let Some(done) = probe.take_if(|probe| probe.is_finished()) {
                if done.await.unwrap_or(false) {
                    failures = 0;
                } else {
                    failures += 1;
                    self.note(|seen| seen.missed_probes += 1);
                }
            }
            if failures >= PROBE_FAILURES {
                process.kill().await?;
            }
            if !process.is_running() {
                self.note(|seen| seen.restarts += 1);
                operator.restart(bed).await?;
                (probe, failures, next_probe) = (None, 0, Instant::now() + PROBE_EVERY);
                continue;
            }
            if Instant::now() >= next_probe && probe.is_none() {
                next_probe = Instant::now() + PROBE_EVERY;
                if let Some(address) = said(operator, "--probe-listen") {
                    probe = Some(tokio::spawn(answers(address)));
                }
            }
        }
    }

    /// Forgets how much memory the process had, so that the next attack is charged with its own.
    pub fn reset_peak(pid: u32) -> Result<()> {
        let file = format!("/proc/{pid}/clear_refs");
        std::fs::write(&file, "5").with_context(|| format!("cannot write {file}"))
    }
}

/// Whether a process answers a probe in time, on a connection of its own.
pub async fn answers(address: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: emco\r\nconnection: close\r\n\r\n").await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.ends_with(b"200"))
    };
    matches!(tokio::time::timeout(PROBE_TIME, asked).await, Ok(Ok(true)))
}

/// Where the operator says that it serves metrics.
pub async fn public_address(operator: &Operator) -> Result<SocketAddr> {
    address(operator, "--listen").await
}

/// Where the operator says that it answers probes.
pub async fn probe_address(operator: &Operator) -> Result<SocketAddr> {
    address(operator, "--probe-listen").await
}

async fn address(operator: &Operator, flag: &str) -> Result<SocketAddr> {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(address) = said(operator, flag) {
            return Ok(address);
        }
        ensure!(
            Instant::now() < deadline,
            "the operator does not say where it listens:\n{}",
            operator.process().log_tail(20)
        );
        // The log is a file; nothing tells of its growth.
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What the log names last as the address of this flag.
fn said(operator: &Operator, flag: &str) -> Option<SocketAddr> {
    let log = std::fs::read_to_string(operator.process().log()).ok()?;
    listening(&log, flag)
}
