//! Chooses the clusters of each app, and says why it goes to no others.
//!
//! Knows nothing of manifests. Deterministic: the same facts in any order give the same choice. Sticky: a choice stays
//! until it no longer qualifies; reachability ranks new choices only. An app that would end on no cluster is refused,
//! because an empty answer would read as "remove everywhere".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use emco_crds::deployment_intent_group::placement::Placement;

use crate::cloud::CloudFacts;
use crate::explain::Explained;
use crate::hardware::{Demands, Lack, Verdict};
use crate::identity::ClusterId;
use crate::refusal::Refusal;
use crate::set::Assignment;
use crate::snapshot::{ClusterFacts, Scheduling};
use crate::terms::{self, Candidate};
use crate::traffic;

mod explain;
mod hardware;
pub mod placement;
mod reach;
mod rule;
mod sticky;

pub use reach::reach;

use hardware::{Hardware, Judgement};
use placement::AppPlacement;
use rule::{Group, Rule};

/// What placement reads.
pub struct Request<'a> {
    /// All clusters of all providers the logical cloud names.
    pub clusters: &'a BTreeMap<ClusterId, ClusterFacts>,
    /// Which of them may be used.
    pub cloud: &'a CloudFacts,
    /// `spec.placement`.
    pub placement: &'a Placement,
    /// Needs of apps, of nodes.
    pub hardware: &'a Demands,
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
    let mut refusals: Vec<(String, Box<Refusal>)> = Vec::new();
    each(request, |app, field, asking| {
        let placement = match field.choose(app, asking) {
            Ok(placement) => placement,
            // Where nodes are divided, the next apps find what this one leaves.
            Err(refusal) if !request.hardware.is_empty() => return Err(refusal),
            Err(refusal) => {
                // Apps with one rule are refused alike.
                if refusals.iter().all(|(path, _)| *path != field.rule.path) {
                    refusals.push((field.rule.path.clone(), refusal));
                }
                return Ok(BTreeSet::new());
            }
        };
        let chosen = request.noted(&placement.chosen);
        placed.push((app.to_owned(), placement));
        Ok::<_, Box<Refusal>>(chosen)
    })?;
    Refusal::all(refusals.into_iter().map(|(_, refusal)| refusal)).map_or(Ok(placed), Err)
}

/// What was decided of every cluster for every app, and why. `placed` is the outcome of [`place`] for the same request.
pub fn explain(request: &Request<'_>, placed: &[(String, AppPlacement)]) -> Vec<Explained> {
    let mut explained = Vec::with_capacity(placed.len());
    let done = each(request, |app, field, asking| {
        let of = placed.iter().find(|(name, _)| name == app);
        let of = of.map_or(&[][..], |(_, placement)| placement.chosen.as_slice());
        let chosen: BTreeSet<&ClusterId> = of.iter().collect();
        explained.push(Explained { app: app.to_owned(), clusters: field.considered(&chosen, asking) });
        Ok::<_, std::convert::Infallible>(request.noted(of))
    });
    let Ok(()) = done;
    explained
}

impl Request<'_> {
    /// The choice, where it counts for the apps that follow.
    fn noted(&self, chosen: &[ClusterId]) -> BTreeSet<ClusterId> {
        if self.hardware.is_empty() { BTreeSet::new() } else { chosen.iter().cloned().collect() }
    }
}

/// The facts that hold for one app.
struct Asking<'a> {
    /// Clusters that have it.
    used: BTreeSet<&'a ClusterId>,
    /// True where its choice is frozen.
    frozen: bool,
    /// The room of clusters for it.
    room: Judgement,
}

impl Asking<'_> {
    /// True where the app may be on a cluster.
    fn takes(&self, entry: &Entry<'_>) -> bool {
        entry.open(&self.used) && self.lack(entry).is_none()
    }

    /// The lack of a cluster, for the app.
    fn lack(&self, entry: &Entry<'_>) -> Option<&Lack> {
        self.room.of(entry)?.verdict.lack()
    }

    /// The right or the answer that is missing to know what a cluster has.
    fn unknown(&self, entry: &Entry<'_>) -> Option<&'static str> {
        match self.room.of(entry)?.verdict {
            Verdict::Unknown(needs) => Some(needs),
            Verdict::Fits | Verdict::Missing(_) | Verdict::InUse(_) => None,
        }
    }

    /// Known to have room first, then reachable, then by what the app prefers, then by name.
    fn rank<'e>(&self, entry: &'e Entry<'e>) -> (bool, bool, Reverse<u32>, &'e ClusterId) {
        let weight = self.room.of(entry).map_or(0, |judged| judged.weight);
        (self.unknown(entry).is_some(), !entry.cluster.facts.reachable, Reverse(weight), entry.id())
    }
}

/// Every app with its rule compared with every cluster, and what holds for it; answers what is chosen.
fn each<E>(
    request: &Request<'_>,
    mut visit: impl FnMut(&str, &Field<'_>, &Asking<'_>) -> Result<BTreeSet<ClusterId>, E>,
) -> Result<(), E> {
    let candidates: Vec<_> = request.clusters.values().map(Candidate::new).collect();
    let mut fields: BTreeMap<(String, bool), Field<'_>> = BTreeMap::new();
    let mut all = Vec::with_capacity(request.apps.len());
    for &app in request.apps {
        let rule = Rule::of(request.placement, app);
        let used: BTreeSet<&ClusterId> = request
            .running
            .into_iter()
            .flatten()
            .filter(|(_, apps)| apps.contains_key(app))
            .map(|(cluster, _)| cluster)
            .collect();
        let frozen = rule.frozen && request.unchanged && !used.is_empty();
        let fenced = request.fenced.contains(app);
        let key = (rule.path.clone(), fenced);
        // Most apps share one rule; every cluster is compared with it once.
        fields.entry(key.clone()).or_insert_with(|| Field::new(&candidates, request.cloud, rule, fenced));
        all.push((app, key, Asking { used, frozen, room: Judgement::default() }));
    }
    let mut hardware = Hardware::new(request.hardware, candidates.len());
    if hardware.counts() {
        for (app, key, asking) in all.iter().filter(|(_, _, asking)| !asking.frozen) {
            if let Some(field) = fields.get(key) {
                hardware.foresee(app, field, &asking.used);
            }
        }
    }
    for (app, key, mut asking) in all {
        let Some(field) = fields.get(&key) else { continue };
        // A frozen choice stays where it is.
        if hardware.counts() && !asking.frozen {
            asking.room = hardware.judge(app, field, &asking.used);
        }
        let chosen = visit(app, field, &asking)?;
        if hardware.counts() {
            hardware.take(app, field, &chosen, &asking.used);
        }
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
    /// Its place among all clusters.
    at: usize,
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
            .enumerate()
            .map(|(at, cluster)| Entry {
                at,
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

    fn choose(&self, app: &str, asking: &Asking<'_>) -> Result<AppPlacement, Box<Refusal>> {
        self.check_names(app)?;
        self.check_room(app, asking)?;
        let open: Vec<&Entry<'_>> = self.entries.iter().filter(|entry| asking.takes(entry)).collect();
        let mut chosen: BTreeSet<&ClusterId> = open
            .iter()
            .filter(|entry| if asking.frozen { asking.used.contains(entry.id()) } else { entry.all_of })
            .map(|entry| entry.id())
            .collect();
        self.keep_used(&open, asking, &mut chosen);
        for (position, group) in self.rule.any_of.iter().enumerate() {
            self.fill(app, (position, group), &open, asking, &mut chosen)?;
        }
        if chosen.is_empty() {
            return Err(self.none_matches(app, asking));
        }
        let rejected = self.rejected(&chosen, asking);
        Ok(AppPlacement { chosen: chosen.into_iter().cloned().collect(), rejected })
    }

    /// Clusters that the app has and that still qualify for a group stay.
    fn keep_used<'e>(
        &self,
        open: &[&'e Entry<'_>],
        asking: &Asking<'_>,
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
            open.iter().filter(|e| asking.used.contains(e.id()) && !chosen.contains(e.id())).collect();
        present.sort_by_key(|entry| asking.rank(entry));
        let fits: Vec<_> = present.iter().map(|entry| entry.groups.clone()).collect();
        let stay = sticky::keep(&fits, &room, &count);
        chosen.extend(present.iter().zip(stay).filter(|(_, stays)| *stays).map(|(entry, _)| entry.id()));
    }

    /// Adds the best clusters until the group has its count; what the app gets otherwise counts.
    fn fill<'e>(
        &self,
        app: &str,
        (position, group): (usize, &Group<'_>),
        open: &[&'e Entry<'_>],
        asking: &Asking<'_>,
        chosen: &mut BTreeSet<&'e ClusterId>,
    ) -> Result<(), Box<Refusal>> {
        let mut fitting: Vec<_> = open.iter().filter(|entry| entry.groups.contains(&position)).collect();
        let have = fitting.iter().filter(|entry| chosen.contains(entry.id())).count();
        fitting.retain(|entry| !chosen.contains(entry.id()));
        fitting.sort_by_key(|entry| asking.rank(entry));
        fitting.truncate(group.count.saturating_sub(have));
        let total = have + fitting.len();
        if total < group.min {
            return Err(self.not_enough(app, position, group, total, asking));
        }
        chosen.extend(fitting.into_iter().map(|entry| entry.id()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
