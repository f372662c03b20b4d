//! Finds the objects of a combination, each with the resource it is applied to; and what may be there besides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::{Id, Identity, SetDigest};
use emco_engine::set::SetManifest;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::observe::Wanted;
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

    /// Its kind belongs to the whole cluster, which was not known when it was planned.
    pub fn spans(&self) -> bool {
        self.set.spanning > 0
            && self.id.namespace.is_empty()
            && self.manifest().is_some_and(|manifest| manifest.json.pointer("/metadata/namespace").is_some())
    }

    /// Of a chart's `crds/` folder: made if absent, and left as it is.
    fn is_of_crds(&self) -> bool {
        self.manifest().is_some_and(|manifest| manifest.crd_folder)
    }

    /// All else waits until it is ready.
    pub fn is_foundation(&self) -> bool {
        self.set.stages.first().is_some_and(|places| places.binary_search(&self.place).is_ok())
    }

    /// The account that it is written as.
    pub fn account(&self) -> Option<&str> {
        self.manifest()?.account.as_deref()
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

/// Apps of a target that do not make one object twice. Two of different namespaces are one where their kind belongs to the
/// whole cluster, which their plan did not know.
pub(super) fn distinct(apps: Vec<App>) -> Result<Vec<App>, Trouble> {
    if apps.iter().all(|app| app.set.spanning == 0) {
        return Ok(apps);
    }
    let mut made: BTreeMap<&Identity, &App> = BTreeMap::new();
    for app in &apps {
        for item in app.items().filter(|item| item.id.namespace.is_empty() && !item.is_of_crds()) {
            if let Some(other) = made.insert(&item.id, app) {
                let text = format!(
                    "apps {} and {} both make {}, whose kind belongs to the whole cluster: rename one of them",
                    other.name, app.name, item.id
                );
                return Err(Trouble::new("DuplicateResource", &text, Retry::Slowly));
            }
        }
    }
    Ok(apps)
}

/// What may be there and is not to be.
#[derive(Clone, Default)]
pub(super) struct PruneSet {
    /// Identity to whether it stays on the cluster, released.
    pub objects: BTreeMap<Identity, bool>,
    /// What else is to go, and stays for now.
    pub later: BTreeMap<Identity, bool>,
    /// The app that an object is of, where apps leave one after the other; none of what is of several.
    pub apps: BTreeMap<Identity, Arc<str>>,
    /// The apps of what is of several.
    pub shared: BTreeMap<Identity, BTreeSet<Arc<str>>>,
    /// What is of some app, and nobody knows of which any more.
    pub nameless: BTreeSet<Identity>,
    /// Something of it cannot be read: nothing is removed.
    pub lost: bool,
    /// An object that makes Pods is gone only when they are: what leaves afterwards is for them.
    pub with_pods: bool,
}

impl PruneSet {
    /// Notes which app an object is of.
    fn belongs(&mut self, work: &Work, id: &Identity, app: &Arc<str>) {
        if work.order.is_empty() {
            return;
        }
        let of = self.apps.entry(id.clone()).or_insert_with(|| Arc::clone(app));
        if of != app {
            let all = [std::mem::replace(of, "".into()), Arc::clone(app)];
            let shared = self.shared.entry(id.clone()).or_default();
            shared.extend(all.into_iter().filter(|app| !app.is_empty()));
        }
    }

    /// The apps that an object is of, as far as that is noted.
    pub fn apps_of(&self, id: &Identity) -> impl Iterator<Item = &str> {
        let shared = self.shared.get(id).into_iter().flatten();
        self.apps.get(id).into_iter().chain(shared).map(|app| &**app)
    }
}

impl Job {
    /// Reads the sets of a combination, as the cluster has them.
    pub(super) async fn apps(&mut self, named: &Named, session: &Session) -> Result<Vec<App>, Trouble> {
        let source = self.source(named);
        let mut apps = Vec::new();
        for (name, digest) in &*named.apps {
            let set = self.ctx.content.set(&source, digest).await?;
            if let Some(account) = set.account() {
                self.memory.account = Some(account.into());
            }
            apps.push(App::new(name, self.fitted(set, session)));
        }
        Ok(apps)
    }

    /// A kind that was unknown when its set was planned has a namespace there, which counts only if the kind lives in one.
    fn fitted(&mut self, set: Arc<Prepared>, session: &Session) -> Arc<Prepared> {
        let digest = &set.set.digest;
        if let Some((apis, fitted)) = self.memory.fitted.get(digest)
            && Arc::ptr_eq(apis, &session.apis)
        {
            return Arc::clone(fitted);
        }
        if !set.spaced.iter().any(|id| session.spans(id)) {
            return set;
        }
        let fitted = Arc::new(Prepared::with(Arc::clone(&set.set), |id| session.spans(id)));
        self.memory.fitted.insert(digest.clone(), (Arc::clone(&session.apis), Arc::clone(&fitted)));
        fitted
    }

    /// Everything the row says may be there, without what is wanted.
    pub(super) async fn pruned(
        &self,
        work: &Work,
        keep: &[App],
        session: &Session,
    ) -> Result<PruneSet, Trouble> {
        let wanted = |id: &Identity| keep.iter().any(|app| app.set.names(id));
        let same: BTreeSet<&SetDigest> = keep.iter().map(App::digest).collect();
        let applied = self.memory.applied_named.iter();
        let held = work.held.iter().filter(|(since, _)| self.counts(*since)).map(|(_, named)| named);
        // What cannot be read is found by its label.
        let searches = self.searches(work);
        let mut pruned = PruneSet::default();
        for named in applied.chain(held) {
            let source = self.source(named);
            for (app, digest) in named.apps.iter().filter(|(_, digest)| !same.contains(digest)) {
                let app: Arc<str> = app.as_str().into();
                let set = match self.ctx.content.set(&source, digest).await {
                    Err(trouble) if trouble.reason == "ContentLost" && searches => continue,
                    other => other?,
                };
                for (manifest, id) in set.set.manifests.iter().zip(&set.ids) {
                    if keep.iter().any(|app| app.set.has(id)) {
                        continue;
                    }
                    let id = session.settled(id);
                    if wanted(&id) {
                        continue;
                    }
                    let stays = manifest.keep || manifest.crd_folder;
                    pruned.belongs(work, &id, &app);
                    let entry = pruned.objects.entry(id).or_default();
                    *entry = *entry || stays;
                }
            }
        }
        for (_, reference) in work.held_identities.iter().filter(|(since, _)| self.counts(*since)) {
            let identities = match self.ctx.content.identities(reference).await {
                Err(trouble) if trouble.reason == "ContentLost" && searches => continue,
                other => other?,
            };
            for id in identities.iter().map(|id| session.settled(id)).filter(|id| !wanted(id)) {
                if !work.order.is_empty() && !pruned.objects.contains_key(&id) {
                    pruned.nameless.insert(id.clone());
                }
                pruned.objects.entry(id).or_default();
            }
        }
        Ok(pruned)
    }

    /// What carries our label and our entry in `managedFields` and is in no inventory: left by a revision that this hub does
    /// not know any more. Of the kinds that are watched, once they are listed. (The entry tells ours from what the cluster's
    /// own controllers copied our label to.)
    pub(super) fn unowned(&self, keep: &[App], pruned: &PruneSet) -> PruneSet {
        let known =
            |id: &Identity| keep.iter().any(|app| app.set.names(id)) || pruned.objects.contains_key(id);
        let unowned = self.ctx.edge.observed.owned(&self.ctx.owner.hash, known).into_iter();
        let ours = unowned.filter(|(_, seen)| seen.fields.is_some());
        PruneSet { objects: ours.map(|(id, _)| (id, false)).collect(), ..PruneSet::default() }
    }

    /// Sees to it that all kinds are watched, where their objects are; what is unknown to the cluster is left out.
    pub(super) fn watch_kinds<'a>(&'a self, session: &Session, ids: impl Iterator<Item = &'a Identity>) {
        let mut kinds: BTreeMap<(&str, &str), Wanted> = BTreeMap::new();
        // What a scan found is watched until it is gone: that tells its end.
        let scanned = self.memory.scanned.iter().filter(|(epoch, _)| *epoch == session.epoch);
        for id in ids.chain(scanned.flat_map(|(_, found)| found)) {
            let Some(resource) = session.resource(id).filter(|resource| resource.watchable) else { continue };
            let wanted = kinds
                .entry((id.group.as_str(), id.kind.as_str()))
                .or_insert_with(|| Wanted { resource: resource.clone(), namespaces: BTreeSet::new() });
            if !wanted.namespaces.contains(&id.namespace) {
                wanted.namespaces.insert(id.namespace.clone());
            }
        }
        let wanted: Vec<Wanted> = kinds.into_values().collect();
        // Nothing to be watched is the word for an owner whose watches end.
        if wanted.is_empty() {
            return;
        }
        self.ctx.edge.observed.want(&self.ctx.owner.hash, &wanted, self.memory.account.as_ref());
    }
}
