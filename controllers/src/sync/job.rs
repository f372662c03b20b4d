//! Brings one owner on one cluster to its row's target, and reports the row's status. A job is a loop around a pass; a
//! pass compares what shall be with what is, does what is due, and says when to look again. Nothing waits inside a pass
//! but for answers, so a new wish, a lost connection or the end of the process is met between two requests.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::RowStatus;
use emco_crds::sync_shard::status::Applied;
use emco_engine::snapshot::Installation;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::content::{Content, Source};
use super::edge::{Edge, NoSession, Session};
use super::errors::{Retry, Trouble};
use super::fair::Claimant;
use super::fleet::Fleet;
use super::line_bound::LineBound;
use super::metrics::{RowTime, count};
use super::policy::{Policies, Policy};
use super::report::Rows;
use super::suspension::Suspension;
use super::work::{Named, Work};
use crate::api::world::{Clock, Random};
use crate::object::Owner;
use crate::object::refusals::Refusals;

mod anew;
mod apply;
mod depends;
mod desired;
mod drift;
mod early;
mod fight;
mod finished;
mod first;
mod foreign;
mod halt;
mod hooks;
mod install;
mod look;
mod memory;
mod namespace;
mod prune;
mod remove;
mod rewritten;
mod rights;
mod row;
mod scan;
mod send;
mod suspended;
mod takeover;
mod undeclared;
mod unready;

use memory::{Key, Memory};
use row::Facts;
pub use undeclared::{TRIES_TO_KNOW, leave_out, leave_out_nulls};

/// Everything a job needs that does not change.
pub(super) struct JobContext {
    pub edge: Arc<Edge>,
    pub owner: Owner,
    /// Whose key proves for whom namespaces were made.
    pub installation: Arc<Installation>,
    /// Whole words of what clusters refuse.
    pub refusals: Arc<Refusals>,
    /// The owner's lines in the log.
    pub log: Arc<LineBound>,
    /// The owner at the gate of the cluster.
    pub claimant: Claimant,
    /// Field manager.
    pub manager: String,
    pub content: Arc<dyn Content>,
    pub policies: Arc<dyn Policies>,
    /// Whether the owner is suspended.
    pub suspension: Suspension,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub in_flight: usize,
    /// What other clusters have that apps of this owner wait for.
    pub fleet: Arc<Fleet>,
    /// Ends the job.
    pub stop: CancellationToken,
    /// Until then, a row that is complete is not looked at.
    pub calm_until: Instant,
    /// The work was abandoned: it waits for a cluster that may never return, and for nobody.
    pub abandoned: bool,
}

/// One owner on one cluster.
pub(super) struct Job {
    ctx: Arc<JobContext>,
    input: watch::Receiver<Arc<Work>>,
    rows: Arc<dyn Rows>,
    time: RowTime,
    memory: Memory,
}

/// What a pass yields.
pub(super) struct Pass {
    facts: Facts,
    wake: Option<Instant>,
    /// Nothing was learned that the row should say.
    silent: bool,
}

impl Pass {
    fn of(facts: Facts) -> Self {
        Self { wake: facts.wake, facts, silent: false }
    }
}

impl Job {
    pub(super) fn new(
        ctx: Arc<JobContext>,
        input: watch::Receiver<Arc<Work>>,
        rows: Arc<dyn Rows>,
        status: RowStatus,
    ) -> Self {
        let memory = Memory::new(&ctx, &input.borrow(), status);
        let time = RowTime::new(Arc::clone(&ctx.edge.metrics));
        Self { ctx, input, rows, time, memory }
    }

    /// Works until stopped. May be dropped at any await.
    pub(super) async fn run(mut self) {
        let stop = self.ctx.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(&mut self) {
        let mut bell = self.ctx.edge.observed.bell(&self.ctx.owner.hash);
        let mut link = self.ctx.edge.link();
        let mut before: Option<Arc<Work>> = None;
        loop {
            let work = self.input.borrow_and_update().clone();
            bell.borrow_and_update();
            link.borrow_and_update();
            let same_target = before.as_ref().is_none_or(|before| before.target == work.target);
            if !same_target {
                self.memory.stripped.clear();
                self.memory.status.stripped = None;
            }
            if before.as_ref().is_none_or(|before| !before.same_wish(&work)) {
                self.begin();
                self.time.wish(self.waits_for_nobody(&work));
                let begun = before.is_some() && !self.memory.status.cluster.is_empty();
                if begun && !self.is_complete(&work) {
                    // Seen, and begun: what the last wish came to is no longer the state.
                    self.report(&work, &Facts { keep: true, unasked: true, ..Facts::default() });
                }
            }
            let first = before.is_none();
            self.memory.blank &= same_target;
            before = Some(work.clone());
            if first && self.is_complete(&work) && self.calm().await {
                continue;
            }
            let begun = Instant::now();
            count(&self.ctx.edge.metrics.passes);
            let pass = Box::pin(self.pass(&work)).await;
            if self.suspension_changed() {
                // Its requests were held back halfway, or may be sent now.
                continue;
            }
            if !pass.silent {
                self.report(&work, &pass.facts);
            }
            let objects = pass.facts.objects();
            // What was due when the pass began had its turn.
            let wake = [pass.wake.filter(|at| *at > begun), self.memory.backoff.next(begun)]
                .into_iter()
                .flatten()
                .min();
            tokio::select! {
                changed = self.input.changed() => if changed.is_err() { return },
                changed = link.changed() => if changed.is_err() { return },
                changed = bell.changed() => {
                    if changed.is_err() { return }
                    sleep(crowd(objects)).await;
                }
                () = until(wake) => {}
            }
        }
    }

    /// Leaves a complete row alone while the process begins. True if there is another wish meanwhile.
    async fn calm(&mut self) -> bool {
        tokio::select! {
            () = sleep_until(self.ctx.calm_until) => false,
            _ = self.input.changed() => true,
        }
    }

    /// A new wish: what failed before may work now, and proofs of absence were for the old one. A fight goes on over what it does
    /// not change.
    fn begin(&mut self) {
        self.memory.backoff.forget(|key| !matches!(key, Key::Again(_)));
        self.memory.gone.clear();
        self.memory.fitted.clear();
        self.memory.taken.clear();
        self.memory.running.clear();
        self.memory.early = None;
        self.memory.rights = None;
        self.memory.deleted = 0;
        self.memory.progress.0 = Instant::now();
    }

    async fn pass(&mut self, work: &Work) -> Pass {
        self.heed_policy(work);
        let mut facts = Facts { begun: Some(Instant::now()), ..Facts::default() };
        if work.fenced {
            facts.bar(&Trouble::new("Progressing", FENCED, Retry::WhenBack));
            return Pass::of(facts);
        }
        let session = match self.ctx.edge.session(&self.ctx.claimant, &self.ctx.suspension) {
            Ok(session) => session,
            Err(why) => return self.without(work, why, facts),
        };
        self.memory.meets(&session);
        self.memory.on_git = session.branch().is_some();
        if let (Some(want), Some(have)) = (&work.uid, &session.uid)
            && want != have
        {
            let text = format!(
                "another cluster answers under this name (kube-system has UID {have}, it was {want}): nothing is applied or removed"
            );
            facts.bar(&Trouble::new("ClusterReplaced", &text, Retry::Slowly));
            return Pass::of(facts);
        }
        if work.uid.is_none() && session.uid.is_some() && !work.removal {
            return self.unidentified(facts);
        }
        if work.target.as_ref().is_some_and(Named::is_found) {
            facts.bar(&Trouble::new("Progressing", ADOPTED, Retry::WhenBack));
            return Pass::of(facts);
        }
        // What a lost combination put there is found by label, as long as it is known what shall be there.
        let found_by_label = (work.removal || work.target.is_some()) && self.searches(work);
        if !work.lost.is_empty() && !found_by_label {
            let text = format!("the shard names combinations it does not have: {}", work.lost.join(", "));
            facts.bar(&Trouble::new("ContentLost", &text, Retry::Slowly));
            return Pass::of(facts);
        }
        if !self.is_complete(work) && !self.memory.pace.suspended {
            self.ctx.edge.working(work.version);
        }
        match &work.target {
            Some(target) => Box::pin(self.install(work, target, &session, &mut facts)).await,
            None if work.removal => Box::pin(self.remove(work, &session, &mut facts)).await,
            None => facts.keep = true,
        }
        self.settle(&session, &mut facts).await;
        if !self.stale() {
            self.name_unready(&session, &mut facts).await;
        }
        if let Some(at) = self.next_look_at_taken() {
            facts.wake_at(at);
        }
        // At rest a job keeps no set in memory: they are shared by a cache that is bounded.
        self.memory.sets.clear();
        Pass::of(facts)
    }

    /// A pass without a connection. Before the first contact came to an end, and right after a restart, there is nothing to
    /// tell: what the row says stays.
    fn without(&self, work: &Work, why: NoSession, mut facts: Facts) -> Pass {
        let trouble = match why {
            NoSession::Awaited => return Pass { facts, wake: None, silent: true },
            NoSession::Unknown if self.memory.begun.elapsed() < REGISTRATION => {
                return Pass { facts, wake: Some(self.memory.begun + REGISTRATION), silent: true };
            }
            NoSession::Unknown => {
                let text = "the Cluster is not registered, or its kubeconfig cannot be used: see its own condition Ready";
                Trouble::new("Unreachable", text, Retry::WhenBack)
            }
            NoSession::Down(trouble) => trouble,
            NoSession::Refused(trouble) => {
                facts.bar(&trouble);
                return Pass::of(facts);
            }
        };
        facts.unreachable = true;
        facts.keep = true;
        if !self.is_complete(work) {
            facts.wake_at(row::deadline(self));
        }
        facts.trouble(None, None, &trouble, 1);
        Pass::of(facts)
    }

    /// Whether the wish changed or ended while this pass runs, or the owner was suspended or resumed: it ends before its next
    /// request.
    fn stale(&self) -> bool {
        self.input.has_changed().unwrap_or(true) || self.suspension_changed()
    }

    fn source(&self, named: &Named) -> Source {
        let (namespace, owner) = (self.ctx.owner.namespace.clone(), self.ctx.owner.hash.clone());
        Source { namespace, owner, revision: named.revision }
    }

    /// The revision that is worked on, for the log.
    fn revision(&self) -> Option<i64> {
        let revision = self.input.borrow().target.as_ref().map(|target| target.revision);
        revision.filter(|revision| *revision > 0)
    }

    fn policy(&self) -> Policy {
        self.ctx.policies.policy(&self.ctx.owner)
    }

    /// Records that everything is as the row says.
    fn complete(&mut self, work: &Work) {
        let combination = work.target.as_ref().map(|target| target.name.clone());
        if self.memory.applied.as_ref().is_none_or(|before| before.combination != combination) {
            self.memory.drift.completed();
            self.memory.left_out.completed();
            self.memory.rewritten.completed();
        }
        self.memory.applied = Some(Applied { combination, generation: work.written });
        self.memory.applied_named.clone_from(&work.target);
        self.memory.hooks.clear();
        self.memory.running.clear();
        self.memory.deletes.clear();
        self.memory.scanned = None;
    }

    /// Entries of `held` that still count: what was there at the last complete state is pruned since.
    fn counts(&self, since: i64) -> bool {
        self.memory.applied.as_ref().is_none_or(|applied| since > applied.generation)
    }

    /// Whether the row is complete as far as we know.
    fn is_complete(&self, work: &Work) -> bool {
        let wanted = work.target.as_ref().map(|target| target.name.as_str());
        self.memory.applied.as_ref().is_some_and(|applied| applied.combination.as_deref() == wanted)
            && !work.held.iter().any(|(since, _)| self.counts(*since))
            && !work.held_identities.iter().any(|(since, _)| self.counts(*since))
    }

    fn report(&mut self, work: &Work, facts: &Facts) {
        if self.is_complete(work) {
            self.time.complete();
        }
        let status = row::status(self, work, facts);
        self.memory.status = status.clone();
        let (owner, cluster) = (self.ctx.owner.hash.as_str(), self.ctx.edge.id.as_str());
        self.ctx.refusals.note(owner, cluster, status.error.as_ref(), facts.words.as_deref());
        self.tell_fleet(work, facts, &status);
        self.tell_deployments(&status);
        if facts.unasked {
            self.rows.begun(work.id, status);
        } else {
            self.rows.set(work.id, status);
        }
    }

    fn failed(&mut self, key: Key, trouble: Trouble) {
        self.ctx.edge.metrics.refused(trouble.reason);
        self.memory.backoff.failed(key, trouble);
    }
}

/// So long after a start a Cluster may not be registered yet.
const REGISTRATION: Duration = Duration::from_secs(15);

const ADOPTED: &str = "objects of this owner were found here when the inventory was made anew: its plan says what becomes of them";

const FENCED: &str = "the shard was written by a later operator: this one does nothing with it";

/// Events come in crowds, and a pass over many objects is worth waiting for more of them.
fn crowd(objects: i64) -> Duration {
    Duration::from_millis(10 + u64::try_from(objects / 100).unwrap_or_default())
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

impl Job {
    /// One request of a pass.
    async fn send(
        &self,
        session: &Session,
        request: crate::api::Request,
    ) -> crate::api::ApiResult<serde_json::Value> {
        session.send(&self.ctx.edge, request).await
    }
}
