//! Turns what a pass found into the row's status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::State;
use emco_crds::fields::Time;
use emco_crds::sync_shard::status::{
    Applied, Connectivity, RowApp, RowCounts, RowError, RowStatus, RowUnready, Stripped,
};
use emco_engine::identity::Identity;
use emco_engine::shard;
use tokio::time::Instant;

use super::super::errors::{Retry, Trouble, cut};
use super::super::fleet::FleetGate;
use super::super::work::Work;
use super::unready::Unready;
use super::{Job, foreign};

mod identity;
mod late;

/// Objects of one app, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub total: i64,
    pub applied: i64,
    pub failed: i64,
    pub ready: i64,
    pub not_ready: i64,
    pub absent: i64,
}

/// What a pass found.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // independent answers, none of them a state
pub(super) struct Facts {
    /// When the pass began.
    pub begun: Option<Instant>,
    pub unreachable: bool,
    /// The cluster was not asked anything: whether it can be reached is as it was.
    pub unasked: bool,
    /// Nothing new is known of the objects: the numbers of the last pass stay.
    pub keep: bool,
    pub apps: BTreeMap<String, Count>,
    /// The first trouble that counts most.
    pub error: Option<RowError>,
    /// All that the server said of it, where the row has no room for that.
    pub words: Option<String>,
    /// Only somebody's doing helps against the trouble.
    pub failure: bool,
    /// Objects that others made under names that are wanted, and who has each.
    pub foreign: BTreeMap<Identity, String>,
    /// The app of the trouble has failed objects or hooks.
    pub failed_apps: Vec<String>,
    /// The first objects that are not ready.
    pub unready: Vec<Unready>,
    /// What the row says of them; `None`: as it was.
    pub named: Option<Vec<RowUnready>>,
    /// Apps that wait for others, and for what: how their objects are is not said.
    pub waiting: BTreeMap<Arc<str>, String>,
    /// One of them waits for other clusters.
    pub awaits_fleet: bool,
    /// All apps of the target were looked at: what is said of them elsewhere is of this pass.
    pub judged: bool,
    /// The cluster answers and may not be worked on: what its apps had reached counts for nobody.
    pub barred: bool,
    /// How other clusters stand that are waited for, without times.
    pub elsewhere: Vec<FleetGate>,
    /// Objects that are still to be removed.
    pub left: i64,
    /// The first of them that is on its way, and how it leaves.
    pub leaving: Option<(Identity, Box<str>)>,
    /// When to look again.
    pub wake: Option<Instant>,
}

impl Facts {
    /// Notes a trouble; failures count more than waiting, the first of each more than later ones.
    pub fn trouble(&mut self, app: Option<&str>, id: Option<&Identity>, trouble: &Trouble, attempts: u32) {
        let failure = trouble.is_failure();
        if failure && let Some(app) = app {
            self.failed_apps.push(app.to_owned());
        }
        if let (Some(id), Some(holder)) = (id, &trouble.holder) {
            self.foreign.insert(id.clone(), holder.clone());
        }
        if self.error.is_some() && (self.failure || !failure) {
            return;
        }
        self.failure = failure;
        self.words.clone_from(&trouble.whole);
        self.error = Some(RowError {
            app: app.map(str::to_owned),
            resource: id.map(Identity::to_string),
            reason: trouble.reason.to_owned(),
            message: cut(&trouble.message),
            // Attempts of waiting work would be a write each.
            attempts: if trouble.retry == Retry::WhenBack { 0 } else { i64::from(steps(attempts)) },
        });
    }

    /// Notes an object on its way out; the first in their order, whatever the order of answers.
    pub fn leaves(&mut self, id: Identity, how: Option<Box<str>>) {
        if let Some(how) = how
            && self.leaving.as_ref().is_none_or(|(first, _)| id < *first)
        {
            self.leaving = Some((id, how));
        }
    }

    /// Notes that the cluster answers and may not be worked on.
    pub fn bar(&mut self, trouble: &Trouble) {
        self.trouble(None, None, trouble, 1);
        (self.keep, self.barred) = (true, true);
    }

    /// Takes in what a removal found that everything else waits for.
    pub fn absorb(&mut self, removal: Self) {
        self.keep |= removal.keep;
        self.left = removal.left;
        self.unready.extend(removal.unready);
        self.failed_apps.extend(removal.failed_apps);
        if let Some(at) = removal.wake {
            self.wake_at(at);
        }
        if removal.error.is_some() && (self.error.is_none() || removal.failure && !self.failure) {
            self.failure = removal.failure;
            self.error = removal.error;
            self.words = removal.words;
        }
    }

    /// Asks for another look at this time. What was due when the pass began has its turn in it, and must not hide a later time.
    pub fn wake_at(&mut self, at: Instant) {
        if self.begun.is_some_and(|begun| at <= begun) {
            return;
        }
        self.wake = Some(self.wake.map_or(at, |before| before.min(at)));
    }

    /// How many objects were looked at.
    pub fn objects(&self) -> i64 {
        self.apps.values().map(|count| count.total).sum::<i64>() + self.left
    }

    fn sum(&self) -> Count {
        let mut sum = Count::default();
        for count in self.apps.values() {
            sum.total += count.total;
            sum.applied += count.applied;
            sum.failed += count.failed;
            sum.ready += count.ready;
            sum.not_ready += count.not_ready;
            sum.absent += count.absent;
        }
        sum
    }
}

/// Tries as they are reported: 1, 2, 4, 8 ...: a status is not written for every one.
fn steps(attempts: u32) -> u32 {
    if attempts == 0 { 0 } else { 1 << attempts.ilog2() }
}

/// The row's status after a pass.
pub(super) fn status(job: &mut Job, work: &Work, facts: &Facts) -> RowStatus {
    let complete = job.is_complete(work);
    let sum = facts.sum();
    let mark = (sum.applied, sum.ready, facts.left);
    if job.memory.progress.1 != mark {
        job.memory.progress = (Instant::now(), mark);
    }
    if facts.judged && facts.awaits_fleet && job.memory.elsewhere != facts.elsewhere {
        // The clusters that are waited for go forward.
        job.memory.progress.0 = Instant::now();
        job.memory.elsewhere.clone_from(&facts.elsewhere);
    }
    let deadline = job.policy().progress_deadline;
    let unready_since = unready_since(job, facts, sum, complete);
    let stuck = complete && waited(job, unready_since.as_ref()).is_some_and(|waited| waited >= deadline);
    // Nothing goes forward while it is suspended, and nobody is late.
    let stopped = job.memory.pace.suspended && !complete;
    let late = stuck || !complete && !stopped && job.memory.progress.0.elapsed() >= deadline;
    let state = match (stopped, work.target.is_some()) {
        (true, true) => State::InstantiateStopped,
        (true, false) => State::TerminateStopped,
        (false, _) => state(job, work, complete, stuck, facts.failure || late),
    };
    let before = &job.memory.status;
    let connectivity = match facts.unreachable {
        true => Connectivity::Unreachable,
        false if facts.unasked => before.connectivity,
        false => Connectivity::Reachable,
    };
    // What becomes of the state of a cluster that is away does not make it away since then.
    let away = connectivity == Connectivity::Unreachable;
    let same = before.connectivity == connectivity && (away || before.state == state);
    let since = before.since.clone().filter(|_| same).or_else(|| now(job));
    let mut error =
        if late && !facts.failure { Some(late::error(facts, deadline)) } else { facts.error.clone() };
    if let Some(error) = &mut error {
        foreign::name_all(error, &facts.foreign);
    }
    let fresh = RowCounts {
        applied: sum.applied,
        failed: sum.failed,
        pending: sum.total - sum.applied - sum.failed,
        deleted: job.memory.deleted,
        ready: sum.ready,
        not_ready: sum.not_ready,
        not_present: sum.absent,
        unknown: 0,
    };
    let (total, counts) = match (facts.unreachable, facts.keep) {
        (true, _) => (before.total, unseen(before)),
        (false, true) => (before.total, before.counts.unwrap_or_default()),
        (false, false) => (sum.total, fresh),
    };
    RowStatus {
        id: work.id,
        cluster: job.ctx.edge.id.as_str().to_owned(),
        connectivity,
        state,
        target: work.target.as_ref().filter(|_| shard::is_failure(state)).map(|target| target.name.clone()),
        failed_at: shard::is_failure(state).then_some(work.retargeted),
        applied: job.memory.applied.clone(),
        counts: Some(counts),
        apps: if facts.keep {
            before.apps.clone()
        } else {
            apps(job, facts, state, since.as_ref(), error.as_ref())
        },
        hooks: job.memory.hooks.clone(),
        gates: if complete { None } else { job.memory.gates.row() },
        total,
        applied_count: counts.applied,
        ready: counts.ready,
        unknown: counts.unknown,
        since,
        error,
        unready: facts.named.clone().unwrap_or_else(|| before.unready.clone()),
        unready_since,
        drift: job.memory.drift.row(),
        left_out: job.memory.left_out.row(),
        rewritten: job.memory.rewritten.row(),
        stripped: stripped(job),
        took_over: job.took_over(),
    }
}

/// Objects that stay, without the owner label; those that were found before a restart are still there.
fn stripped(job: &Job) -> Option<Stripped> {
    let found = &job.memory.stripped;
    if found.is_empty() {
        return job.memory.status.stripped.clone();
    }
    let said = |(id, why): (&Identity, &Option<String>)| match why {
        Some(why) => format!("{id} ({why})"),
        None => id.to_string(),
    };
    let first = found.iter().take(shard::MOST_STRIPPED).map(said).collect();
    Some(Stripped { objects: i64::try_from(found.len()).unwrap_or(i64::MAX), first })
}

/// Since when nothing of a completely applied target became ready although something is not. It is stored, so that a restart does not
/// begin anew; another target does.
fn unready_since(job: &Job, facts: &Facts, sum: Count, complete: bool) -> Option<Time> {
    let before = &job.memory.status;
    if facts.keep || facts.unreachable {
        return before.unready_since.clone();
    }
    if !complete || sum.ready == sum.total {
        return None;
    }
    let combination = |applied: Option<&Applied>| applied.and_then(|applied| applied.combination.clone());
    let same = combination(before.applied.as_ref()) == combination(job.memory.applied.as_ref())
        && (before.ready, before.applied_count) == (sum.ready, sum.applied);
    before.unready_since.clone().filter(|_| same).or_else(|| now(job))
}

/// How long until a row whose objects are all applied counts as failed, because they do not become ready.
pub(super) fn until_stuck(job: &Job) -> Option<Duration> {
    let waited = waited(job, job.memory.status.unready_since.as_ref())?;
    // Times are stored in whole seconds.
    let left = (job.policy().progress_deadline + Duration::from_secs(1)).checked_sub(waited)?;
    (!left.is_zero()).then_some(left)
}

/// How long that is; a time in the future, of a clock that was wrong, is no time at all.
fn waited(job: &Job, since: Option<&Time>) -> Option<Duration> {
    let seconds = job.ctx.clock.now_ms() / 1000 - since?.0.as_second();
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Numbers of a cluster that cannot be seen: what was applied stays so, how it is nobody knows.
fn unseen(before: &RowStatus) -> RowCounts {
    let counts = before.counts.unwrap_or_default();
    RowCounts {
        ready: 0,
        not_ready: 0,
        not_present: 0,
        unknown: before.total,
        applied: before.applied_count,
        ..counts
    }
}

/// EMCO's word for the row.
fn state(job: &Job, work: &Work, complete: bool, stuck: bool, failed: bool) -> State {
    let before = job.memory.status.state;
    let had = job.memory.applied.as_ref().is_some_and(|applied| applied.combination.is_some());
    match (work.target.is_some(), complete, failed) {
        (false, true, _) => State::Terminated,
        (false, false, false) => State::Terminating,
        (false, false, true) => State::TerminateFailed,
        (true, true, true) if stuck && updates(before) => State::UpdateFailed,
        (true, true, true) if stuck => State::InstantiateFailed,
        (true, true, _) if updates(before) => State::Updated,
        (true, true, _) => State::Instantiated,
        (true, false, false) if had => State::Updating,
        (true, false, true) if had => State::UpdateFailed,
        (true, false, false) => State::Instantiating,
        (true, false, true) => State::InstantiateFailed,
    }
}

const fn updates(before: State) -> bool {
    matches!(before, State::Updating | State::UpdateFailed | State::Updated)
}

/// Apps that are not as wanted. What one waits for is not said where the row's error says it.
fn apps(
    job: &Job,
    facts: &Facts,
    state: State,
    since: Option<&Time>,
    error: Option<&RowError>,
) -> Vec<RowApp> {
    let mut all = Vec::new();
    for (name, count) in &facts.apps {
        let failed = facts.failed_apps.contains(name);
        if count.ready == count.total && !failed && !facts.waiting.contains_key(name.as_str()) {
            continue;
        }
        let state = match state {
            State::Instantiating | State::InstantiateFailed if failed => State::InstantiateFailed,
            State::Updating | State::UpdateFailed if failed => State::UpdateFailed,
            State::InstantiateFailed => State::Instantiating,
            State::UpdateFailed => State::Updating,
            other => other,
        };
        let before = job.memory.status.apps.iter().find(|app| app.app == *name && app.state == state);
        let since = before.and_then(|app| app.since.clone()).or_else(|| since.cloned());
        let said = error.filter(|error| error.app.as_ref() == Some(name)).map(|error| error.message.as_str());
        let waits_for = facts.waiting.get(name.as_str());
        let waits_for = waits_for.filter(|waits| said.is_none_or(|said| !said.contains(waits.as_str())));
        all.push(RowApp {
            app: name.clone(),
            waits_for: waits_for.cloned(),
            state,
            since,
            ready: count.ready,
            total: count.total,
        });
    }
    all
}

pub(super) fn now(job: &Job) -> Option<Time> {
    jiff::Timestamp::from_second(job.ctx.clock.now_ms() / 1000).ok().map(Time)
}

/// When the row counts as failed for want of progress, for a timer.
pub(super) fn deadline(job: &Job) -> Instant {
    job.memory.progress.0 + job.policy().progress_deadline
}
