//! Renews a held Lease until it is lost or released.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::record::Record;
use super::{Leading, LeaseSettings, Lost, explain};
use crate::api::{ApiError, ApiServerExt};

/// For giving the lease back on the way out; the next holder else waits for its end.
const RELEASE: Duration = Duration::from_secs(5);

/// How a renewal went, where it did not succeed.
enum Miss {
    Lost(Lost),
    /// Worth another try.
    Failed(String),
}

impl Leading<'_> {
    /// Renews until the lease is lost. The future may be dropped at any time: the lease then ends by itself, unless it is
    /// released.
    pub async fn keep(&mut self) -> Lost {
        let settings = &self.elector.settings;
        let (renew, retry) = (settings.renew, settings.retry);
        let mut due = self.elector.boot.now() + renew;
        let mut first_cause: Option<String> = None;
        loop {
            // Short sleeps: after the machine slept, the boot clock is ahead of what timers count.
            let left = due.saturating_sub(self.elector.boot.now());
            sleep(left.min(renew)).await;
            match self.renew().await {
                Ok(()) => {
                    due = self.elector.boot.now() + renew;
                    first_cause = None;
                }
                Err(Miss::Lost(lost)) => {
                    self.elector.fence.set(Duration::ZERO);
                    return lost;
                }
                Err(Miss::Failed(cause)) => {
                    let left = self.left();
                    let cause = first_cause.get_or_insert(cause).clone();
                    if left.is_zero() {
                        self.elector.fence.set(Duration::ZERO);
                        let seconds = self.elector.settings.patience.as_secs();
                        return Lost::Expired { lease: self.lease(), seconds, cause };
                    }
                    tracing::warn!(
                        cause,
                        left_s = left.as_secs(),
                        "the lease could not be renewed; trying again"
                    );
                    due = self.elector.boot.now() + retry.min(left);
                }
            }
        }
    }

    /// Until the lease is given up. Before that it may have ended for others: who of us writes it first has it then, and the
    /// fence is closed until that is known.
    fn left(&self) -> Duration {
        let LeaseSettings { duration, patience, .. } = self.elector.settings;
        (self.until + patience.saturating_sub(duration)).saturating_sub(self.elector.boot.now())
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.elector.settings.namespace, self.elector.settings.name)
    }

    /// One compare-and-swap. It counts from before it was sent: only then is the new end surely not later than what others
    /// can see.
    async fn renew(&mut self) -> Result<(), Miss> {
        let elector = self.elector;
        let asked = elector.boot.now();
        if self.left().is_zero() {
            return Err(Miss::Failed("the process was stopped, or the machine slept".to_owned()));
        }
        // A renewal that changes nothing is none: nobody sees it. So each says another time, whatever the wall clock does.
        self.said_ms = elector.wall.now_ms().max(self.said_ms.saturating_add(1));
        let wanted = self.record.renewed(self.said_ms, elector.settings.duration);
        let path = elector.settings.path();
        let error = match timeout(self.left(), elector.hub.replace(&path, &wanted)).await {
            Ok(Ok(object)) => {
                self.record = Record::new(object);
                self.until = asked + elector.settings.duration;
                elector.fence.set(self.until);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(Miss::Failed("no answer until the lease was given up".to_owned())),
        };
        // Another 404 is of a proxy, or of a hub that does not serve Leases yet: as long as the lease lasts, it is tried again.
        if error.lacks(&elector.settings.name) {
            return Err(Miss::Lost(Lost::Deleted(self.lease())));
        }
        if !error.is_conflict() && !matches!(error, ApiError::Unreachable { .. }) {
            return Err(Miss::Failed(explain(&elector.settings, &error)));
        }
        // Somebody wrote the Lease, perhaps we ourselves, in a request whose answer was lost.
        match timeout(self.left(), elector.hub.get_opt(&path)).await {
            Ok(Ok(Some(object))) => self.judge(Record::new(object), &error),
            Ok(Ok(None)) => Err(Miss::Lost(Lost::Deleted(self.lease()))),
            Ok(Err(_)) | Err(_) => Err(Miss::Failed(error.to_string())),
        }
    }

    fn judge(&mut self, record: Record, error: &ApiError) -> Result<(), Miss> {
        let version = |record: &Record| record.version().parse::<u64>().unwrap_or_default();
        if version(&record) < version(&self.record) {
            // What this process knows is of another past: it begins anew with what is stored.
            return Err(Miss::Lost(Lost::Restored(self.lease())));
        }
        let ours = record.holder() == self.elector.identity.as_str()
            && record.uid() == self.record.uid()
            && record.transitions() == self.epoch;
        if ours {
            // Its version is what the next try replaces.
            self.record = record;
            return Err(Miss::Failed(error.to_string()));
        }
        let lease = self.lease();
        Err(Miss::Lost(if record.holder().is_empty() {
            Lost::Emptied(lease)
        } else {
            Lost::Taken { lease, holder: record.holder().to_owned() }
        }))
    }

    /// Gives the lease back, so that the next holder need not wait. Call it when nothing writes any more.
    pub async fn release(self) {
        let elector = self.elector;
        elector.fence.set(Duration::ZERO);
        let wanted = self.record.released(elector.wall.now_ms());
        match timeout(RELEASE, elector.hub.replace(elector.settings.path(), &wanted)).await {
            Ok(Ok(_)) => tracing::info!("the lease is released"),
            // It is not ours any more, or it ends by itself.
            Ok(Err(error)) => tracing::warn!(%error, "the lease could not be released"),
            Err(_) => tracing::warn!("the lease could not be released: no answer within {RELEASE:?}"),
        }
    }
}
