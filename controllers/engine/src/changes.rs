//! Compares a plan with what runs: per app, which clusters go from one same set of manifests to another, and which objects differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::app_context::RevisionChanges;
use emco_crds::deployment_intent_group::status::Cause;
use serde::{Deserialize, Serialize};

use crate::identity::{ClusterId, Id, SetDigest};
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::Running;

mod by_intents;
mod details;
mod differences;
mod said;

pub use details::{
    DETAILS, Details, DetailsApp, DetailsVariant, DryRun, MOST_ASKED, ObjectRow, RecreatedRow, RefusedRow,
    digest,
};
pub use differences::{DIFFERENCES, Difference, Differences, SECRET_TYPE, differences};

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum What {
    /// It is there and differs.
    Changed,
    /// It is not there.
    Added,
    /// It is there, and no manifest has it any more.
    Removed,
}

/// What differs from the running revision, in numbers and one sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Why the plan differs; `Placement` where only the assignment does.
    pub cause: Cause,
    /// `web on 42 clusters: 1 cluster added; 2 resources added, 80 changed`: without what is zero.
    pub summary: String,
    /// Clusters that lose an app, counted per app; feeds the removal budget.
    pub removals: BTreeMap<String, usize>,
    /// The same as the summary, in numbers that are stored with the revision.
    pub counts: RevisionChanges,
}

/// All that differs from what runs; apps without a difference are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those of the composite app in its order, then those that left it.
    pub apps: Vec<AppChanges>,
}

/// What differs of one app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppChanges {
    /// Its name.
    pub app: String,
    /// Clusters that are to have it.
    pub clusters: usize,
    /// Those that stay first, then those that get it, then those that lose it; in each, the largest first.
    pub variants: Vec<Variant>,
}

/// Clusters on which an app goes from one same set to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What they have; `None` where they get the app.
    pub before: Option<SetDigest>,
    /// What they get; `None` where they lose the app.
    pub now: Option<SetDigest>,
    /// At least one.
    pub clusters: Vec<ClusterId>,
    /// In the order of applying, those that are removed last.
    pub objects: Vec<(What, Id)>,
    /// Objects that change only because intents do other things, with these: `GenericActionIntent banner`.
    pub by: BTreeMap<Id, Vec<String>>,
    /// Hooks that run on each: the event and the object, in their order.
    pub hooks: Vec<(&'static str, Id)>,
}

/// What a plan is compared with, and what it is.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// What runs; `None` before the first revision.
    pub running: Option<&'a Running>,
    /// Apps, for their order.
    pub apps: &'a [String],
    /// Who is to have what.
    pub assignment: &'a Assignment,
    /// Sets of the assignment.
    pub sets: &'a BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// Clusters where an app was completely applied: hooks of an upgrade run there.
    pub installed: &'a BTreeSet<(ClusterId, String)>,
    /// It is a way back to an earlier revision.
    pub back: bool,
}

/// The set before, the set afterwards, and whether hooks of an upgrade run, where those are others than of an installation.
type Key = (Option<SetDigest>, Option<SetDigest>, bool);

impl Comparison<'_> {
    /// What differs.
    pub fn changes(&self) -> Changes {
        let apps = self.all_apps().into_iter().map(|app| self.app(app));
        Changes { apps: apps.filter(|app| !app.variants.is_empty()).collect() }
    }

    /// Apps that are or were somewhere: those of the composite app in its order, then those that left it.
    fn all_apps(&self) -> Vec<String> {
        let mut apps = self.apps.to_vec();
        let assigned = self.running.into_iter().flat_map(|running| running.assignment.values());
        for app in assigned.flat_map(BTreeMap::keys) {
            if !apps.contains(app) {
                apps.push(app.clone());
            }
        }
        apps
    }

    fn app(&self, app: String) -> AppChanges {
        let had = |cluster| self.running.and_then(|running| running.assignment.get(cluster)?.get(&app));
        let set = |assigned: &Assigned| assigned.set.clone();
        let mut pairs: BTreeMap<Key, Vec<ClusterId>> = BTreeMap::new();
        // Else each cluster on which an app becomes complete would make another plan of it.
        let mut matters: BTreeMap<SetDigest, bool> = BTreeMap::new();
        let mut add = |cluster: &ClusterId, before: Option<&Assigned>, now: Option<&Assigned>| {
            let (before, now) = (before.map(set), now.map(set));
            if before != now {
                let matters = now.as_ref().is_some_and(|now| {
                    *matters.entry(now.clone()).or_insert_with(|| self.upgrade_matters(now))
                });
                let upgrade = matters && self.installed.contains(&(cluster.clone(), app.clone()));
                pairs.entry((before, now, upgrade)).or_default().push(cluster.clone());
            }
        };
        let mut clusters = 0;
        for (cluster, apps) in self.assignment {
            let Some(now) = apps.get(&app) else { continue };
            clusters += 1;
            add(cluster, had(cluster), Some(now));
        }
        for (cluster, apps) in self.running.into_iter().flat_map(|running| &running.assignment) {
            let kept = self.assignment.get(cluster).is_some_and(|apps| apps.contains_key(&app));
            if let Some(before) = apps.get(&app).filter(|_| !kept) {
                add(cluster, Some(before), None);
            }
        }
        let mut variants: Vec<Variant> =
            pairs.into_iter().map(|(key, clusters)| self.variant(&app, key, clusters)).collect();
        variants.sort_by_cached_key(|variant| {
            let rank = (variant.now.is_none(), variant.before.is_none());
            (rank, std::cmp::Reverse(variant.clusters.len()), variant.clusters.first().cloned())
        });
        AppChanges { app, clusters, variants }
    }

    fn variant(&self, app: &str, (before, now, upgrade): Key, clusters: Vec<ClusterId>) -> Variant {
        let had = before.as_ref().and_then(|set| self.running?.sets.get(set));
        let has = now.as_ref().and_then(|set| self.sets.get(set));
        let digests: BTreeMap<Id, &str> = manifests(had).collect();
        let mut objects = Vec::new();
        let mut kept = BTreeSet::new();
        for (id, digest) in manifests(has) {
            match digests.get(&id) {
                None => objects.push((What::Added, id.clone())),
                Some(before) if *before != digest => objects.push((What::Changed, id.clone())),
                Some(_) => {}
            }
            kept.insert(id);
        }
        let gone = manifests(had).map(|(id, _)| id).filter(|id| !kept.contains(id));
        objects.extend(gone.map(|id| (What::Removed, id)));
        let events = if now.is_some() { self.events(upgrade) } else { ["pre-delete", "post-delete"] };
        let hooks = events.into_iter().flat_map(|event| hooks(has.or(had), event)).collect();
        let by = clusters.first().map(|cluster| self.by_intents(app, cluster, &objects)).unwrap_or_default();
        Variant { before, now, clusters, objects, by, hooks }
    }

    const fn events(&self, upgrade: bool) -> [&'static str; 2] {
        match (upgrade, self.back) {
            (false, _) => ["pre-install", "post-install"],
            (true, false) => ["pre-upgrade", "post-upgrade"],
            (true, true) => ["pre-rollback", "post-rollback"],
        }
    }

    /// Whether other hooks of a set run in an upgrade than in an installation.
    fn upgrade_matters(&self, set: &SetDigest) -> bool {
        let set = self.sets.get(set);
        let runs = |upgrade| self.events(upgrade).into_iter().any(|event| !hooks(set, event).is_empty());
        // The event of a hook is shown with it.
        runs(false) || runs(true)
    }
}

fn manifests(set: Option<&Arc<ManifestSet>>) -> impl Iterator<Item = (Id, &str)> {
    let manifests = set.into_iter().flat_map(|set| &set.manifests);
    manifests.map(|manifest| (Id::new(manifest.identity()), manifest.digest.as_str()))
}

fn hooks(set: Option<&Arc<ManifestSet>>, event: &'static str) -> Vec<(&'static str, Id)> {
    let mut hooks: Vec<_> = set
        .into_iter()
        .flat_map(|set| &set.manifests)
        .filter_map(|manifest| Some((manifest.hook.as_ref()?, manifest)))
        .filter(|(hook, _)| hook.events.iter().any(|named| named == event))
        .map(|(hook, manifest)| (hook.weight, manifest.identity()))
        .collect();
    hooks.sort_by_key(|(weight, _)| *weight);
    hooks.into_iter().map(|(_, identity)| (event, Id::new(identity))).collect()
}

#[cfg(test)]
mod tests;
