//! Says what would have to change for a rule to match a cluster.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::conditions::types::PLACED;
use emco_crds::fields::ClusterTerm;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::placement::Rejected;
use super::{Asking, Entry, Field, Group};
use crate::explain::{Considered, Verdict};
use crate::hardware;
use crate::identity::ClusterId;
use crate::refusal::Refusal;
use crate::snapshot::Scheduling;
use crate::terms;
use crate::text::counted;
use crate::traffic;

/// Why a cluster was not chosen. Closed set: `status.apps[].rejected[].reason`.
mod verdict {
    /// It matches, but the logical cloud does not have it.
    pub const NOT_IN_LOGICAL_CLOUD: &str = "NotInLogicalCloud";
    /// It matches, but takes no new work.
    pub const CORDONED: &str = "Cordoned";
    /// It matches, but is being emptied.
    pub const DRAINED: &str = "Drained";
    /// Only labels stand in the way.
    pub const LABEL_MISSING: &str = "LabelMissing";
    /// The rule names other clusters or providers.
    pub const NOT_SELECTED: &str = "NotSelected";
    /// It lacks what an intent of traffic needs.
    pub const BACKEND_MISSING: &str = "BackendMissing";
    /// It qualifies for a group that has enough.
    pub const NOT_CHOSEN: &str = "NotChosen";
    /// It came after the choice was frozen.
    pub const FROZEN: &str = "Frozen";
    /// It qualifies, and its nodes lack what the app needs, whatever runs there.
    pub const HARDWARE_MISSING: &str = "HardwareMissing";
    /// It qualifies, and others use what the app needs.
    pub const HARDWARE_IN_USE: &str = "HardwareInUse";
    /// It qualifies for a group that has enough of those that are known to have what the app needs, which of this one is not known.
    pub const HARDWARE_UNKNOWN: &str = "HardwareUnknown";
    /// A group names it, and there is no such Cluster.
    pub const NOT_FOUND: &str = "ClusterNotFound";
}

/// What a name that nobody has needs.
const MISSING: &str = "a Cluster of that name";

/// The part of the rule that took a cluster.
fn chosen_by(entry: &Entry<'_>, frozen: bool) -> String {
    match entry.groups.first() {
        _ if frozen => "membership Frozen".to_owned(),
        Some(position) if !entry.all_of => format!("anyOf[{position}]"),
        _ => "allOf".to_owned(),
    }
}

impl Field<'_> {
    /// Everything that was not chosen, by reason, most clusters first.
    pub(super) fn rejected(&self, chosen: &BTreeSet<&ClusterId>, asking: &Asking<'_>) -> Vec<Rejected> {
        struct Count<'e> {
            clusters: usize,
            nearest: (usize, &'e Entry<'e>),
        }
        let mut counts: BTreeMap<&str, Count<'_>> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| !chosen.contains(entry.id())) {
            let cost = self.obstacles(entry, asking);
            let count = counts
                .entry(self.verdict(entry, asking))
                .or_insert(Count { clusters: 0, nearest: (cost, entry) });
            count.clusters += 1;
            if cost < count.nearest.0 {
                count.nearest = (cost, entry);
            }
        }
        let mut rejected: Vec<_> = counts
            .into_iter()
            .map(|(reason, Count { clusters, nearest: (_, entry) })| Rejected {
                reason: reason.to_owned(),
                clusters,
                example: entry.id().clone(),
                needs: self.needs(entry, asking, asking.frozen),
            })
            .collect();
        rejected.extend(self.names_nobody_has());
        rejected.sort_by(|a, b| b.clusters.cmp(&a.clusters).then_with(|| a.reason.cmp(&b.reason)));
        rejected
    }

    /// Every cluster with what was decided of it and why.
    pub(super) fn considered(&self, chosen: &BTreeSet<&ClusterId>, asking: &Asking<'_>) -> Vec<Considered> {
        let known = self.entries.iter().map(|entry| {
            let taken = chosen.contains(entry.id());
            Considered {
                cluster: entry.id().to_string(),
                verdict: if taken { Verdict::Chosen } else { Verdict::Rejected },
                reason: if taken {
                    chosen_by(entry, asking.frozen)
                } else {
                    self.verdict(entry, asking).to_owned()
                },
                needs: if taken { String::new() } else { self.needs(entry, asking, asking.frozen) },
            }
        });
        let missing = self.missing_names().into_iter().map(|id| Considered {
            cluster: id.to_string(),
            verdict: Verdict::Rejected,
            reason: verdict::NOT_FOUND.to_owned(),
            needs: MISSING.to_owned(),
        });
        known.chain(missing).collect()
    }

    /// Clusters that groups name and that do not exist: one candidate less, not a mistake that stops everything.
    fn missing_names(&self) -> BTreeSet<ClusterId> {
        let groups = self.rule.any_of.iter().flat_map(|group| group.from);
        groups.filter_map(named).filter(|id| !self.knows(id)).collect()
    }

    fn names_nobody_has(&self) -> Option<Rejected> {
        let missing = self.missing_names();
        missing.first().map(|example| Rejected {
            reason: verdict::NOT_FOUND.to_owned(),
            clusters: missing.len(),
            example: example.clone(),
            needs: MISSING.to_owned(),
        })
    }

    fn verdict(&self, entry: &Entry<'_>, asking: &Asking<'_>) -> &'static str {
        if !entry.all_of && entry.groups.is_empty() {
            let distance = self.nearest_term(entry).map_or(usize::MAX, |(distance, _)| distance);
            return if terms::only_labels(distance) { verdict::LABEL_MISSING } else { verdict::NOT_SELECTED };
        }
        let room = asking.room.of(entry).map(|judged| &judged.verdict);
        match (entry.cluster.facts.scheduling, room) {
            _ if !entry.in_cloud => verdict::NOT_IN_LOGICAL_CLOUD,
            (Scheduling::Drained, _) => verdict::DRAINED,
            (Scheduling::Cordoned, _) if !asking.used.contains(entry.id()) => verdict::CORDONED,
            (Scheduling::Enabled, _) if !entry.open(&asking.used) => verdict::BACKEND_MISSING,
            (_, Some(hardware::Verdict::Missing(_))) => verdict::HARDWARE_MISSING,
            (_, Some(hardware::Verdict::InUse(_))) => verdict::HARDWARE_IN_USE,
            (_, Some(hardware::Verdict::Unknown(_))) => verdict::HARDWARE_UNKNOWN,
            (Scheduling::Cordoned, _) => verdict::CORDONED,
            (Scheduling::Enabled, _) if entry.lacks => verdict::BACKEND_MISSING,
            (Scheduling::Enabled, _) if asking.frozen && entry.all_of => verdict::FROZEN,
            (Scheduling::Enabled, _) => verdict::NOT_CHOSEN,
        }
    }

    /// How much would have to change for a cluster to be taken: labels first, then the cloud, then scheduling, then its nodes.
    fn obstacles(&self, entry: &Entry<'_>, asking: &Asking<'_>) -> usize {
        let distance = match self.nearest_term(entry) {
            _ if entry.all_of || !entry.groups.is_empty() => 0,
            Some((distance, _)) => distance,
            None => usize::MAX / 2,
        };
        distance
            + usize::from(!entry.in_cloud)
            + usize::from(entry.in_cloud && !entry.open(&asking.used))
            + usize::from(asking.lack(entry).is_some())
    }

    /// The smallest change that would admit a cluster, as text.
    fn needs(&self, entry: &Entry<'_>, asking: &Asking<'_>, frozen: bool) -> String {
        let mut needs = Vec::new();
        let qualifies = entry.all_of || !entry.groups.is_empty();
        if !qualifies && let Some((_, term)) = self.nearest_term(entry) {
            needs.push(terms::needs(term, entry.cluster));
        }
        if !entry.in_cloud {
            needs.push(format!("to be a cluster of logical cloud {}", self.cloud.name));
        } else if !entry.open(&asking.used) {
            if entry.cluster.facts.scheduling != Scheduling::Enabled {
                needs.push("scheduling: Enabled".to_owned());
            }
            needs.extend(entry.lacks.then(|| traffic::NEEDS.to_owned()));
        } else if let Some(lack) = asking.lack(entry) {
            needs.push(lack.needs.clone());
        } else if let Some(unknown) = asking.unknown(entry) {
            needs.push(unknown.to_owned());
        } else if qualifies && frozen && entry.all_of {
            needs.push(format!("{}.membership Follow, or an edit of the spec", self.rule.path));
        } else if let Some(position) = entry.groups.first()
            && let Some(group) = self.rule.any_of.get(*position)
        {
            needs.push(format!("{}.anyOf[{position}].count above {}", self.rule.path, group.count));
        }
        needs.join(" and ")
    }

    fn nearest_term(&self, entry: &Entry<'_>) -> Option<(usize, &ClusterTerm)> {
        let all_of = terms::nearest(self.rule.all_of, entry.cluster);
        let any_of = self.rule.any_of.iter().filter_map(|group| terms::nearest(group.from, entry.cluster));
        all_of.into_iter().chain(any_of).min_by_key(|(distance, _)| *distance)
    }

    fn knows(&self, id: &ClusterId) -> bool {
        self.entries.binary_search_by(|entry| entry.id().cmp(id)).is_ok()
    }

    /// What `allOf` names must be there: everything it names gets the app.
    pub(super) fn check_names(&self, app: &str) -> Result<(), Box<Refusal>> {
        for id in self.rule.all_of.iter().filter_map(named) {
            let field = format!("app {app}: {}.allOf names cluster {id}", self.rule.path);
            if !self.knows(&id) {
                return Err(Refusal::new(
                    PLACED,
                    Reason::ClusterNotFound,
                    format!("{field}, which does not exist: register that Cluster or remove the term"),
                ));
            }
            if !self.cloud.clusters.contains(&id) {
                return Err(Refusal::new(
                    PLACED,
                    Reason::ClusterNotInLogicalCloud,
                    format!(
                        "{field}, which is not a cluster of logical cloud {}: add it to the cloud's spec.clusters, have \
                         it granted to the project, or remove the term",
                        self.cloud.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// A cluster of `allOf` gets the app for certain: it must have room for it.
    pub(super) fn check_room(&self, app: &str, asking: &Asking<'_>) -> Result<(), Box<Refusal>> {
        let taken = self.entries.iter().filter(|entry| entry.all_of && entry.open(&asking.used));
        let mut lacking = taken.filter_map(|entry| Some((entry, asking.lack(entry)?)));
        let Some((entry, lack)) = lacking.next() else { return Ok(()) };
        let others = match lacking.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!(
            "app {app}: {}.allOf takes {}{others}, whose nodes have no room for it: {} needs {}; add it there, or take the cluster out of \
             allOf",
            self.rule.path,
            entry.id(),
            lack.origin,
            lack.needs
        );
        Err(Refusal::new(PLACED, Reason::HardwareUnsatisfiable, message))
    }

    /// No cluster at all.
    pub(super) fn none_matches(&self, app: &str, asking: &Asking<'_>) -> Box<Refusal> {
        let Field { rule, cloud, entries } = self;
        let message = if rule.all_of.is_empty() && rule.any_of.is_empty() {
            format!(
                "app {app}: {} says no clusters for it: add allOf or anyOf there, or an entry for {app} to \
                 spec.placement.apps",
                rule.path
            )
        } else if entries.is_empty() {
            format!(
                "app {app}: no cluster matches {}, because logical cloud {} has no clusters: register clusters and grant \
                 them to the project",
                rule.field(),
                cloud.name
            )
        } else {
            let nearest = self.nearest(entries.iter(), asking);
            format!("app {app}: no cluster matches {}; {nearest}", rule.field())
        };
        Refusal::new(PLACED, self.missing(), message)
    }

    /// Why there is no cluster: those that match may only lack what an intent needs.
    fn missing(&self) -> Reason {
        let only_lacks = |entry: &Entry<'_>| {
            let picked = entry.all_of || !entry.groups.is_empty();
            picked && entry.in_cloud && entry.lacks && entry.cluster.facts.scheduling == Scheduling::Enabled
        };
        if self.entries.iter().any(only_lacks) { Reason::BackendMissing } else { Reason::NoClusterMatches }
    }

    /// Some, but fewer than a group must have.
    pub(super) fn not_enough(
        &self,
        app: &str,
        position: usize,
        group: &Group<'_>,
        found: usize,
        asking: &Asking<'_>,
    ) -> Box<Refusal> {
        let path = format!("{}.anyOf[{position}]", self.rule.path);
        let closed = |entry: &&Entry<'_>| !(entry.groups.contains(&position) && asking.takes(entry));
        let nearest = self.nearest(self.entries.iter().filter(closed), asking);
        let mut of_group = self.entries.iter().filter(|entry| entry.groups.contains(&position));
        let (reason, what) = if of_group.any(|entry| entry.open(&asking.used) && asking.lack(entry).is_some())
        {
            let least = counted(group.min, "cluster");
            let what =
                format!("{path} needs at least {least} whose nodes have room for it, and {found} have");
            (Reason::HardwareUnsatisfiable, what)
        } else if found == 0 {
            (self.missing(), format!("no cluster matches {path}.from"))
        } else {
            let least = group.min;
            (Reason::NotEnoughClusters, format!("{path} needs at least {least} clusters and {found} qualify"))
        };
        Refusal::new(PLACED, reason, format!("app {app}: {what}; {nearest}"))
    }

    /// `nearest is acme/oslo-2, which needs label tier=edge (12 clusters considered)`.
    fn nearest<'e>(&'e self, entries: impl Iterator<Item = &'e Entry<'e>>, asking: &Asking<'_>) -> String {
        let considered = self.entries.len();
        let plural = if considered == 1 { "cluster" } else { "clusters" };
        let nearest = entries.min_by_key(|entry| (self.obstacles(entry, asking), entry.id()));
        match nearest {
            Some(entry) => {
                let needs = self.needs(entry, asking, false);
                format!("nearest is {}, which needs {needs} ({considered} {plural} considered)", entry.id())
            }
            None => format!("there is no other cluster ({considered} {plural} considered)"),
        }
    }
}

/// The cluster that a term names, if it names one.
fn named(term: &ClusterTerm) -> Option<ClusterId> {
    let ClusterTerm { provider, cluster, selector: _ } = term;
    Some(ClusterId::new(provider.as_ref()?, cluster.as_ref()?))
}
