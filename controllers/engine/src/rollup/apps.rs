//! Sums up the status of each app.

use std::collections::BTreeMap;

use emco_crds::State;
use emco_crds::deployment_intent_group::status::{AppStatus, RejectedStatus};

use super::facts::{ClusterFact, Kind};
use super::state::{self, Observation};
use super::{DigInputs, count};
use crate::conditions::truncate;
use crate::shard::is_failure;

/// Most clusters that are named as chosen.
pub const MOST_CHOSEN: usize = 3;
/// Most reasons why clusters were not chosen.
const MOST_REJECTED: usize = 4;
/// Bytes of chosen and rejected clusters of all apps: the first ones of many apps are named.
const MOST_BYTES: usize = 10 * 1024;
/// Bytes of the field names around one that was rejected.
const AROUND: usize = 64;

/// Sums of apps over clusters, by name.
pub type Apps = BTreeMap<String, App>;

/// Those of these clusters.
pub fn of(facts: &[ClusterFact<'_>]) -> Apps {
    let mut seen: BTreeMap<&str, App> = BTreeMap::new();
    for fact in facts {
        for app in fact.wanted.into_iter().flat_map(|apps| apps.keys()) {
            seen.entry(app).or_default().add(app, fact);
        }
    }
    seen.into_iter().map(|(name, app)| (name.to_owned(), app)).collect()
}

/// With those of other clusters.
pub fn and(all: &mut Apps, others: &Apps) {
    for (name, app) in others {
        match all.get_mut(name) {
            Some(known) => known.and(app),
            None => drop(all.insert(name.clone(), app.clone())),
        }
    }
}

/// One status per app, in the order of the placement.
pub fn statuses(seen: &Apps, inputs: &DigInputs<'_>, owner: &Observation) -> Vec<AppStatus> {
    let mut room = MOST_BYTES;
    let mut fits = |bytes: usize| {
        let left = room.checked_sub(bytes);
        room = left.unwrap_or(room);
        left.is_some()
    };
    let status = |(name, placement): &(String, crate::placement::AppPlacement)| {
        let app = seen.get(name).cloned().unwrap_or_default();
        let before = inputs.before.apps.get(name).copied().unwrap_or_default();
        let observation = Observation {
            applied: app.applied,
            progressing: app.progressing,
            failed: app.failed,
            unreachable: app.unreachable,
            ..*owner
        };
        let mut chosen: Vec<String> =
            placement.chosen.iter().take(MOST_CHOSEN).map(ToString::to_string).collect();
        chosen.retain(|id| fits(id.len()));
        let rejected = placement.rejected.iter().take(MOST_REJECTED).map(|r| RejectedStatus {
            reason: r.reason.clone(),
            clusters: count(r.clusters),
            example: r.example.to_string(),
            needs: truncate(&r.needs, 256),
        });
        let mut rejected: Vec<RejectedStatus> = rejected.collect();
        rejected.retain(|r| fits(r.reason.len() + r.example.len() + r.needs.len() + AROUND));
        AppStatus {
            name: name.clone(),
            state: Some(state::next(before, &observation)),
            clusters: count(app.clusters),
            ready: count(app.ready),
            chosen,
            rejected,
            unread_values: Vec::new(),
        }
    };
    inputs.placement.iter().map(status).collect()
}

/// An app on some clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct App {
    clusters: usize,
    ready: usize,
    applied: usize,
    progressing: usize,
    failed: usize,
    unreachable: usize,
}

impl App {
    fn and(&mut self, other: &Self) {
        let Self { clusters, ready, applied, progressing, failed, unreachable } = other;
        self.clusters += clusters;
        self.ready += ready;
        self.applied += applied;
        self.progressing += progressing;
        self.failed += failed;
        self.unreachable += unreachable;
    }

    fn add(&mut self, name: &str, fact: &ClusterFact<'_>) {
        self.clusters += 1;
        // A row names the apps that are not as wanted; the others are.
        let named = fact.status.as_ref().and_then(|s| s.apps.iter().find(|a| a.app == name));
        let settled = |state| matches!(state, State::Instantiated | State::Updated);
        let applied = fact.applied
            || (fact.current
                && fact.status.is_some()
                && !fact.is_replaced()
                && named.is_none_or(|a| settled(a.state))
                && fact.kind != Kind::Unreachable
                && fact.spoke());
        if applied {
            self.applied += 1;
        } else if fact.kind == Kind::Unreachable {
            self.unreachable += 1;
        } else if named.is_some_and(|a| is_failure(a.state)) {
            self.failed += 1;
        } else {
            self.progressing += 1;
        }
        let as_wanted = named.is_none_or(|a| a.ready >= a.total);
        self.ready += usize::from(applied && as_wanted && fact.kind != Kind::Unreachable);
    }
}

impl ClusterFact<'_> {
    /// Whether the row's status says anything of its apps: one that just began says nothing yet.
    fn spoke(&self) -> bool {
        self.kind == Kind::Ready || self.status.as_ref().is_some_and(|s| !s.apps.is_empty())
    }
}
