//! A Lease that others may hold comes in; the lease held by us goes out, after as long as that takes.

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::record::Record;
use super::{Elector, Leading, explain};
use crate::api::{ApiError, ApiResult, ApiServerExt, Method, Request, WatchEvent};

/// Shards read at a time, to learn the highest epoch.
const PAGE: &str = "100";
const SHARDS: &str = "/apis/emco.io/v1alpha1/syncshards";

/// A state of the Lease and since when, on our clock, we know it. `None`: there is no Lease.
struct Seen {
    record: Option<Record>,
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
        let record = self.hub.get_opt(&self.settings.path()).await?.map(Record::new);
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
            (Some(Seen { record: None, since }), None) => Some(*since),
            (Some(Seen { record: Some(before), since }), Some(record)) if before.same(record) => Some(*since),
            _ => None,
        };
        let since = known.unwrap_or(now);
        *seen = Some(Seen { record: record.cloned(), since });
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
        let epoch = record.transitions().saturating_add(1);
        let (asked, now) = (self.boot.now(), self.wall.now_ms());
        let wanted = record.taken(self.identity.as_str(), epoch, now, self.settings.duration);
        let before = record.holder();
        match self.hub.replace(&self.settings.path(), &wanted).await {
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
        match self.hub.create(&self.settings.collection(), &wanted).await {
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

    async fn highest_epoch(&self) -> ApiResult<i64> {
        let mut highest = 0;
        let mut next = String::new();
        loop {
            let mut request = Request::new(Method::Get, SHARDS).query("limit", PAGE);
            if !next.is_empty() {
                request = request.query("continue", next);
            }
            let page = match self.hub.send(request).await {
                Err(error) if error.is_not_found() => return Ok(highest),
                page => page?,
            };
            let epochs = page.pointer("/items").and_then(Value::as_array).into_iter().flatten();
            highest =
                epochs.filter_map(|shard| shard.pointer("/spec/epoch")?.as_i64()).fold(highest, i64::max);
            next = page
                .pointer("/metadata/continue")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .unwrap_or_default();
            if next.is_empty() {
                return Ok(highest);
            }
        }
    }

    /// Returns when the Lease is worth another look: free, gone, or unchanged for as long as it lasts. While its holder
    /// renews it, this only listens.
    async fn wait(&self, record: &Record, seen: &mut Option<Seen>) {
        let request = Request::new(Method::Get, self.settings.collection())
            .query("fieldSelector", format!("metadata.name={}", self.settings.name))
            .query("resourceVersion", record.version());
        let mut events = match self.hub.watch(request).await {
            Ok(events) => events,
            Err(error) => return self.pause(&error).await,
        };
        loop {
            let Some(Seen { record: Some(known), since }) = seen.as_ref() else { return };
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

    async fn pause(&self, error: &ApiError) {
        tracing::debug!(%error, "the watch of the lease ended");
        sleep(self.settings.renew).await;
    }
}
