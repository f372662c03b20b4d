//! What a job knows from one pass to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::RowStatus;
use emco_crds::sync_shard::status::{Applied, RowHooks};
use emco_engine::apis::ApiList;
use emco_engine::depends::Reached;
use emco_engine::identity::{Id, Identity, SetDigest};
use serde_json::Value;
use tokio::time::Instant;

use super::super::absence::Gone;
use super::super::edge::Session;
use super::super::errors::Trouble;
use super::super::fleet::FleetGate;
use super::super::pace::Backoff;
use super::super::policy::Policy;
use super::super::prepared::Prepared;
use super::super::work::{Named, Work};
use super::JobContext;
use super::depends::Gates;
use super::drift::{Autoscaled, Drift};
use super::undeclared::LeftOuts;
use super::unready::Naming;

/// An API server carries a request out for a minute, whoever asked and is gone.
const LATE: Duration = Duration::from_secs(75);

/// What a job remembers between passes. All of it can be lost: the status and the cluster say the rest.
#[allow(clippy::struct_excessive_bools)] // four independent facts, none of them a state
pub struct Memory {
    pub backoff: Backoff<Key>,
    /// Objects we asked to delete, by UID.
    pub deletes: BTreeMap<Identity, String>,
    /// Objects that are proven not to be there any more, or not to be ours.
    pub gone: Gone,
    /// Objects that were to be removed and stay, and why; others took the owner label off those of which nothing is said.
    pub stripped: BTreeMap<Identity, Option<String>>,
    /// Sets as the cluster has them, where it serves kinds otherwise than was assumed; with what it served then.
    pub fitted: BTreeMap<SetDigest, (Arc<ApiList>, Arc<Prepared>)>,
    /// Objects of others that are taken as they are, and when each is looked at again.
    pub taken: BTreeMap<Id, Instant>,
    /// Objects that were there before they were ours, by UID: their mark is said again where it was taken off.
    pub adopted: BTreeMap<Identity, String>,
    /// Hooks that ran.
    pub hooks: Vec<RowHooks>,
    /// The row said nothing of work when the job began, so it is new, or its status is lost; and what was sent since is of this target
    /// alone. Until the lists are there, and what they prove of hooks is recorded.
    pub blank: bool,
    /// The same, and nothing was sent at all: another target finds what this one would have found.
    pub unsent: bool,
    /// What is decided of the target's dependencies.
    pub gates: Gates,
    /// How far the apps of the target are, as of the pass.
    pub reached: BTreeMap<Arc<str>, Reached>,
    /// How other clusters stood that are waited for, as of the last pass.
    pub elsewhere: Vec<FleetGate>,
    /// Since when a hook runs, by its token.
    pub running: BTreeMap<String, Instant>,
    /// What was completely applied last.
    pub applied: Option<Applied>,
    pub applied_named: Option<Named>,
    /// What others changed.
    pub drift: Drift,
    /// What the cluster does not know.
    pub left_out: LeftOuts,
    /// What the cluster's admission rewrites while it is applied.
    pub rewritten: LeftOuts,
    /// The owner's policy, as of the pass.
    pub pace: Policy,
    /// The account that the owner's objects are written as; none before a set of it was read.
    pub account: Option<Arc<str>>,
    /// The target for which the account has the rights that are derived.
    pub rights: Option<Arc<str>>,
    /// Sets of the target, while a pass lasts.
    pub sets: Vec<Arc<Prepared>>,
    /// Workloads whose replicas an autoscaler sets: of the same owner, or of others.
    pub scaled: BTreeSet<Identity>,
    /// Workloads that autoscalers of others scale.
    pub autoscaled: Autoscaled,
    /// Entries of earlier sets in lists that others add to.
    pub said: BTreeMap<Identity, Vec<Value>>,
    /// The cluster is written through Git, as of the pass.
    pub on_git: bool,
    /// What the pass handed over for the branch, where the cluster is written through Git.
    pub handed: u64,
    /// When the agent may be asked next why it does not apply what the branch has.
    pub next_word: Option<Instant>,
    /// What it said last, by app.
    pub words: BTreeMap<Arc<str>, Trouble>,
    /// When this job began.
    pub begun: Instant,
    /// Since when the cluster answers, and the row does not say which one it is.
    pub unidentified: Option<Instant>,
    /// When something last went forward, and what that looked like.
    pub progress: (Instant, (i64, i64, i64)),
    pub deleted: i64,
    pub epoch: Option<u64>,
    /// What the cluster served at the last pass.
    pub apis: Option<Arc<ApiList>>,
    /// The connection on which nothing was found that is in no inventory, and since when.
    pub swept: Option<(u64, Instant)>,
    /// There is nothing for which all kinds would have to be listed: no other state of the cluster, no work that began on a
    /// cluster with a past.
    pub searched: bool,
    /// The connection on which all kinds were listed, and what carried our label.
    pub scanned: Option<(u64, BTreeSet<Identity>)>,
    /// The row was complete when the pass began: what is applied now is made again.
    pub settled: bool,
    /// The connection on which what is new was applied before the lists were there, and whether that was all of it.
    pub early: Option<(u64, bool)>,
    pub status: RowStatus,
    /// What is not ready, as it was named.
    pub naming: Naming,
}

/// What can fail on its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// What the row shall have.
    Content,
    /// What it may have besides.
    Inventory,
    /// The cluster itself: it is overloaded, and said when to come again.
    Server,
    Object(Id),
    Hook(Id),
    /// Rights that the account does not have yet.
    Rights,
    /// Listing all kinds.
    Scan,
    /// Making again what others deleted or changed.
    Again(Id),
}

impl Memory {
    /// Says that objects in no inventory are looked for: once per connection, and as long as a request of before may still be carried out.
    pub fn sweeps(&self, epoch: u64) -> bool {
        self.swept.is_none_or(|(of, since)| of != epoch || since.elapsed() < LATE)
    }

    /// Nothing was found.
    pub fn swept(&mut self, epoch: u64) {
        if self.swept.is_none_or(|(of, _)| of != epoch) {
            self.swept = Some((epoch, Instant::now()));
        }
    }

    /// What is known when a job begins: what the row says.
    pub fn new(ctx: &JobContext, work: &Work, mut status: RowStatus) -> Self {
        // Of what is not worked off it is found out anew.
        let of_target = status.applied.as_ref().and_then(|applied| applied.combination.as_ref())
            == work.target.as_ref().map(|target| &target.name);
        status.stripped = status.stripped.filter(|_| of_target);
        let blank = status.applied.is_none()
            && status.hooks.is_empty()
            && status.applied_count == 0
            && status.counts.is_none_or(|counts| counts.applied == 0);
        Self {
            backoff: Backoff::new(ctx.random.clone()),
            deletes: BTreeMap::new(),
            gone: Gone::default(),
            stripped: BTreeMap::new(),
            fitted: BTreeMap::new(),
            taken: BTreeMap::new(),
            adopted: BTreeMap::new(),
            hooks: status.hooks.clone(),
            blank,
            unsent: blank,
            gates: Gates::of(status.gates.as_ref()),
            reached: BTreeMap::new(),
            elsewhere: Vec::new(),
            running: BTreeMap::new(),
            applied: status.applied.clone(),
            applied_named: work.applied.clone(),
            drift: Drift::of(&status),
            left_out: LeftOuts::of(status.left_out.as_ref()),
            rewritten: LeftOuts::of(status.rewritten.as_ref()),
            pace: Policy::of(&ctx.owner),
            account: None,
            rights: None,
            sets: Vec::new(),
            scaled: BTreeSet::new(),
            autoscaled: Autoscaled::default(),
            said: BTreeMap::new(),
            on_git: false,
            handed: 0,
            next_word: None,
            words: BTreeMap::new(),
            begun: Instant::now(),
            unidentified: None,
            progress: (Instant::now(), (0, 0, 0)),
            deleted: 0,
            epoch: None,
            apis: None,
            swept: None,
            searched: true,
            scanned: None,
            settled: false,
            early: None,
            status,
            naming: Naming::default(),
        }
    }

    /// Takes in which cluster answers, and what it serves.
    pub fn meets(&mut self, session: &Session) {
        if self.epoch != Some(session.epoch) {
            // Another state of the cluster answers: it may have what no revision of today knows, of any kind.
            let fresh = self.epoch.is_none();
            let has_a_past = session.returned && self.applied.is_none();
            self.searched &= fresh && !has_a_past;
            self.epoch = Some(session.epoch);
            self.gone.clear();
            self.taken.clear();
            self.deletes.clear();
            self.backoff.back();
        }
        if self.apis.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &session.apis)) {
            let is_served = |id: &Identity| session.resource(id).is_some();
            self.backoff.served(|key| matches!(key, Key::Object(id) | Key::Hook(id) if is_served(id)));
            self.apis = Some(Arc::clone(&session.apis));
        }
    }
}
