//! Chooses the clusters of each app, and says why it goes to no others.
//!
//! Knows nothing of manifests. Deterministic: the same facts in any order give the same choice. Sticky: a choice stays
//! until it no longer qualifies; reachability ranks new choices only. An app that would end on no cluster is refused,
//! because an empty answer would read as "remove everywhere".

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::deployment_intent_group::placement::Placement;

use crate::cloud::CloudFacts;
use crate::explain::Explained;
use crate::identity::ClusterId;
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::set::Assignment;
use crate::snapshot::{ClusterFacts, Scheduling};
use crate::terms::{self, Candidate};
use crate::traffic;

mod explain;
pub mod placement;
mod rule;
mod sticky;

use rule::{Group, Rule};

/// What placement reads.
pub struct Request<'a> {
    /// All clusters of all providers the logical cloud names.
    pub clusters: &'a BTreeMap<ClusterId, ClusterFacts>,
    /// Which of them may be used.
    pub cloud: &'a CloudFacts,
    /// `spec.placement`.
    pub placement: &'a Placement,
    /// Names of the apps, in the order of the composite app.
    pub apps: &'a [&'a str],
    /// Apps that need a cluster that enforces NetworkPolicies: nothing new of them goes where it is stated that none does.
    pub fenced: &'a BTreeSet<&'a str>,
    /// Who has what now.
    pub running: Option<&'a Assignment>,
    /// Whether everything people wrote is as it was when `running` was planned. Decides what `membership: Frozen` keeps.
    pub unchanged: bool,
}

/// Chooses clusters for every app, in the order of the apps.
pub fn place(request: &Request<'_>) -> Result<Vec<(String, AppPlacement)>, Box<Refusal>> {
    let mut placed = Vec::with_capacity(request.apps.len());
    each(request, |app, field, used, frozen| {
        placed.push((app.to_owned(), field.choose(app, used, frozen)?));
        Ok::<(), Box<Refusal>>(())
    })?;
    Ok(placed)
}

/// What was decided of every cluster for every app, and why. `placed` is the outcome of [`place`] for the same request.
pub fn explain(request: &Request<'_>, placed: &[(String, AppPlacement)]) -> Vec<Explained> {
    let mut explained = Vec::with_capacity(placed.len());
    let done = each(request, |app, field, used, frozen| {
        let chosen: BTreeSet<&ClusterId> = placed
            .iter()
            .filter(|(name, _)| name == app)
            .flat_map(|(_, placement)| &placement.chosen)
            .collect();
        explained.push(Explained { app: app.to_owned(), clusters: field.considered(&chosen, used, frozen) });
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = done;
    explained
}

/// Every app with its rule compared with every cluster, the clusters that have it, and whether its choice is frozen.
fn each<E>(
    request: &Request<'_>,
    mut visit: impl FnMut(&str, &Field<'_>, &BTreeSet<&ClusterId>, bool) -> Result<(), E>,
) -> Result<(), E> {
    let candidates: Vec<_> = request.clusters.values().map(Candidate::new).collect();
    let mut fields: BTreeMap<(String, bool), Field<'_>> = BTreeMap::new();
    for &app in request.apps {
        let rule = Rule::of(request.placement, app);
        // Most apps share one rule; every cluster is compared with it once.
        let fenced = request.fenced.contains(app);
        let field = fields
            .entry((rule.path.clone(), fenced))
            .or_insert_with(|| Field::new(&candidates, request.cloud, rule.clone(), fenced));
        let used: BTreeSet<&ClusterId> = request
            .running
            .into_iter()
            .flatten()
            .filter(|(_, apps)| apps.contains_key(app))
            .map(|(cluster, _)| cluster)
            .collect();
        let frozen = rule.frozen && request.unchanged && !used.is_empty();
        visit(app, field, &used, frozen)?;
    }
    Ok(())
}

/// One rule, compared with every cluster.
struct Field<'a> {
    cloud: &'a CloudFacts,
    rule: Rule<'a>,
    entries: Vec<Entry<'a>>,
}

/// One cluster under one rule.
struct Entry<'a> {
    cluster: &'a Candidate<'a>,
    /// Picked by `allOf`.
    all_of: bool,
    /// Groups of `anyOf` that may take it.
    groups: Vec<usize>,
    /// Whether the logical cloud has it.
    in_cloud: bool,
    /// Whether it lacks what the app needs.
    lacks: bool,
}

impl Entry<'_> {
    fn id(&self) -> &ClusterId {
        &self.cluster.facts.id
    }

    /// Whether the app may be there: it may take work, or it has the app already, and is cordoned or lacks what others of it need.
    fn open(&self, used: &BTreeSet<&ClusterId>) -> bool {
        self.in_cloud
            && match self.cluster.facts.scheduling {
                Scheduling::Enabled if !self.lacks => true,
                Scheduling::Enabled | Scheduling::Cordoned => used.contains(self.id()),
                Scheduling::Drained => false,
            }
    }
}

impl<'a> Field<'a> {
    fn new(candidates: &'a [Candidate<'a>], cloud: &'a CloudFacts, rule: Rule<'a>, fenced: bool) -> Self {
        let entries = candidates
            .iter()
            .map(|cluster| Entry {
                cluster,
                all_of: terms::any_matches(rule.all_of, cluster),
                groups: (0..rule.any_of.len())
                    .filter(|g| rule.any_of.get(*g).is_some_and(|g| terms::any_matches(g.from, cluster)))
                    .collect(),
                in_cloud: cloud.clusters.contains(&cluster.facts.id),
                lacks: fenced && traffic::is_without(cluster.facts),
            })
            .collect();
        Self { cloud, rule, entries }
    }

    fn choose(
        &self,
        app: &str,
        used: &BTreeSet<&ClusterId>,
        frozen: bool,
    ) -> Result<AppPlacement, Box<Refusal>> {
        self.check_names(app)?;
        let open: Vec<&Entry<'_>> = self.entries.iter().filter(|entry| entry.open(used)).collect();
        let mut chosen: BTreeSet<&ClusterId> = open
            .iter()
            .filter(|entry| if frozen { used.contains(entry.id()) } else { entry.all_of })
            .map(|entry| entry.id())
            .collect();
        self.keep_used(&open, used, &mut chosen);
        for (position, group) in self.rule.any_of.iter().enumerate() {
            self.fill(app, position, group, &open, used, &mut chosen)?;
        }
        if chosen.is_empty() {
            return Err(self.none_matches(app, used));
        }
        let rejected = self.rejected(&chosen, used, frozen);
        Ok(AppPlacement { chosen: chosen.into_iter().cloned().collect(), rejected })
    }

    /// Clusters that the app has and that still qualify for a group stay.
    fn keep_used<'e>(
        &self,
        open: &[&'e Entry<'_>],
        used: &BTreeSet<&ClusterId>,
        chosen: &mut BTreeSet<&'e ClusterId>,
    ) {
        let mut room: Vec<usize> = self.rule.any_of.iter().map(|group| group.count).collect();
        let count = room.clone();
        for entry in open.iter().filter(|entry| chosen.contains(entry.id())) {
            for group in &entry.groups {
                if let Some(room) = room.get_mut(*group) {
                    *room = room.saturating_sub(1);
                }
            }
        }
        let mut present: Vec<_> =
            open.iter().filter(|e| used.contains(e.id()) && !chosen.contains(e.id())).collect();
        present.sort_by_key(|entry| rank(entry));
        let fits: Vec<_> = present.iter().map(|entry| entry.groups.clone()).collect();
        let stay = sticky::keep(&fits, &room, &count);
        chosen.extend(present.iter().zip(stay).filter(|(_, stays)| *stays).map(|(entry, _)| entry.id()));
    }

    /// Adds the best clusters until the group has its count; what the app gets otherwise counts.
    fn fill<'e>(
        &self,
        app: &str,
        position: usize,
        group: &Group<'_>,
        open: &[&'e Entry<'_>],
        used: &BTreeSet<&ClusterId>,
        chosen: &mut BTreeSet<&'e ClusterId>,
    ) -> Result<(), Box<Refusal>> {
        let mut fitting: Vec<_> = open.iter().filter(|entry| entry.groups.contains(&position)).collect();
        let have = fitting.iter().filter(|entry| chosen.contains(entry.id())).count();
        fitting.retain(|entry| !chosen.contains(entry.id()));
        fitting.sort_by_key(|entry| rank(entry));
        fitting.truncate(group.count.saturating_sub(have));
        let total = have + fitting.len();
        if total < group.min {
            return Err(self.not_enough(app, position, group, total, used));
        }
        chosen.extend(fitting.into_iter().map(|entry| entry.id()));
        Ok(())
    }
}

/// Reachable first, then by name.
fn rank<'e>(entry: &'e Entry<'_>) -> (bool, &'e ClusterId) {
    (!entry.cluster.facts.reachable, entry.id())
}

#[cfg(test)]
mod tests;
