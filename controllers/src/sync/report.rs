//! Writes results of rows as the status of one shard: the first change at once, then as often as its size allows, and
//! nothing where nothing changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use emco_crds::sync_shard::ShardRow;
use emco_crds::sync_shard::status::Connectivity;
use emco_crds::{RowStatus, SyncShard, SyncShardStatus};
use emco_engine::{conditions, shard};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::budget::Budget;
use super::fair::Claimant;
use super::line_bound::LineBound;
use super::metrics::{SyncMetrics, count};
use super::row_log::RowLog;
use crate::api::world::{Clock, Random};
use crate::api::{ApiError, ApiServer, ApiServerExt, parse};
use crate::object::{meta, status};

/// At most one status of a shard in this time, unless somebody does nothing before it is written, or it says for the first time that all
/// that the spec wants is done, or is ready.
const PAUSE: Duration = Duration::from_millis(500);
/// What only began is written after this time: most of what begins has ended by then, and that is written at once.
const BEGUN: Duration = Duration::from_millis(150);
/// Rows that are at work when another one ends are waited for so long: most of what begins together ends together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Bytes per second of one shard. All together share a budget.
const ONE: u64 = 256 * 1024;

/// Where jobs leave their results.
#[async_trait]
pub trait Rows: Send + Sync + 'static {
    /// The newest result of a row.
    fn set(&self, id: i64, status: RowStatus);
    /// The same, where nothing but the beginning of work is told.
    fn begun(&self, id: i64, status: RowStatus);
    /// Waits until the hub has the row's newest result as of now.
    async fn written(&self, id: i64);
}

struct State {
    shard: SyncShard,
    rows: BTreeMap<i64, RowStatus>,
    /// Grows with each change of a row.
    version: u64,
    /// Something besides beginnings is to be written.
    urgent: bool,
    /// Somebody does nothing before it is written.
    awaited: bool,
    /// The object is not there: nothing is written until it is again.
    gone: bool,
    /// The generation of the spec of which the hub was told that everything is ready. Where readiness comes and goes, it is told in the
    /// usual pace from then on.
    told_ready: Option<i64>,
}

impl State {
    /// Whether a row is on its way, as far as its last result tells.
    fn at_work(&self) -> bool {
        self.shard.spec.clusters.iter().any(|row| {
            self.rows.get(&row.id).is_none_or(|status| {
                let begun = matches!(
                    status.state,
                    emco_crds::State::Instantiating
                        | emco_crds::State::Updating
                        | emco_crds::State::Terminating
                );
                begun && status.error.is_none() && status.connectivity == Connectivity::Reachable
            })
        })
    }

    /// Whether the hub was told nothing yet of what the spec wants, and all of it is done: whoever wrote it goes on from there.
    fn is_answer(&self) -> bool {
        let status = self.shard.status.as_ref();
        let is_new = status.and_then(|status| status.observed_generation) != self.shard.metadata.generation;
        let is_done = |row: &ShardRow| {
            let status = self.rows.get(&row.id);
            status.is_some_and(|status| shard::is_complete(row, status.applied.as_ref()))
        };
        is_new && self.shard.spec.clusters.iter().all(is_done)
    }

    /// Whether everything that the spec wants is ready, and the hub was not told so yet: that is what people wait for.
    fn is_ready_at_last(&self) -> bool {
        self.told_ready != self.shard.metadata.generation && shard::is_ready(&self.shard.spec, &self.rows)
    }
}

/// A status that the hub does not have.
struct News {
    version: u64,
    shard: SyncShard,
    bytes: u64,
    /// Somebody does nothing before it is written.
    awaited: bool,
}

/// Writes the status of one shard.
pub struct Reporter {
    hub: Arc<dyn ApiServer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<SyncMetrics>,
    budget: Budget,
    who: Claimant,
    state: Mutex<State>,
    log: RowLog,
    changed: Notify,
    written: watch::Sender<u64>,
}

impl Reporter {
    /// A reporter that begins with what the shard's status says. `lines`: of the shard's owner.
    pub fn new(
        hub: Arc<dyn ApiServer>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        metrics: Arc<SyncMetrics>,
        budget: Budget,
        lines: Arc<LineBound>,
        shard: SyncShard,
    ) -> Arc<Self> {
        let (kind, name) = (&shard.spec.owner.kind, shard.spec.owner.name.as_str());
        let who = Claimant::new(shard.owner_namespace(), kind, name);
        let log = RowLog::new(lines);
        let rows = shard.status.as_ref().map(|s| shard::decode_status(&shard.spec, s)).unwrap_or_default();
        let state = Mutex::new(State {
            shard,
            rows,
            version: 0,
            urgent: false,
            awaited: false,
            gone: false,
            told_ready: None,
        });
        let (written, _) = watch::channel(0);
        Arc::new(Self {
            hub,
            clock,
            random,
            metrics,
            budget,
            who,
            state,
            log,
            changed: Notify::new(),
            written,
        })
    }

    /// The last known result of a row.
    pub fn row(&self, id: i64) -> Option<RowStatus> {
        self.state.lock().rows.get(&id).cloned()
    }

    /// The shard as it was read from the hub. An older version than the known one is our own past.
    pub fn refresh(&self, shard: SyncShard) {
        let mut state = self.state.lock();
        if meta::version(&shard) < meta::version(&state.shard)
            && shard.metadata.uid == state.shard.metadata.uid
        {
            return;
        }
        let observed = shard.status.as_ref().and_then(|s| s.observed_generation);
        let dirty = observed != shard.metadata.generation || state.gone;
        let ids: BTreeSet<i64> = shard.spec.clusters.iter().map(|row| row.id).collect();
        state.rows.retain(|id, _| ids.contains(id));
        state.shard = shard;
        state.gone = false;
        drop(state);
        if dirty {
            self.changed.notify_one();
        }
    }

    fn put(&self, id: i64, status: RowStatus, urgent: bool) {
        let mut state = self.state.lock();
        if state.rows.get(&id) == Some(&status) {
            return;
        }
        self.log.tell(&state.shard, state.rows.get(&id), &status);
        state.rows.insert(id, status);
        state.version += 1;
        state.urgent |= urgent;
        drop(state);
        self.changed.notify_one();
    }

    /// Writes until stopped.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.write_all() => {}
        }
    }

    async fn write_all(&self) {
        let mut failures: u32 = 0;
        loop {
            self.changed.notified().await;
            self.until(BEGUN, |state| state.urgent).await;
            // What changes in the same moment goes with it.
            sleep(Duration::from_millis(2)).await;
            if self.state.lock().urgent {
                self.until(TOGETHER, |state| state.awaited || !state.at_work()).await;
            }
            loop {
                match self.write().await {
                    Ok(bytes) => {
                        failures = 0;
                        if bytes > 0 {
                            self.pause(bytes).await;
                        }
                        break;
                    }
                    Err(error) => {
                        failures = failures.saturating_add(1);
                        if failures > 3 {
                            tracing::warn!(shard = self.name(), %error, "the status of a shard cannot be written");
                        }
                        let wait = 200_u64.saturating_mul(1 << failures.min(8)).min(30_000);
                        let wait = Duration::from_millis(wait + self.random.next() % (wait / 4 + 1));
                        sleep(wait.max(error.asks_for())).await;
                    }
                }
            }
        }
    }

    /// After a write. What somebody waits for ends it, as soon as the size of that write allows.
    async fn pause(&self, bytes: u64) {
        let least = Duration::from_millis(bytes.saturating_mul(1000) / ONE);
        sleep(least).await;
        let ends = |state: &State| state.awaited || state.is_answer() || state.is_ready_at_last();
        if self.until(PAUSE.saturating_sub(least), ends).await {
            self.changed.notify_one();
        }
    }

    /// Waits, but not longer than this. Whether something changed meanwhile.
    async fn until(&self, longest: Duration, met: impl Fn(&State) -> bool) -> bool {
        let longest = sleep(longest);
        tokio::pin!(longest);
        let mut changed = false;
        while !met(&self.state.lock()) {
            tokio::select! {
                () = self.changed.notified() => changed = true,
                () = &mut longest => break,
            }
        }
        changed
    }

    fn name(&self) -> String {
        self.state.lock().shard.metadata.name.clone().unwrap_or_default()
    }

    /// One write, if anything changed; its size.
    async fn write(&self) -> Result<u64, ApiError> {
        let Some(mut news) = self.news() else { return Ok(0) };
        if let Some(mut turn) = self.budget.ask(&self.who, news.bytes, news.awaited) {
            let mut awaited = news.awaited;
            loop {
                tokio::select! {
                    () = turn.granted() => break,
                    () = self.changed.notified() => if !awaited && self.state.lock().awaited {
                        awaited = true;
                        turn.hurry();
                    }
                }
            }
            // What came while it waited goes with it.
            let Some(fresh) = self.news() else { return Ok(0) };
            news = fresh;
        }
        let News { version, shard, bytes, awaited: _ } = news;
        let path = meta::path(&shard);
        match self.hub.send(status::patch(&shard, &shard.status)?.metadata()).await {
            Ok(answer) => {
                count(&self.metrics.status_writes);
                self.metrics.status_bytes.fetch_add(bytes, Ordering::Relaxed);
                self.take_in(status::written(shard, answer)?);
                self.written.send_replace(version);
                // What came meanwhile is written next.
                if self.state.lock().version != version {
                    self.changed.notify_one();
                }
                Ok(bytes)
            }
            Err(error) if error.lacks(meta::name(&shard)) => {
                self.state.lock().gone = true;
                Ok(0)
            }
            Err(error) if error.is_conflict() => {
                match self.hub.get_opt(&path).await? {
                    Some(object) => self.take_in(parse(&path, object)?),
                    None => self.state.lock().gone = true,
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// What is to be written now, if anything is.
    fn news(&self) -> Option<News> {
        let mut state = self.state.lock();
        if state.gone {
            return None;
        }
        let (awaited, version) = (state.awaited, state.version);
        (state.urgent, state.awaited) = (false, false);
        let shard = self.next(&state);
        if state.is_ready_at_last() {
            state.told_ready = state.shard.metadata.generation;
        }
        drop(state);
        let Some(shard) = shard else {
            self.written.send_replace(version);
            return None;
        };
        let status = serde_json::to_vec(&shard.status).map(|s| s.len()).unwrap_or_default();
        Some(News { version, shard, bytes: u64::try_from(status).unwrap_or(u64::MAX), awaited })
    }

    fn take_in(&self, shard: SyncShard) {
        let mut state = self.state.lock();
        if meta::version(&shard) >= meta::version(&state.shard) {
            state.shard = shard;
        }
    }

    /// The shard with the status it should have; `None` when it has it.
    fn next(&self, state: &State) -> Option<SyncShard> {
        let generation = state.shard.metadata.generation.unwrap_or_default();
        let before = state.shard.status.clone().unwrap_or_default();
        let mut status = SyncShardStatus {
            observed_generation: Some(generation),
            conditions: before.conditions.clone(),
            ..shard::encode_status(&state.shard.spec, meta::writes(&state.shard), &state.rows)
        };
        let (value, reason, message) = shard::ready_condition(&state.shard.spec, &state.rows);
        let now = jiff::Timestamp::from_second(self.clock.now_ms() / 1000).unwrap_or_default();
        conditions::set(&mut status.conditions, "Ready", value, reason, &message, generation, now);
        if state.shard.status.as_ref() == Some(&status) {
            return None;
        }
        let mut shard = state.shard.clone();
        shard.status = Some(status);
        Some(shard)
    }
}

#[async_trait]
impl Rows for Reporter {
    fn set(&self, id: i64, status: RowStatus) {
        self.put(id, status, true);
    }

    fn begun(&self, id: i64, status: RowStatus) {
        self.put(id, status, false);
    }

    async fn written(&self, _id: i64) {
        let wanted = {
            let mut state = self.state.lock();
            (state.urgent, state.awaited) = (true, true);
            state.version
        };
        self.changed.notify_one();
        // The sender lives as long as this reporter.
        let _ = self.written.subscribe().wait_for(|version| *version >= wanted).await;
    }
}
