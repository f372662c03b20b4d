//! A combination in, the objects it consists of out, each with the resource it is applied to; and what may be there
//! besides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::apis::ApiResource;
use emco_engine::identity::{Id, Identity, SetDigest};
use emco_engine::set::SetManifest;

use super::super::edge::Session;
use super::super::errors::Trouble;
use super::super::prepared::{Prepared, STAGES};
use super::super::work::{Named, Work};
use super::Job;

/// One object to be applied.
#[derive(Clone)]
pub(super) struct Item {
    pub app: Arc<str>,
    pub id: Id,
    set: Arc<Prepared>,
    /// Where it is in its set, which is in the order of applying.
    pub place: usize,
    /// What the annotation on the cluster says when this is applied.
    pub token: Arc<str>,
}

impl Item {
    /// The manifest.
    pub fn manifest(&self) -> Option<&SetManifest> {
        self.set.set.manifests.get(self.place)
    }

    /// All else waits until it is ready.
    pub fn is_foundation(&self) -> bool {
        self.set.stages.first().is_some_and(|places| places.binary_search(&self.place).is_ok())
    }

    /// The set it is of.
    pub fn set_digest(&self) -> &SetDigest {
        &self.set.set.digest
    }
}

/// One app of the target.
pub(super) struct App {
    pub name: Arc<str>,
    pub set: Arc<Prepared>,
    /// Everything but hooks, stage by stage in the order of applying.
    pub stages: [Vec<Item>; STAGES],
}

impl App {
    fn new(name: &str, set: Arc<Prepared>) -> Self {
        let name: Arc<str> = name.into();
        let item = |place: &usize| {
            let (id, token) = (set.ids.get(*place)?.clone(), set.tokens.get(*place)?.clone());
            Some(Item { app: name.clone(), id, set: set.clone(), place: *place, token })
        };
        let stages = set.stages.each_ref().map(|places| places.iter().filter_map(item).collect());
        Self { name, set, stages }
    }

    /// Everything but hooks.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.stages.iter().flatten()
    }

    /// The set.
    pub fn digest(&self) -> &SetDigest {
        &self.set.set.digest
    }

    /// Hooks of an event, in the order of running. The token says which run an object on the cluster belongs to.
    pub fn hooks(&self, event: &str) -> Vec<Item> {
        let mut found: Vec<(i32, Item)> = Vec::new();
        for (place, manifest) in self.set.set.manifests.iter().enumerate() {
            let Some(hook) = manifest.hook.as_ref().filter(|hook| hook.events.iter().any(|e| e == event))
            else {
                continue;
            };
            let Some(id) = self.set.ids.get(place).cloned() else { continue };
            let token = format!("{}.{}.{event}", manifest.digest, self.digest()).into();
            let (app, set) = (self.name.clone(), self.set.clone());
            found.push((hook.weight, Item { app, id, set, place, token }));
        }
        // Stable: the set has Helm's order of kinds and names already.
        found.sort_by_key(|(weight, _)| *weight);
        found.into_iter().map(|(_, item)| item).collect()
    }
}

/// What may be there and is not to be.
#[derive(Default)]
pub(super) struct Doomed {
    /// Identity to whether it stays on the cluster, let go of.
    pub objects: BTreeMap<Identity, bool>,
    /// Something of it cannot be read: nothing is removed.
    pub lost: bool,
}

impl Job {
    /// Reads the sets of a combination.
    pub(super) async fn apps(&self, named: &Named) -> Result<Vec<App>, Trouble> {
        let source = self.source(named);
        let mut apps = Vec::new();
        for (name, digest) in &named.apps {
            apps.push(App::new(name, self.ctx.content.set(&source, digest).await?));
        }
        Ok(apps)
    }

    /// Everything the row says may be there, without what shall be.
    pub(super) async fn doomed(&self, work: &Work, keep: &[App]) -> Result<Doomed, Trouble> {
        let wanted = |id: &Identity| keep.iter().any(|app| app.set.names(id));
        let same: BTreeSet<&SetDigest> = keep.iter().map(App::digest).collect();
        let applied = self.memory.applied_named.iter();
        let held = work.held.iter().filter(|(since, _)| self.counts(*since)).map(|(_, named)| named);
        // What cannot be read is found by its label.
        let searches = self.searches(work);
        let mut doomed = Doomed::default();
        for named in applied.chain(held) {
            let source = self.source(named);
            for digest in named.apps.values().filter(|digest| !same.contains(digest)) {
                let set = match self.ctx.content.set(&source, digest).await {
                    Err(trouble) if trouble.reason == "ContentLost" && searches => continue,
                    other => other?,
                };
                for (manifest, id) in set.set.manifests.iter().zip(&set.ids) {
                    if keep.iter().any(|app| app.set.has(id)) {
                        continue;
                    }
                    let stays = manifest.keep || manifest.crd_folder;
                    let entry = doomed.objects.entry(Identity::clone(id)).or_default();
                    *entry = *entry || stays;
                }
            }
        }
        for (_, reference) in work.held_identities.iter().filter(|(since, _)| self.counts(*since)) {
            let identities = match self.ctx.content.identities(reference).await {
                Err(trouble) if trouble.reason == "ContentLost" && searches => continue,
                other => other?,
            };
            for id in identities.iter().filter(|id| !wanted(id)) {
                doomed.objects.entry(id.clone()).or_default();
            }
        }
        Ok(doomed)
    }

    /// What carries our label and our entry in `managedFields` and is in no inventory: left by a revision that this hub does
    /// not know any more. Of the kinds that are watched, once they are listed. (The entry tells ours from what the cluster's
    /// own controllers copied our label to.)
    pub(super) fn strays(&self, keep: &[App], doomed: &Doomed) -> Doomed {
        let known =
            |id: &Identity| keep.iter().any(|app| app.set.names(id)) || doomed.objects.contains_key(id);
        let strays = self.ctx.edge.observed.owned(&self.ctx.hash, known).into_iter();
        let ours = strays.filter(|(_, seen)| seen.fields.is_some());
        Doomed { objects: ours.map(|(id, _)| (id, false)).collect(), ..Doomed::default() }
    }

    /// Sees to it that all kinds are watched; what is unknown to the cluster is left out.
    pub(super) fn watch_kinds<'a>(&'a self, session: &Session, ids: impl Iterator<Item = &'a Identity>) {
        let mut kinds: BTreeMap<(String, String), ApiResource> = BTreeMap::new();
        // What a scan found is watched until it is gone: that tells its end.
        let scanned = self.memory.scanned.iter().filter(|(epoch, _)| *epoch == session.epoch);
        for id in ids.chain(scanned.flat_map(|(_, found)| found)) {
            if let Some(resource) = session.resource(id).filter(|resource| resource.listable) {
                kinds.entry((id.group.clone(), id.kind.clone())).or_insert_with(|| resource.clone());
            }
        }
        let resources: Vec<ApiResource> = kinds.into_values().collect();
        // Nothing to be watched is the word for an owner that is let go of.
        if resources.is_empty() {
            return;
        }
        self.ctx.edge.observed.want(&self.ctx.hash, &resources);
    }
}
