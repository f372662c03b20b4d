//! Waits until the Lease is free, and takes it.

use std::time::Duration;

use emco_engine::selector::FieldSelector;
use futures::StreamExt;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::record::Record;
use super::{Elector, Leading, explain};
use crate::api::{ApiError, ApiResult, ApiServerExt, Method, Request, WatchEvent, pages};

/// Shards read at a time, to learn the highest epoch.
const SHARDS: &str = "/apis/emco.io/v1alpha1/syncshards";

/// A state of the Lease. `None`: there is no Lease.
struct Seen {
    record: Option<Record>,
    /// When it was read first, on our clock.
    first: Duration,
    /// From when on its time counts: later than `first` where reads failed meanwhile.
    since: Duration,
}

impl Elector {
    /// Waits until this process holds the lease. Failures of the hub are waited out; what rights are missing is logged.
    pub async fn acquire(&self) -> Leading<'_> {
        let mut seen: Option<Seen> = None;
        let mut told = String::new();
        loop {
            let error = match self.round(&mut seen, &mut told).await {
                Ok(Some(leading)) => return leading,
                Ok(None) => continue,
                Err(error) => explain(&self.settings, &error),
            };
            if told != error {
                tracing::warn!(error, "the lease cannot be read or written; trying again");
                told = error;
            }
            sleep(self.settings.renew).await;
        }
    }

    /// Reads, takes what is free, else waits for a change. `None`: look again.
    async fn round(&self, seen: &mut Option<Seen>, told: &mut String) -> ApiResult<Option<Leading<'_>>> {
        let read = self.hub.get_opt(self.settings.path()).await;
        if read.is_err() {
            self.blind(seen);
        }
        let record = read?.map(Record::new);
        let free = self.observe(seen, record.as_ref());
        match (record, free) {
            (Some(record), true) => self.take(&record).await,
            (None, true) => self.create().await,
            (None, false) => {
                // It was there and is gone: its holder may not know yet.
                sleep(self.settings.renew).await;
                Ok(None)
            }
            (Some(record), false) => {
                let holder = record.holder().to_owned();
                if *told != holder {
                    tracing::info!(holder, "standing by: another process holds the lease");
                    *told = holder;
                }
                self.wait(&record, seen).await;
                Ok(None)
            }
        }
    }

    /// Remembers what was read; whether the lease is free.
    fn observe(&self, seen: &mut Option<Seen>, record: Option<&Record>) -> bool {
        let now = self.boot.now();
        let known = match (seen.as_ref(), record) {
            // Nothing was ever seen of a lease, so nobody known to us holds it.
            (None, None) => return true,
            (Some(Seen { record: None, first, since }), None) => Some((*first, *since)),
            (Some(Seen { record: Some(before), first, since }), Some(record)) if before.same(record) => {
                Some((*first, *since))
            }
            _ => None,
        };
        let (first, since) = known.unwrap_or((now, now));
        *seen = Some(Seen { record: record.cloned(), first, since });
        let over = |duration: Duration| now.saturating_sub(since) >= duration;
        match record {
            None => over(self.settings.duration),
            Some(record) => {
                // Our own identity is nobody else's: what it held was held by a process that is no more.
                record.holder().is_empty()
                    || record.holder() == self.identity.as_str()
                    || over(record.duration(self.settings.duration))
            }
        }
    }

    async fn take(&self, record: &Record) -> ApiResult<Option<Leading<'_>>> {
        // Shards may be of a later time than the Lease, as after a restore of objects onto a hub whose operator ran before.
        let epoch = record.transitions().max(self.highest_epoch().await?).saturating_add(1);
        let (asked, now) = (self.boot.now(), self.wall.now_ms());
        let wanted = record.taken(self.identity.as_str(), epoch, now, self.settings.duration);
        let before = record.holder();
        match self.hub.replace(self.settings.path(), &wanted).await {
            Ok(object) => {
                tracing::info!(epoch, before, "the lease is ours");
                Ok(Some(self.leading(object, epoch, asked, now)))
            }
            // Somebody was faster, or a renewal came after all.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> ApiResult<Option<Leading<'_>>> {
        // Where there were shards before the Lease, their epoch must not go down: the API server would refuse every write.
        let epoch = self.highest_epoch().await?.saturating_add(1);
        let (asked, now) = (self.boot.now(), self.wall.now_ms());
        let wanted = Record::fresh(&self.settings.namespace, &self.settings.name).taken(
            self.identity.as_str(),
            epoch,
            now,
            self.settings.duration,
        );
        match self.hub.create(self.settings.collection(), &wanted).await {
            Ok(object) => {
                tracing::info!(epoch, "the lease is new and ours");
                Ok(Some(self.leading(object, epoch, asked, now)))
            }
            Err(error) if error.already_exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn leading(&self, object: Value, epoch: i64, asked: Duration, said_ms: i64) -> Leading<'_> {
        let until = asked + self.settings.duration;
        self.fence.set(until);
        Leading { elector: self, record: Record::new(object), epoch, until, said_ms }
    }

    /// The highest epoch of stored shards: one list for each takeover. Where every other read fails it is asked for once more, or
    /// nobody would become leader.
    async fn highest_epoch(&self) -> ApiResult<i64> {
        match self.listed_epoch().await {
            Err(ApiError::Unreachable { .. }) => self.listed_epoch().await,
            answer => answer,
        }
    }

    async fn listed_epoch(&self) -> ApiResult<i64> {
        let mut highest = 0;
        // A full shard has some 100 KiB, and its status as much again: a page stays far below the longest answer.
        let request = Request::new(Method::Get, SHARDS).query("limit", "40");
        pages(self.hub.as_ref(), request, |shard| {
            let epoch = shard.pointer("/spec/epoch").and_then(Value::as_i64);
            highest = highest.max(epoch.unwrap_or(0));
        })
        .await?;
        Ok(highest)
    }

    /// Returns when the Lease is worth another look: free, gone, or unchanged for as long as it lasts. While its holder
    /// renews it, this only listens.
    async fn wait(&self, record: &Record, seen: &mut Option<Seen>) {
        let request = Request::new(Method::Get, self.settings.collection())
            .fields(&FieldSelector::name(&self.settings.name))
            .query("resourceVersion", record.version());
        let mut events = match self.hub.watch(request).await {
            Ok(events) => events,
            Err(error) => return self.pause(&error).await,
        };
        loop {
            let Some(Seen { record: Some(known), since, .. }) = seen.as_ref() else { return };
            let left = (*since + known.duration(self.settings.duration)).saturating_sub(self.boot.now());
            // Never longer than a renewal: the boot clock may have jumped while this machine slept.
            match timeout(left.min(self.settings.renew), events.next()).await {
                Err(_) => {
                    if left <= self.settings.renew {
                        return;
                    }
                }
                Ok(Some(Ok(WatchEvent::Applied(object)))) => {
                    let record = Record::new(object);
                    if record.name() == self.settings.name && self.observe(seen, Some(&record)) {
                        return;
                    }
                }
                Ok(Some(Ok(WatchEvent::Bookmark(_)))) => {}
                Ok(Some(Ok(WatchEvent::Deleted(_)))) => return,
                Ok(Some(Err(error))) => return self.pause(&error).await,
                Ok(None) => return sleep(self.settings.renew).await,
            }
        }
    }

    /// Who cannot read the Lease does not see renewals, and the holder may have no answer either: once the hub answers again,
    /// the holder has the time of a renewal before the lease counts as over. But not later than the holder gives it up: of a
    /// hub that answers every other time, somebody becomes leader, too.
    fn blind(&self, seen: &mut Option<Seen>) {
        let Some(Seen { record, first, since }) = seen else { return };
        let lease = &self.settings;
        let duration = record.as_ref().map_or(lease.duration, |record| record.duration(lease.duration));
        let wanted = (self.boot.now() + lease.renew * 2).saturating_sub(duration);
        let latest = *first + lease.patience.saturating_sub(duration);
        *since = (*since).max(wanted.min(latest));
    }

    async fn pause(&self, error: &ApiError) {
        tracing::debug!(%error, "the watch of the lease ended");
        sleep(self.settings.renew).await;
    }
}
