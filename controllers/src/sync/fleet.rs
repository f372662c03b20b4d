//! Counts, for each owner whose apps wait for other clusters, how far these are. Jobs say what they see on their own cluster, and
//! the counts follow from change to change: nobody walks the clusters. Nothing is stored: a process that begins knows a cluster once
//! its job has looked, and until then no gate is open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::composite_app::DependencyState;
use emco_engine::depends::{Order, Reached};
use emco_engine::identity::ClusterId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::edge::Edge;

/// All owners whose apps wait for other clusters.
#[derive(Default)]
pub struct Fleet(Mutex<BTreeMap<String, OwnerFleet>>);

/// What a job says of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStand {
    /// The revision whose order its row has.
    pub revision: i64,
    /// Since when it cannot be reached, in seconds; what it had reached before counts no more.
    pub away: Option<i64>,
    /// How far the apps are that are waited for and that it is to have.
    pub apps: BTreeMap<String, Reached>,
}

/// How a dependency on other clusters stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetGate {
    /// It is met on all clusters that can be reached, and on one at least.
    Met,
    /// The first cluster that it waits for, and how many there are.
    Waits(ClusterId, usize),
    /// It waits only for clusters that cannot be reached: the first of them, how many there are, and in how many seconds all of them are
    /// skipped; none where they are and no other is left.
    Away(ClusterId, usize, Option<i64>),
    /// It waits for clusters that nothing is known of yet.
    Unknown,
    /// No cluster is to have the app.
    Nowhere,
}

impl FleetGate {
    /// The same, whenever it is asked.
    pub fn without_time(&self) -> Self {
        match self {
            Self::Away(cluster, number, _) => Self::Away(cluster.clone(), *number, None),
            gate => gate.clone(),
        }
    }
}

/// What is asked of one app on other clusters.
pub struct Question<'a> {
    /// The app that is waited for.
    pub on: &'a str,
    /// What it must have reached.
    pub state: DependencyState,
    /// The wall clock, in seconds.
    pub now: i64,
    /// After so many seconds a cluster that cannot be reached is skipped.
    pub deadline: i64,
}

#[derive(Default)]
struct OwnerFleet {
    clusters: BTreeMap<ClusterId, ClusterStand>,
    // By revision and app.
    counts: BTreeMap<(i64, String), AppCount>,
    // By revision and app: how many clusters are to have it, as that shard says that says most.
    expected: BTreeMap<(i64, String), usize>,
    waiting: BTreeMap<ClusterId, Arc<Edge>>,
    // That of the last one who spoke.
    order: Arc<Order>,
}

/// The clusters that are to have one app.
#[derive(Debug, Default, PartialEq, Eq)]
struct AppCount {
    clusters: usize,
    undeployed: BTreeSet<ClusterId>,
    unready: BTreeSet<ClusterId>,
    away: BTreeSet<(i64, ClusterId)>,
}

impl AppCount {
    fn put(&mut self, cluster: &ClusterId, away: Option<i64>, reached: Reached) {
        self.clusters += 1;
        if let Some(since) = away {
            self.away.insert((since, cluster.clone()));
            return;
        }
        if !reached.meets(DependencyState::Deployed) {
            self.undeployed.insert(cluster.clone());
        }
        if !reached.meets(DependencyState::Ready) {
            self.unready.insert(cluster.clone());
        }
    }

    fn remove(&mut self, cluster: &ClusterId, away: Option<i64>) {
        self.clusters = self.clusters.saturating_sub(1);
        if let Some(since) = away {
            self.away.remove(&(since, cluster.clone()));
        }
        self.undeployed.remove(cluster);
        self.unready.remove(cluster);
    }

    const fn unmet(&self, state: DependencyState) -> &BTreeSet<ClusterId> {
        match state {
            DependencyState::Deployed => &self.undeployed,
            DependencyState::Ready => &self.unready,
        }
    }

    /// Which states all clusters that can be reached have, and how many cannot be, where that makes a difference.
    fn summary(&self, expected: usize) -> (bool, bool, usize) {
        let all = self.clusters >= expected;
        let (deployed, ready) = (all && self.undeployed.is_empty(), all && self.unready.is_empty());
        (deployed, ready, if deployed || ready { self.away.len() } else { 0 })
    }

    fn gate(&self, expected: usize, question: &Question<'_>) -> FleetGate {
        let unmet = self.unmet(question.state);
        if let Some(first) = unmet.first() {
            return FleetGate::Waits(first.clone(), unmet.len());
        }
        if self.clusters < expected {
            return FleetGate::Unknown;
        }
        // The one that went last is skipped last; one of a time to come, of a clock that was wrong, went now.
        let Some((since, cluster)) = self.away.last() else { return FleetGate::Met };
        let left = since.min(&question.now).saturating_add(question.deadline).saturating_sub(question.now);
        let more = self.clusters > self.away.len();
        if left <= 0 && more {
            return FleetGate::Met;
        }
        FleetGate::Away(cluster.clone(), self.away.len(), (left > 0).then_some(left))
    }
}

impl Fleet {
    /// Takes in what a job sees on its cluster, and rings where that may open a gate or closes one. Whether it is news. A job that is
    /// stopped says nothing any more: [`Self::leave`] after the stop has the last word.
    pub fn put(
        &self,
        owner: &str,
        cluster: &ClusterId,
        order: &Arc<Order>,
        stand: ClusterStand,
        stop: &CancellationToken,
    ) -> bool {
        let mut owners = self.0.lock();
        if stop.is_cancelled() {
            return false;
        }
        let fleet = owners.entry(owner.to_owned()).or_default();
        fleet.order = Arc::clone(order);
        if fleet.clusters.get(cluster) == Some(&stand) {
            return false;
        }
        let before = fleet.summaries(order);
        fleet.forget(cluster);
        for (app, reached) in &stand.apps {
            let count = fleet.counts.entry((stand.revision, app.clone())).or_default();
            count.put(cluster, stand.away, *reached);
        }
        fleet.clusters.insert(cluster.clone(), stand);
        let changed = fleet.summaries(order) != before;
        let waiting = if changed { fleet.waiting() } else { Vec::new() };
        drop(owners);
        ring(owner, &waiting);
        true
    }

    /// Whether a cluster cannot be reached, as far as it said how it stands with this revision.
    pub fn is_away(&self, owner: &str, cluster: &ClusterId, revision: i64) -> Option<bool> {
        let owners = self.0.lock();
        let stand = owners.get(owner).and_then(|fleet| fleet.clusters.get(cluster));
        stand.filter(|stand| stand.revision == revision).map(|stand| stand.away.is_some())
    }

    /// Forgets what a cluster said that the owner has nothing on, whose apps nobody waits for, or whose turn has not come, and rings where
    /// it is missing. One that `waits` itself for others is rung on. A job that is stopped has no say.
    pub fn leave(&self, owner: &str, cluster: &ClusterId, waits: bool, stop: Option<&CancellationToken>) {
        let mut owners = self.0.lock();
        if stop.is_some_and(CancellationToken::is_cancelled) {
            return;
        }
        let Some(fleet) = owners.get_mut(owner) else { return };
        let order = Arc::clone(&fleet.order);
        let before = fleet.summaries(&order);
        fleet.forget(cluster);
        if !waits {
            fleet.waiting.remove(cluster);
        }
        let changed = fleet.summaries(&order) != before;
        let waiting = if changed { fleet.waiting() } else { Vec::new() };
        if fleet.is_over() {
            owners.remove(owner);
        }
        drop(owners);
        ring(owner, &waiting);
    }

    /// Takes in what all shards of an owner say of how many clusters are waited for: shards that a wave does not touch say what was true when
    /// they were written. Rings where that is another number by now.
    pub fn expect<'a>(&self, owner: &str, orders: impl IntoIterator<Item = &'a Order>) {
        let mut expected: BTreeMap<(i64, String), usize> = BTreeMap::new();
        for order in orders {
            for (app, clusters) in order.counted() {
                let known = expected.entry((order.revision, app.to_owned())).or_default();
                *known = clusters.max(*known);
            }
        }
        let mut owners = self.0.lock();
        if expected.is_empty() && !owners.contains_key(owner) {
            return;
        }
        let fleet = owners.entry(owner.to_owned()).or_default();
        let waiting = if fleet.expected == expected { Vec::new() } else { fleet.waiting() };
        fleet.expected = expected;
        if fleet.is_over() {
            owners.remove(owner);
        }
        drop(owners);
        ring(owner, &waiting);
    }

    /// Whether the job of a cluster waits for others: then it is rung. One that is stopped waits no more.
    pub fn wait(&self, owner: &str, cluster: &ClusterId, edge: Option<&Arc<Edge>>, stop: &CancellationToken) {
        let mut owners = self.0.lock();
        if stop.is_cancelled() {
            return;
        }
        match edge {
            Some(edge) => {
                let fleet = owners.entry(owner.to_owned()).or_default();
                fleet.waiting.insert(cluster.clone(), Arc::clone(edge));
            }
            None => {
                if let Some(fleet) = owners.get_mut(owner) {
                    fleet.waiting.remove(cluster);
                }
            }
        }
    }

    /// How a dependency on other clusters stands for a row with this order.
    pub fn gate(&self, owner: &str, order: &Order, question: &Question<'_>) -> FleetGate {
        let owners = self.0.lock();
        let fleet = owners.get(owner);
        let key = (order.revision, question.on.to_owned());
        let said = fleet.and_then(|fleet| fleet.expected.get(&key)).copied();
        let expected = match order.clusters(question.on).max(said) {
            None | Some(0) => return FleetGate::Nowhere,
            Some(expected) => expected,
        };
        let count = fleet.and_then(|fleet| fleet.counts.get(&key));
        count.map_or(FleetGate::Unknown, |count| count.gate(expected, question))
    }
}

impl OwnerFleet {
    fn forget(&mut self, cluster: &ClusterId) {
        let Some(ClusterStand { revision, away, apps }) = self.clusters.remove(cluster) else { return };
        for app in apps.into_keys() {
            let key = (revision, app);
            if let Some(count) = self.counts.get_mut(&key) {
                count.remove(cluster, away);
                if count.clusters == 0 {
                    self.counts.remove(&key);
                }
            }
        }
    }

    fn summaries(&self, order: &Order) -> Vec<Option<(bool, bool, usize)>> {
        let of = |(app, expected): (&str, usize)| {
            let key = (order.revision, app.to_owned());
            let said = self.expected.get(&key).copied().unwrap_or_default();
            Some(self.counts.get(&key)?.summary(expected.max(said)))
        };
        order.counted().map(of).collect()
    }

    /// Whether nobody says or asks anything.
    fn is_over(&self) -> bool {
        self.clusters.is_empty() && self.waiting.is_empty() && self.expected.is_empty()
    }

    fn waiting(&self) -> Vec<Arc<Edge>> {
        self.waiting.values().cloned().collect()
    }
}

/// Wakes jobs of an owner. Without the lock of the fleet: a bell has one of its own.
fn ring(owner: &str, edges: &[Arc<Edge>]) {
    for edge in edges {
        edge.observed.ring(owner);
    }
}

#[cfg(test)]
mod tests;
