//! Asks of every cluster whether it has room for what an app needs, beside what the other apps of the deployment get there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Field};
use crate::hardware::{Demand, Demands, Room, Verdict};
use crate::identity::ClusterId;

/// Apps, a bit for each: a composite application has at most 64.
type Apps = u64;

/// All clusters, and what the apps were given on them so far.
pub(super) struct Hardware<'a> {
    demands: &'a Demands,
    /// Apps that need something; the place of one is its bit.
    apps: Vec<&'a str>,
    columns: Vec<&'a str>,
    /// In the order of the clusters.
    places: Vec<Place<'a>>,
}

/// One cluster.
#[derive(Default)]
struct Place<'a> {
    /// Made when it is asked for.
    room: Option<Room<'a>>,
    /// Apps that come.
    new: Apps,
    /// Apps that are there and stay.
    stay: Apps,
    /// The last answer to whether apps can come: those that `allOf` gives one cluster ask for the same.
    takes: Option<(Apps, Verdict)>,
}

/// Findings of one cluster for one app.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    pub verdict: Verdict,
    /// Of what the app prefers and the cluster has.
    pub weight: u32,
}

/// Findings of all clusters for one app, in their order. Without any the app needs nothing.
#[derive(Debug, Default)]
pub(super) struct Judgement(Vec<Judged>);

impl Judgement {
    /// Of one cluster; `None` where the app needs nothing.
    pub fn of(&self, entry: &Entry<'_>) -> Option<&Judged> {
        self.0.get(entry.at)
    }
}

impl<'a> Hardware<'a> {
    pub fn new(demands: &'a Demands, clusters: usize) -> Self {
        let clusters = if demands.is_empty() { 0 } else { clusters };
        let mut places = Vec::new();
        places.resize_with(clusters, Place::default);
        let apps = demands.0.keys().map(String::as_str).collect();
        Self { demands, apps, columns: demands.columns(), places }
    }

    /// True where any app needs something.
    pub fn counts(&self) -> bool {
        !self.places.is_empty()
    }

    fn bit(&self, app: &str) -> Apps {
        let at = self.apps.iter().position(|known| *known == app);
        at.and_then(|at| 1_u64.checked_shl(u32::try_from(at).ok()?)).unwrap_or_default()
    }

    /// Takes in what `allOf` gives an app, whatever else is chosen: other apps make room for it.
    pub fn foresee(&mut self, app: &str, field: &Field<'_>, used: &BTreeSet<&ClusterId>) {
        let bit = self.bit(app);
        for entry in &field.entries {
            let comes = entry.all_of && entry.open(used) && !used.contains(entry.id());
            if comes && let Some(place) = self.places.get_mut(entry.at) {
                place.new |= bit;
            }
        }
    }

    /// Takes in what was chosen for an app.
    pub fn take(
        &mut self,
        app: &str,
        field: &Field<'_>,
        chosen: &BTreeSet<ClusterId>,
        used: &BTreeSet<&ClusterId>,
    ) {
        let bit = self.bit(app);
        for entry in &field.entries {
            let Some(place) = self.places.get_mut(entry.at) else { continue };
            place.new &= !bit;
            if chosen.contains(entry.id()) {
                let whose = if used.contains(entry.id()) { &mut place.stay } else { &mut place.new };
                *whose |= bit;
            }
        }
    }

    /// Judges all clusters that an app may go to.
    pub fn judge(&mut self, app: &str, field: &Field<'a>, used: &BTreeSet<&ClusterId>) -> Judgement {
        let bit = self.bit(app);
        if bit == 0 {
            return Judgement::default();
        }
        let own = self.demands_of(bit);
        let prefers = own.iter().any(|demand| !demand.preferred.is_empty());
        let mut all = Vec::with_capacity(field.entries.len());
        let mut known: BTreeMap<Apps, Vec<&'a Demand>> = BTreeMap::new();
        for entry in &field.entries {
            let is_used = used.contains(entry.id());
            let wanted =
                self.places.get(entry.at).map(|place| bit | if is_used { place.stay } else { place.new });
            let demands = wanted
                .filter(|_| entry.in_cloud && (entry.all_of || !entry.groups.is_empty() || is_used))
                .map(|wanted| (wanted, known.entry(wanted).or_insert_with(|| self.demands_of(wanted))));
            let columns = &self.columns;
            let (Some((wanted, demands)), Some(place)) = (demands, self.places.get_mut(entry.at)) else {
                all.push(Judged::default());
                continue;
            };
            let facts = entry.cluster.facts.nodes.as_deref();
            let room = place.room.get_or_insert_with(|| Room::new(facts, columns));
            let verdict = match &place.takes {
                _ if is_used => room.carries(demands),
                Some((of, verdict)) if *of == wanted => verdict.clone(),
                _ => room.takes(demands),
            };
            if !is_used {
                place.takes = Some((wanted, verdict.clone()));
            }
            let weight = if prefers { room.weight(&own) } else { 0 };
            all.push(Judged { verdict, weight });
        }
        Judgement(all)
    }

    fn demands_of(&self, apps: Apps) -> Vec<&'a Demand> {
        let demands = self.demands;
        let in_it = self.apps.iter().filter(|app| self.bit(app) & apps != 0);
        in_it.flat_map(|app| demands.of(app)).map(AsRef::as_ref).collect()
    }
}
