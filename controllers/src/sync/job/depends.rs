//! Holds an app back on a cluster until what it depends on is there, in the revision of the target. What runs is left alone
//! meanwhile: an app that has its set already waits for nothing, and one whose dependencies were met once waits no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::RowStatus;
use emco_crds::composite_app::DependencyScope;
use emco_crds::fields::{DurationText, Time};
use emco_crds::names::generated_app;
use emco_crds::sync_shard::status::{Connectivity, MetDependency, OpenGate, RowGates};
use emco_engine::depends::{Judged, Reached, Wait, Waiting, judge};
use emco_engine::identity::{ClusterId, Combination, Identity, SetDigest};
use k8s_openapi::jiff;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::fleet::{ClusterStand, FleetGate, Question};
use super::super::work::{Named, Work};
use super::Job;
use super::desired::{App, PruneSet};
use super::row::Facts;

mod generated;

use generated::generated;

/// The reason.
pub(super) const WAITS: &str = "WaitingForDependency";
/// Which cluster is waited for may be another one by now: what the row says of it is renewed after this time.
const RENEW: Duration = Duration::from_secs(30);

/// What is decided of the dependencies of one target. The row keeps it, so that a restart neither begins a delay anew nor closes
/// what was open.
#[derive(Default)]
pub(super) struct Gates {
    combination: String,
    /// By app: the set that may come.
    open: Combination,
    /// By app: dependencies with a delay that are met, and since when, in seconds.
    met: BTreeMap<String, BTreeMap<String, i64>>,
    /// One opened, and the hub does not have that yet.
    unrecorded: bool,
    /// All generated apps of the target were applied when they were last looked at.
    generated: bool,
}

impl Gates {
    /// What the row says.
    pub fn of(row: Option<&RowGates>) -> Self {
        let Some(RowGates { combination, open, met }) = row else { return Self::default() };
        let mut gates = Self {
            combination: combination.clone(),
            open: open.iter().map(|gate| (gate.app.clone(), SetDigest(gate.set.clone()))).collect(),
            ..Self::default()
        };
        for MetDependency { app, depends_on: on, since } in met {
            if let Some(since) = since {
                gates.met.entry(app.clone()).or_default().insert(on.clone(), since.0.as_second());
            }
        }
        gates
    }

    /// What the row is to say.
    pub fn row(&self) -> Option<RowGates> {
        if self.open.is_empty() && self.met.is_empty() {
            return None;
        }
        let time = |seconds: i64| jiff::Timestamp::from_second(seconds).ok().map(Time);
        let met = |(app, met): (&String, &BTreeMap<String, i64>)| {
            let of = |(on, since): (&String, &i64)| MetDependency {
                app: app.clone(),
                depends_on: on.clone(),
                since: time(*since),
            };
            met.iter().map(of).collect::<Vec<_>>()
        };
        Some(RowGates {
            combination: self.combination.clone(),
            open: self
                .open
                .iter()
                .map(|(app, set)| OpenGate { app: app.clone(), set: set.0.clone() })
                .collect(),
            met: self.met.iter().flat_map(met).collect(),
        })
    }
}

fn says_it_waits(app: &App, text: &str, facts: &mut Facts) {
    let trouble = Trouble::new(WAITS, text, Retry::WhenBack);
    facts.trouble(Some(&app.name), None, &trouble, 1);
    facts.waiting.insert(Arc::clone(&app.name), trouble.message);
}

impl Job {
    /// Puts the apps of a target in the order of their dependencies. Where another target has the same set of an app, its gate is as
    /// it was; delays begin anew.
    pub(super) fn in_order(&mut self, work: &Work, target: &Named, apps: &mut [App]) {
        if self.memory.gates.combination != target.name {
            let mut open = std::mem::take(&mut self.memory.gates).open;
            open.retain(|app, set| target.apps.get(app) == Some(set));
            self.memory.gates = Gates { combination: target.name.clone(), open, ..Gates::default() };
        }
        self.memory.reached.clear();
        apps.sort_by_cached_key(|app| work.order.place(&app.name));
    }

    /// Whether an app may have to wait: it depends on others, its set is to change, and its dependencies were not met yet.
    pub(super) fn may_wait(&self, work: &Work, app: &App) -> bool {
        let gates = &self.memory.gates;
        let is_shut =
            || !work.order.waits(&app.name).is_empty() && gates.open.get(&*app.name) != Some(app.digest());
        let follows =
            || !gates.generated && !generated_app::is(&app.name) && generated(work).next().is_some();
        !self.memory.settled && (is_shut() || follows()) && !self.stayed(work, app)
    }

    /// Whether an app has had its set all the time since that was complete, as far as the row tells what was wanted meanwhile. What was
    /// wanted before, then something else, and now again, may be half gone.
    pub(super) fn stayed(&self, work: &Work, app: &App) -> bool {
        let Some(applied) = &self.memory.applied_named else { return false };
        let same = |named: &Named| named.apps.get(&*app.name) == Some(app.digest());
        let mut since = work.held.iter().filter(|(since, _)| self.counts(*since)).map(|(_, named)| named);
        let again =
            work.target.as_ref().is_some_and(|target| since.clone().any(|held| held.name == target.name));
        let unread = work.held_identities.iter().any(|(since, _)| self.counts(*since));
        same(applied) && !again && !unread && since.all(same)
    }

    /// Whether an app waits for others of charts, and says so. What the target has of other apps was looked at before in this pass.
    fn waits_for_others(&mut self, work: &Work, app: &App, facts: &mut Facts) -> bool {
        let name = &*app.name;
        let waits = work.order.waits(name);
        let before = self.memory.gates.met.remove(name).unwrap_or_default();
        let mut elsewhere = BTreeMap::new();
        let is_met = |wait: &Wait| {
            let gate = self.gate_elsewhere(work, wait, facts);
            let met = match &gate {
                _ if !self.is_met_here(work, wait) => Some(false),
                // Such as after a start, until all clusters were heard of.
                Some(FleetGate::Unknown) => None,
                gate => Some(gate.as_ref().is_none_or(|gate| *gate == FleetGate::Met)),
            };
            elsewhere.extend(gate.map(|gate| (wait.on.clone(), gate)));
            met
        };
        let Judged { since, waiting } = judge(waits, is_met, &before, self.ctx.clock.now_ms());
        let Some(waiting) = waiting else {
            self.memory.gates.open.insert(name.to_owned(), app.digest().clone());
            self.memory.gates.unrecorded = true;
            return false;
        };
        facts.elsewhere.extend(elsewhere.values().map(FleetGate::without_time));
        if !since.is_empty() {
            self.memory.gates.met.insert(name.to_owned(), since);
        }
        let now = Instant::now();
        let text = match waiting {
            Waiting::For(wait) => {
                if let Some(FleetGate::Away(_, _, Some(left))) = elsewhere.get(&wait.on) {
                    facts.wake_at(now + Duration::from_secs(u64::try_from(*left).unwrap_or_default()));
                }
                self.words(wait, elsewhere.get(&wait.on))
            }
            Waiting::Delay(wait, left) => {
                // Nobody is late while a delay runs.
                self.memory.progress.0 = now;
                facts.wake_at(now + Duration::from_millis(u64::try_from(left).unwrap_or_default()));
                let Wait { on, state, delay, .. } = wait;
                let delay = DurationText::of(*delay).0;
                format!("app {on} is {state:?}, and the delay of {delay} after that runs")
            }
        };
        says_it_waits(app, &text, facts);
        true
    }

    /// Records that a gate opened before anything of its app is sent: it stays open wherever the process ends.
    pub(super) async fn record_gate(&mut self, work: &Work) {
        if std::mem::take(&mut self.memory.gates.unrecorded) {
            self.record_hooks(work).await;
        }
    }

    /// Whether the target has the app that is waited for on this cluster, as far as the dependency asks; also where it has none.
    fn is_met_here(&self, work: &Work, wait: &Wait) -> bool {
        let here = work.target.as_ref().is_some_and(|target| target.apps.contains_key(&wait.on));
        !here || self.memory.reached.get(wait.on.as_str()).is_some_and(|reached| reached.meets(wait.state))
    }

    /// How a dependency stands on other clusters, where it is about them: it says so, or this cluster is to have no such app.
    fn gate_elsewhere(&self, work: &Work, wait: &Wait, facts: &mut Facts) -> Option<FleetGate> {
        let here = work.target.as_ref().is_some_and(|target| target.apps.contains_key(&wait.on));
        if wait.scope == DependencyScope::Cluster && here {
            return None;
        }
        facts.awaits_fleet = true;
        facts.wake_at(Instant::now() + RENEW);
        let (owner, fleet) = (&self.ctx.owner.hash, &self.ctx.fleet);
        // Before it is asked: what changes from then on rings.
        fleet.wait(owner, &self.ctx.edge.id, Some(&self.ctx.edge), &self.ctx.stop);
        let deadline = i64::try_from(self.policy().progress_deadline.as_secs()).unwrap_or(i64::MAX);
        let now = self.ctx.clock.now_ms() / 1000;
        Some(fleet.gate(owner, &work.order, &Question { on: &wait.on, state: wait.state, now, deadline }))
    }

    fn words(&self, wait: &Wait, elsewhere: Option<&FleetGate>) -> String {
        let Wait { on, state, .. } = wait;
        // Not how many others: every row would be written for every cluster that gets there.
        let first = |cluster: &ClusterId, number: usize| match number {
            0 | 1 => cluster.to_string(),
            _ => format!("{cluster} and others"),
        };
        let all = format!("waits until this revision of app {on} is {state:?} on all its clusters");
        match elsewhere {
            None | Some(FleetGate::Met) => {
                format!("waits until this revision of app {on} is {state:?} on {}", self.ctx.edge.id)
            }
            Some(FleetGate::Waits(cluster, number)) => {
                format!("{all}: not yet on {}", first(cluster, *number))
            }
            Some(FleetGate::Away(cluster, number, Some(_))) => format!(
                "{all}: {} cannot be reached, and is skipped after spec.progressDeadline",
                first(cluster, *number)
            ),
            Some(FleetGate::Away(cluster, number, None)) => {
                format!("{all}: none of them can be reached: {}", first(cluster, *number))
            }
            Some(FleetGate::Unknown) => format!("{all}: not all of them are heard of yet"),
            Some(FleetGate::Nowhere) => format!("waits for app {on}, which no cluster is to have yet"),
        }
    }

    /// How far an app is that was brought to its set, or not. What is known of a kind that cannot be watched may be old: it makes nothing
    /// ready.
    pub(super) fn has_reached(&mut self, work: &Work, app: &App, applied: bool, session: &Session) {
        if work.order.is_empty() {
            return;
        }
        let current = || app.set.kinds.iter().all(|id| self.stale_kind(session, id).is_none());
        let ready = || app.items().all(|item| self.is_ready(item)) && current();
        // Others wait for what is applied on the cluster, not for what its branch has.
        let applied = applied && (!self.memory.on_git || app.items().all(|item| self.is_shown(item)));
        let reached = match applied {
            false => Reached::Nothing,
            true if ready() => Reached::Ready,
            true => Reached::Deployed,
        };
        self.memory.reached.insert(Arc::clone(&app.name), reached);
    }

    /// Leaves what apps that wait have of an earlier revision out of what is removed now.
    pub(super) fn spare_waiting(&self, work: &Work, apps: &[App], pruned: &PruneSet) -> PruneSet {
        let waiting = self.waiting(work, apps);
        let waits = |id: &Identity| {
            let nameless = pruned.nameless.contains(id) && !waiting.is_empty();
            nameless || pruned.apps_of(id).any(|app| waiting.contains(app))
        };
        let (later, objects) =
            pruned.objects.iter().map(|(id, keep)| (id.clone(), *keep)).partition(|(id, _)| waits(id));
        PruneSet { objects, later, ..pruned.clone() }
    }

    /// Whether an app that waited has objects of an earlier revision that have to go before it comes. What it shares with one that waits
    /// still goes when that comes.
    pub(super) fn has_to_make_room(&self, work: &Work, apps: &[App], app: &App, pruned: &PruneSet) -> bool {
        let waits = !work.order.waits(&app.name).is_empty();
        if generated_app::is(&app.name) || !(waits || generated(work).next().is_some()) {
            return false;
        }
        let waiting = self.waiting(work, apps);
        let open = pruned.objects.keys().filter(|id| !self.memory.gone.contains(id));
        let mut due = open.filter(|id| !pruned.apps_of(id).any(|of| waiting.contains(of)));
        due.any(|id| {
            let nameless = pruned.nameless.contains(id) && waiting.is_empty();
            nameless || pruned.apps_of(id).any(|of| *of == *app.name)
        })
    }

    /// Apps that may wait.
    fn waiting<'a>(&self, work: &Work, apps: &'a [App]) -> BTreeSet<&'a str> {
        apps.iter().filter(|app| self.may_wait(work, app)).map(|app| &*app.name).collect()
    }

    /// Tells the jobs of other clusters how far the apps are here that they wait for.
    pub(super) fn tell_fleet(&self, work: &Work, facts: &Facts, status: &RowStatus) {
        let (owner, fleet, cluster) = (&self.ctx.owner.hash, &self.ctx.fleet, &self.ctx.edge.id);
        // One whose turn has not come has another content: it says nothing of this revision.
        let Some(target) = work.target.as_ref().filter(|target| work.order.hears(&target.name)) else {
            fleet.leave(owner, cluster, facts.awaits_fleet, Some(&self.ctx.stop));
            return;
        };
        if !facts.awaits_fleet {
            fleet.wait(owner, cluster, None, &self.ctx.stop);
        }
        let now = || self.ctx.clock.now_ms() / 1000;
        let away = (status.connectivity == Connectivity::Unreachable)
            .then(|| status.since.as_ref().map_or_else(now, |since| since.0.as_second()));
        let revision = work.order.revision;
        if away.is_none() && !facts.barred {
            if facts.unasked || self.stale() {
                return;
            }
            // Nothing new is known, so what was said before stays. Where nothing was, this cluster has to be named; and one that answers
            // is away no more.
            let told =
                fleet.is_away(owner, cluster, revision).map_or_else(|| facts.error.is_none(), |away| !away);
            if (facts.keep || !facts.judged) && told {
                return;
            }
        }
        let reached = |app: &str| self.memory.reached.get(app).filter(|_| facts.judged).copied();
        let counted = work.order.counted().filter(|(app, _)| target.apps.contains_key(*app));
        let apps = counted.map(|(app, _)| (app.to_owned(), reached(app).unwrap_or_default())).collect();
        let stand = ClusterStand { revision, away, apps };
        if fleet.put(owner, cluster, &work.order, stand, &self.ctx.stop) && facts.awaits_fleet {
            // What the row says of others was said before that.
            self.ctx.edge.observed.ring(owner);
        }
    }
}
