//! Compares a plan with what runs, as numbers and one sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::deployment_intent_group::status::Cause;

use super::{Change, Plan};
use crate::identity::{Id, SetDigest};
use crate::resolve::Resolved;
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::Running;
use crate::text::counted;

/// Apps that the sentence speaks of one by one.
const SHOWN: usize = 3;

#[derive(Clone, Copy, Default)]
struct Counts {
    added: usize,
    changed: usize,
    removed: usize,
}

/// What differs from what runs; `None` where nothing does.
pub fn change(resolved: &Resolved<'_>, plan: &Plan) -> Option<Change> {
    let running = resolved.snapshot.running.as_ref();
    let app = resolved.dig.spec.composite_app_ref.name.as_str();
    let cause = match running {
        None if plan.assignment.is_empty() => return None,
        None => Cause::Create,
        Some(running) if running.plan_digest == plan.plan_digest => return None,
        Some(running) if running.composite_app != app => Cause::Migrate,
        Some(running) if running.inputs_digest != plan.inputs_digest => Cause::Update,
        Some(_) => Cause::Placement,
    };
    let apps: Vec<String> = plan.placement.iter().map(|(app, _)| app.clone()).collect();
    let (summary, removals) = compare(running, &apps, &plan.assignment, &plan.sets);
    Some(Change { cause, summary, removals })
}

/// What changes where something else runs than `running`, in one sentence. `apps` gives the order.
pub fn difference(
    running: Option<&Running>,
    apps: &[String],
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> String {
    compare(running, apps, assignment, sets).0
}

/// The sentence, and how many clusters lose each app.
fn compare(
    running: Option<&Running>,
    apps: &[String],
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> (String, BTreeMap<String, usize>) {
    let mut diff = Diff { apps, assignment, sets, running, pairs: BTreeMap::new() };
    let mut sentences = Vec::new();
    let mut removals = BTreeMap::new();
    for app in diff.apps() {
        let (clusters, total, resources) = diff.app(&app);
        if clusters.removed > 0 {
            removals.insert(app.clone(), clusters.removed);
        }
        let said: Vec<String> =
            [clusters.said("cluster"), resources.said("resource")].into_iter().flatten().collect();
        if !said.is_empty() {
            sentences.push(format!("{app} on {}: {}", counted(total, "cluster"), said.join("; ")));
        }
    }
    let more = sentences.len().saturating_sub(SHOWN);
    sentences.truncate(SHOWN);
    let mut summary = sentences.join(". ");
    if more > 0 {
        summary = format!("{summary}. And {}", counted(more, "more app"));
    }
    if summary.is_empty() {
        "no resource changed".clone_into(&mut summary);
    }
    (summary, removals)
}

impl Counts {
    /// `2 resources added, 1 removed`: what is not zero, and the noun once.
    fn said(self, noun: &str) -> Option<String> {
        let Self { added, changed, removed } = self;
        let parts = [(added, "added"), (changed, "changed"), (removed, "removed")];
        let mut parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let (number, what) = parts.next()?;
        let first = format!("{} {what}", counted(number, noun));
        Some(parts.fold(first, |said, (number, what)| format!("{said}, {number} {what}")))
    }
}

struct Diff<'a> {
    apps: &'a [String],
    assignment: &'a Assignment,
    sets: &'a BTreeMap<SetDigest, Arc<ManifestSet>>,
    running: Option<&'a Running>,
    /// Most clusters go from one same set to another.
    pairs: BTreeMap<(Option<SetDigest>, Option<SetDigest>), Counts>,
}

impl Diff<'_> {
    /// Apps that are or were somewhere: those of the composite app in its order, then those that left it.
    fn apps(&self) -> Vec<String> {
        let mut apps = self.apps.to_vec();
        let assigned = self.running.into_iter().flat_map(|running| running.assignment.values());
        for app in assigned.flat_map(BTreeMap::keys) {
            if !apps.contains(app) {
                apps.push(app.clone());
            }
        }
        apps
    }

    fn app(&mut self, app: &str) -> (Counts, usize, Counts) {
        let (assignment, running) = (self.assignment, self.running);
        let mut clusters = Counts::default();
        let mut total = 0;
        let mut resources = Counts::default();
        let had = |cluster| running.and_then(|running| running.assignment.get(cluster)?.get(app));
        for (cluster, apps) in assignment {
            let Some(now) = apps.get(app) else { continue };
            total += 1;
            let before = had(cluster);
            clusters.added += usize::from(before.is_none());
            self.count(before, Some(now), &mut resources);
        }
        for (cluster, apps) in running.into_iter().flat_map(|running| &running.assignment) {
            let kept = assignment.get(cluster).is_some_and(|apps| apps.contains_key(app));
            if let Some(before) = apps.get(app).filter(|_| !kept) {
                clusters.removed += 1;
                self.count(Some(before), None, &mut resources);
            }
        }
        (clusters, total, resources)
    }

    fn count(&mut self, before: Option<&Assigned>, now: Option<&Assigned>, into: &mut Counts) {
        let key = (before.map(|a| a.set.clone()), now.map(|a| a.set.clone()));
        if key.0 == key.1 {
            return;
        }
        let known = self.pairs.get(&key).copied();
        let counts = known.unwrap_or_else(|| self.compare(key.0.as_ref(), key.1.as_ref()));
        self.pairs.insert(key, counts);
        into.added += counts.added;
        into.changed += counts.changed;
        into.removed += counts.removed;
    }

    fn compare(&self, before: Option<&SetDigest>, now: Option<&SetDigest>) -> Counts {
        let before = before.and_then(|set| self.running?.sets.get(set));
        let now = now.and_then(|set| self.sets.get(set));
        let digests = |set: Option<&Arc<ManifestSet>>| -> BTreeMap<Id, String> {
            let manifests = set.into_iter().flat_map(|set| &set.manifests);
            manifests.map(|manifest| (Id::new(manifest.identity()), manifest.digest.clone())).collect()
        };
        let (before, now) = (digests(before), digests(now));
        Counts {
            added: now.keys().filter(|identity| !before.contains_key(*identity)).count(),
            changed: now.iter().filter(|(id, digest)| before.get(*id).is_some_and(|b| b != *digest)).count(),
            removed: before.keys().filter(|identity| !now.contains_key(*identity)).count(),
        }
    }
}
