//! Says what a plan changes: counts, one sentence, and the names that a status has room for.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::app_context::RevisionChanges;
use emco_crds::deployment_intent_group::status::{ChangeCounts, Pending, PendingApp};

use super::{AppChanges, Changes, Variant, What};
use crate::conditions::truncate;
use crate::identity::ClusterId;
use crate::set::Assignment;
use crate::snapshot::Running;
use crate::text::counted;

/// Apps that the sentence speaks of one by one.
const SHOWN: usize = 3;
/// Apps that a status lists.
const MOST_APPS: usize = 64;
/// Objects and hooks that a status names of one app.
const MOST_NAMES: usize = 5;
/// Clusters that a status names of one app.
const MOST_CLUSTERS: usize = 3;
/// Longest name of an object, in bytes.
const LONGEST: usize = 400;
/// Bytes of all names in a status.
const MOST_BYTES: usize = 8 * 1024;

impl Changes {
    /// What differs in one sentence.
    pub fn summary(&self) -> String {
        let mut sentences: Vec<String> = self.apps.iter().filter_map(AppChanges::sentence).collect();
        let more = sentences.len().saturating_sub(SHOWN);
        sentences.truncate(SHOWN);
        let mut summary = sentences.join(". ");
        if more > 0 {
            summary = format!("{summary}. And {}", counted(more, "more app"));
        }
        if summary.is_empty() {
            "no resource changed".clone_into(&mut summary);
        }
        summary
    }

    /// How many clusters lose each app.
    pub fn removals(&self) -> BTreeMap<String, usize> {
        let removed = |app: &AppChanges| app.clusters(|variant| variant.now.is_none());
        let apps = self.apps.iter().map(|app| (app.app.clone(), removed(app)));
        apps.filter(|(_, removed)| *removed > 0).collect()
    }

    /// All of it in numbers, of what runs and of this assignment: each cluster once, and each object as often as there are clusters that it is
    /// on.
    pub fn counts(&self, running: Option<&Running>, assignment: &Assignment) -> RevisionChanges {
        let variants = self.apps.iter().flat_map(|app| &app.variants);
        let changed: BTreeSet<&ClusterId> = variants.flat_map(|variant| &variant.clusters).collect();
        let has =
            |assignment: &Assignment, id: &ClusterId| assignment.get(id).is_some_and(|apps| !apps.is_empty());
        let mut clusters = ChangeCounts::default();
        for id in changed {
            let had = running.is_some_and(|running| has(&running.assignment, id));
            match (had, has(assignment, id)) {
                (false, _) => clusters.added += 1,
                (true, true) => clusters.changed += 1,
                (true, false) => clusters.removed += 1,
            }
        }
        let mut objects = ChangeCounts::default();
        for app in &self.apps {
            add(&mut objects, app.counts());
        }
        RevisionChanges { clusters, objects }
    }

    /// Fills what a status says of it: all counts, and as many names as there is room for.
    pub fn fill(&self, pending: &mut Pending) {
        let mut room = MOST_BYTES;
        let (mut clusters, mut resources) = (ChangeCounts::default(), ChangeCounts::default());
        let mut apps = Vec::new();
        for app in &self.apps {
            let of = app.pending(&mut room);
            add(&mut clusters, of.clusters);
            add(&mut resources, of.resources);
            apps.push(of);
        }
        apps.truncate(MOST_APPS);
        pending.clusters = clusters;
        pending.resources = resources;
        pending.apps = apps;
    }
}

fn add(to: &mut ChangeCounts, more: ChangeCounts) {
    to.added += more.added;
    to.changed += more.changed;
    to.removed += more.removed;
}

fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Variant {
    pub(super) fn count(&self, what: What) -> usize {
        self.objects.iter().filter(|(found, _)| *found == what).count()
    }

    pub(super) const fn is_gain(&self) -> bool {
        self.before.is_none()
    }

    pub(super) const fn is_loss(&self) -> bool {
        self.now.is_none()
    }
}

impl AppChanges {
    fn clusters(&self, which: impl Fn(&Variant) -> bool) -> usize {
        self.variants.iter().filter(|variant| which(variant)).map(|variant| variant.clusters.len()).sum()
    }

    /// Objects, each as often as there are clusters that it is on.
    fn resources(&self, what: What) -> usize {
        self.variants.iter().map(|variant| variant.count(what) * variant.clusters.len()).sum()
    }

    /// The same of all that becomes of them.
    fn counts(&self) -> ChangeCounts {
        ChangeCounts {
            added: number(self.resources(What::Added)),
            changed: number(self.resources(What::Changed)),
            removed: number(self.resources(What::Removed)),
        }
    }

    fn sentence(&self) -> Option<String> {
        let clusters =
            [(self.clusters(Variant::is_gain), "added"), (self.clusters(Variant::is_loss), "removed")];
        let resources = [(What::Added, "added"), (What::Changed, "changed"), (What::Removed, "removed")]
            .map(|(what, word)| (self.resources(what), word));
        let said: Vec<String> =
            [said("cluster", &clusters), said("resource", &resources)].into_iter().flatten().collect();
        let on = counted(self.clusters, "cluster");
        (!said.is_empty()).then(|| format!("{} on {on}: {}", self.app, said.join("; ")))
    }

    fn pending(&self, room: &mut usize) -> PendingApp {
        let is_changed = |variant: &Variant| !variant.is_gain() && !variant.is_loss();
        let clusters = ChangeCounts {
            added: number(self.clusters(Variant::is_gain)),
            changed: number(self.clusters(is_changed)),
            removed: number(self.clusters(Variant::is_loss)),
        };
        let resources = self.counts();
        let named = |which: fn(&Variant) -> bool| {
            let variants = self.variants.iter().filter(move |variant| which(variant));
            variants.flat_map(|variant| &variant.clusters).map(ToString::to_string)
        };
        let objects = self.variants.iter().flat_map(|variant| &variant.objects);
        let hooks = self.variants.iter().flat_map(|variant| &variant.hooks);
        PendingApp {
            name: self.app.clone(),
            clusters,
            resources,
            first: first(objects.map(|(_, id)| id.to_string()), MOST_NAMES, room),
            gained: first(named(Variant::is_gain), MOST_CLUSTERS, room),
            lost: first(named(Variant::is_loss), MOST_CLUSTERS, room),
            hooks: first(hooks.map(|(event, id)| format!("{event} {id}")), MOST_NAMES, room),
            refused: Vec::new(),
            recreated: Vec::new(),
        }
    }
}

/// The first different names, while there is room.
fn first(names: impl Iterator<Item = String>, most: usize, room: &mut usize) -> Vec<String> {
    let mut first: Vec<String> = Vec::new();
    for name in names {
        if first.len() == most {
            break;
        }
        let name = truncate(&name, LONGEST);
        if first.contains(&name) {
            continue;
        }
        let Some(left) = room.checked_sub(name.len()) else { break };
        *room = left;
        first.push(name);
    }
    first
}

/// `2 resources added, 1 removed`: what is not zero, and the noun once.
fn said(noun: &str, parts: &[(usize, &str)]) -> Option<String> {
    let mut parts = parts.iter().filter(|(number, _)| *number > 0);
    let (number, what) = parts.next()?;
    let first = format!("{} {what}", counted(*number, noun));
    Some(parts.fold(first, |said, (number, what)| format!("{said}, {number} {what}")))
}
