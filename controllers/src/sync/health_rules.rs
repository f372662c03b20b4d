//! Holds the users' health rules for all clusters, and collects what goes wrong with them on objects.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::health::rules::{Judge, Rule, RuleFailure, Rules, UNKNOWN};
use emco_engine::identity::{ClusterId, Identity};
use emco_engine::order;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::metrics::SyncMetrics;
use super::observe::{KindKey, Seen};

/// What custom resources are until the rules were read: one of them may be theirs.
const UNREAD: &str = "the health rules of the operator's namespace could not be read yet";

/// Failures that are told of one version of the rules. All are counted.
const MOST: usize = 20;

/// Kinds of which is known when their rule became another one.
const MOST_KINDS: usize = 1_000;
/// Between the turns of two clusters to list what changed rules judge, and the longest until the last one's turn.
const TURN: Duration = Duration::from_millis(2);
const LAST_TURN: Duration = Duration::from_mins(1);

/// The rules of the moment.
pub struct HealthRules {
    /// Nothing before the hub said which there are.
    current: watch::Sender<Option<Arc<Current>>>,
    failures: Mutex<Failures>,
    failed: Notify,
    metrics: Arc<SyncMetrics>,
}

/// The rules as they were set, and since which time each judges.
pub struct Current {
    rules: Rules,
    /// Counts the times that rules were set, from 1.
    version: u64,
    /// When the rule of a kind became another one, or went.
    kinds: BTreeMap<KindKey, u64>,
    /// When what judges all other custom kinds became another one.
    others: u64,
}

impl Current {
    fn after(before: Option<&Self>, rules: Rules) -> Self {
        let version = before.map_or(1, |before| before.version + 1);
        let mut kinds = before.map(|before| before.kinds.clone()).unwrap_or_default();
        let named: BTreeSet<KindKey> =
            before.iter().flat_map(|before| before.rules.kinds()).chain(rules.kinds()).cloned().collect();
        for kind in named {
            let was = before.map(|before| before.rules.judge(&kind.0, &kind.1));
            if was != Some(rules.judge(&kind.0, &kind.1)) {
                kinds.insert(kind, version);
            }
        }
        let mut others = before.map_or(version, |before| before.others);
        if before.is_some_and(|before| before.rules.others() != rules.others()) {
            others = version;
        }
        // Kinds that had a rule once are not kept for ever: all begin anew.
        if kinds.len() > MOST_KINDS {
            kinds.clear();
            others = version;
        }
        Self { rules, version, kinds, others }
    }

    fn since(&self, kind: &KindKey) -> u64 {
        self.kinds.get(kind).copied().unwrap_or_default().max(self.others)
    }
}

#[derive(Default)]
struct Failures {
    /// Version of the rules that they are of.
    version: u64,
    /// Kind, field and reason of what was reported since the rules changed.
    reported: BTreeSet<(String, &'static str, &'static str)>,
    pending: Vec<String>,
}

impl HealthRules {
    /// Nothing is known yet.
    pub fn new(metrics: Arc<SyncMetrics>) -> Arc<Self> {
        let (failures, failed) = (Mutex::default(), Notify::new());
        Arc::new(Self { current: watch::channel(None).0, failures, failed, metrics })
    }

    /// The rules as the hub has them. Kinds whose rule changed are listed and judged afresh on each cluster, and no others.
    pub fn set(&self, rules: Rules) {
        let faults = u64::try_from(rules.faults().len()).unwrap_or(u64::MAX);
        let usable = u64::try_from(rules.usable()).unwrap_or(u64::MAX);
        self.metrics.rules_faulty.store(faults, Ordering::Relaxed);
        self.metrics.rules_usable.store(usable, Ordering::Relaxed);
        let before = self.current.borrow().clone();
        let now = Current::after(before.as_deref(), rules);
        *self.failures.lock() = Failures { version: now.version, ..Failures::default() };
        self.current.send_replace(Some(Arc::new(now)));
    }

    /// Whether the hub said which rules there are.
    pub fn is_known(&self) -> bool {
        self.current.borrow().is_some()
    }

    /// Tells when there are other rules.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<Current>>> {
        self.current.subscribe()
    }

    /// How long a cluster waits before it lists what changed rules judge, so that not all do so at once.
    pub fn turn(&self, cluster: &ClusterId) -> Duration {
        let clusters = u32::try_from(self.current.receiver_count()).unwrap_or(u32::MAX);
        let mut hasher = DefaultHasher::new();
        cluster.as_str().hash(&mut hasher);
        let share = u32::try_from(hasher.finish() % 1000).unwrap_or_default();
        TURN.saturating_mul(clusters).min(LAST_TURN) * share / 1000
    }

    /// What a kind is judged by.
    pub fn judge(&self, kind: &KindKey) -> Judge {
        match &*self.current.borrow() {
            Some(current) => current.rules.judge(&kind.0, &kind.1),
            None if order::is_built_in(&kind.0) => Judge::BuiltIn,
            None => Judge::Nothing(UNREAD.into()),
        }
    }

    /// Grows whenever a kind is judged by something else than before, also where that is what judged it once: in between, objects
    /// were judged otherwise.
    pub fn since(&self, kind: &KindKey) -> u64 {
        match &*self.current.borrow() {
            Some(current) if !order::is_built_in(&kind.0) => current.since(kind),
            _ => 0,
        }
    }

    /// A live object as the rule of its kind judges it.
    pub(super) fn judged(&self, id: &Identity, object: &Value) -> Option<Seen> {
        if order::is_built_in(&id.group) {
            return Seen::of(id, object);
        }
        let current = self.current.borrow().clone();
        let judge = match &current {
            Some(current) => current.rules.judge(&id.group, &id.kind),
            None => Judge::Nothing(UNREAD.into()),
        };
        let (seen, failure) = Seen::judged(id, object, &judge)?;
        if let (Some(failure), Judge::Rule(rule), Some(current)) = (failure, &judge, &current) {
            self.report(current.version, rule, &failure, id);
        }
        Some(seen)
    }

    /// What was found to be wrong since the last look, a sentence each; waits for the first.
    pub async fn failures(&self) -> Vec<String> {
        loop {
            let failed = self.failed.notified();
            let pending = std::mem::take(&mut self.failures.lock().pending);
            if !pending.is_empty() {
                return pending;
            }
            failed.await;
        }
    }

    fn report(&self, version: u64, rule: &Rule, failure: &RuleFailure, id: &Identity) {
        self.metrics.unanswered(failure.reason());
        // An object that was just made has no status yet: its row says so, and the rule is none the worse.
        if failure.is_absence() {
            return;
        }
        let Rule { key, kind, .. } = rule;
        let mut failures = self.failures.lock();
        // What an earlier rule failed with says nothing about those of today.
        if failures.version == version
            && failures.reported.len() < MOST
            && failures.reported.insert((kind.clone(), failure.field, failure.reason()))
        {
            let (field, what) = (failure.field, failure.what());
            failures.pending.push(format!(
                "key {key}, rule of {kind}, field {field}: the expression {what}; first on {id}. {UNKNOWN}"
            ));
            drop(failures);
            self.failed.notify_one();
        }
    }
}
