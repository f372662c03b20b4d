//! Watches what is on one cluster of ours: one watch per kind serves all owners, and every owner has a bell that rings when
//! something of its own changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::apis::ApiResource;
use emco_engine::identity::Identity;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::errors::Trouble;
use super::health_rules::HealthRules;

mod pairs;
mod seen;
pub(super) mod watcher;

use pairs::Pairs;
pub use seen::Seen;

/// Deleted Jobs and Pods remembered of one kind. What is forgotten counts as it does after a restart.
const MOST_ENDED: usize = 4096;

/// Group and kind.
pub type KindKey = (String, String);

/// How much is known of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Not listed yet.
    #[default]
    Nothing,
    /// Listed, and watched since.
    All,
    /// Cannot be listed.
    Refused(Trouble),
}

/// What the store says about one name.
#[derive(Clone, Debug)]
pub enum Look {
    /// There, with somebody's owner label.
    There(Arc<Seen>),
    /// Nothing with an owner label is there, as far as the watch has told.
    Absent,
    /// Its kind is not known.
    Unknown,
}

/// What the store says about one of many names.
#[derive(Clone, Debug)]
pub struct Found {
    /// As it was seen last, with somebody's owner label.
    pub seen: Option<Arc<Seen>>,
    /// Its kind was listed, and is watched since: absence means something.
    pub is_listed: bool,
}

impl From<Found> for Look {
    fn from(Found { seen, is_listed }: Found) -> Self {
        match seen {
            _ if !is_listed => Self::Unknown,
            Some(seen) => Self::There(seen),
            None => Self::Absent,
        }
    }
}

#[derive(Default)]
struct KindStore {
    known: Known,
    // Why what is known may be minutes old, or not be known: the kind cannot be watched, or its lists fail.
    unwatched: Option<Trouble>,
    // The watch has told everything up to here.
    version: u64,
    // By namespace and name.
    objects: Pairs<Arc<Seen>>,
    // How Jobs and Pods of ours were last seen that are gone since; until one of the same name is there.
    ended: Pairs<Arc<Seen>>,
}

impl KindStore {
    fn put(&mut self, id: &Identity, seen: Seen) {
        self.ended.remove(&id.namespace, &id.name);
        self.objects.insert(id.namespace.clone(), id.name.clone(), Arc::new(seen));
    }

    fn get(&self, id: &Identity) -> Option<&Arc<Seen>> {
        self.objects.get(&id.namespace, &id.name)
    }
}

#[derive(Default)]
struct Inner {
    kinds: Pairs<KindStore>,
    wants: BTreeMap<String, BTreeSet<KindKey>>,
    resources: BTreeMap<KindKey, ApiResource>,
    bells: BTreeMap<String, watch::Sender<u64>>,
}

impl Inner {
    fn ring(&self, owner: &str) {
        if let Some(bell) = self.bells.get(owner) {
            bell.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn ring_all(&self, kind: &KindKey) {
        for (owner, kinds) in &self.wants {
            if kinds.contains(kind) {
                self.ring(owner);
            }
        }
    }
}

/// Where objects of one kind and namespace are found.
#[derive(Clone, Copy)]
struct Near<'a> {
    id: &'a Identity,
    store: Option<&'a KindStore>,
    names: Option<&'a BTreeMap<String, Arc<Seen>>>,
}

impl<'a> Near<'a> {
    fn of(inner: &'a Inner, id: &'a Identity) -> Self {
        let store = inner.kinds.get(&id.group, &id.kind);
        Self { id, store, names: store.and_then(|store| store.objects.of(&id.namespace)) }
    }
}

/// The store of one cluster.
pub struct Observed {
    inner: Mutex<Inner>,
    wanted: watch::Sender<BTreeMap<KindKey, ApiResource>>,
    rules: Arc<HealthRules>,
}

impl Observed {
    /// An empty store, whose objects are judged by these rules.
    pub fn new(rules: Arc<HealthRules>) -> Self {
        Self { inner: Mutex::new(Inner::default()), wanted: watch::channel(BTreeMap::new()).0, rules }
    }

    /// The rules that objects are judged by.
    pub(super) const fn rules(&self) -> &Arc<HealthRules> {
        &self.rules
    }

    /// An owner's bell.
    pub fn bell(&self, owner: &str) -> watch::Receiver<u64> {
        self.inner.lock().bells.entry(owner.to_owned()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Triggers an owner's job for another look.
    pub fn ring(&self, owner: &str) {
        self.inner.lock().ring(owner);
    }

    /// Says which kinds an owner needs; an owner that needs none is forgotten.
    pub fn want(&self, owner: &str, resources: &[ApiResource]) {
        let mut inner = self.inner.lock();
        let kinds: BTreeSet<KindKey> = resources.iter().map(|r| (r.group.clone(), r.kind.clone())).collect();
        if inner.wants.get(owner).is_some_and(|before| *before == kinds) {
            return;
        }
        for resource in resources {
            inner
                .resources
                .entry((resource.group.clone(), resource.kind.clone()))
                .or_insert_with(|| resource.clone());
        }
        if kinds.is_empty() {
            inner.wants.remove(owner);
            inner.bells.remove(owner);
        } else {
            inner.wants.insert(owner.to_owned(), kinds);
        }
        let needed: BTreeSet<KindKey> = inner.wants.values().flatten().cloned().collect();
        inner.resources.retain(|kind, _| needed.contains(kind));
        inner.kinds.retain(|group, kind, _| needed.contains(&(group.to_owned(), kind.to_owned())));
        for (group, kind) in &needed {
            inner.kinds.or_default(group, kind);
        }
        let wanted = inner.resources.clone();
        drop(inner);
        self.wanted.send_if_modified(|before| {
            let changed = *before != wanted;
            *before = wanted;
            changed
        });
    }

    /// The kinds to be watched.
    pub(super) fn wanted(&self) -> watch::Receiver<BTreeMap<KindKey, ApiResource>> {
        self.wanted.subscribe()
    }

    /// How much is known of a kind.
    pub fn known(&self, kind: &KindKey) -> Known {
        self.inner.lock().kinds.get(&kind.0, &kind.1).map(|store| store.known.clone()).unwrap_or_default()
    }

    /// Why what is known of a kind may be minutes old.
    pub fn stale(&self, kind: &KindKey) -> Option<Trouble> {
        self.inner.lock().kinds.get(&kind.0, &kind.1)?.unwatched.clone()
    }

    /// Notes why what is known of a kind may be minutes old, or that it is not.
    pub(super) fn unwatched(&self, kind: &KindKey, trouble: Option<Trouble>) {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&kind.0, &kind.1) else { return };
        if store.unwatched != trouble {
            store.unwatched = trouble;
            inner.ring_all(kind);
        }
    }

    /// An object, as far as it carries anybody's owner label.
    pub fn get(&self, id: &Identity) -> Option<Arc<Seen>> {
        self.inner.lock().kinds.get(&id.group, &id.kind)?.get(id).cloned()
    }

    /// The same, and whether absence means anything.
    pub fn look(&self, id: &Identity) -> Look {
        match self.inner.lock().kinds.get(&id.group, &id.kind) {
            Some(store) if store.known == Known::All => {
                store.get(id).map_or(Look::Absent, |seen| Look::There(seen.clone()))
            }
            _ => Look::Unknown,
        }
    }

    /// What is known of each of these, in their order. Passes ask it of every object that is wanted; most follow one of their kind and
    /// namespace, which is not looked up again.
    pub fn find<'a>(&self, ids: impl Iterator<Item = &'a Identity>) -> Vec<Found> {
        let inner = self.inner.lock();
        let mut near: Option<Near<'_>> = None;
        let mut find = |id: &'a Identity| {
            let there = match near {
                Some(near) if near.id.kind() == id.kind() && near.id.namespace == id.namespace => near,
                _ => Near::of(&inner, id),
            };
            near = Some(there);
            let seen = there.names.and_then(|names| names.get(&id.name)).cloned();
            Found { seen, is_listed: there.store.is_some_and(|store| store.known == Known::All) }
        };
        ids.map(&mut find).collect()
    }

    /// The object of a kind that was written last, as far as is known: a store without it is older than what is known of it.
    /// Jobs and Pods go by themselves, and what is being deleted has gone most of its way.
    pub(super) fn newest(&self, kind: &KindKey) -> Option<(Identity, Arc<Seen>)> {
        let inner = self.inner.lock();
        let objects = &inner.kinds.get(&kind.0, &kind.1)?.objects;
        let lasting = objects.iter().filter(|(_, _, seen)| !seen.runs && !seen.deleting);
        let (namespace, name, seen) = lasting.max_by_key(|(_, _, seen)| seen.version)?;
        let (group, kind) = kind.clone();
        let id = Identity { group, kind, namespace: namespace.to_owned(), name: name.to_owned() };
        Some((id, Arc::clone(seen)))
    }

    /// The last state of a Job or Pod whose deletion the watch told, ended or not: one with `ttlSecondsAfterFinished: 0` goes
    /// the moment it ends.
    pub fn ended(&self, id: &Identity) -> Option<Arc<Seen>> {
        self.inner.lock().kinds.get(&id.group, &id.kind)?.ended.get(&id.namespace, &id.name).cloned()
    }

    /// Everything of an owner but what is `known`, of the kinds that are watched.
    pub fn owned(&self, owner: &str, known: impl Fn(&Identity) -> bool) -> Vec<(Identity, Arc<Seen>)> {
        let inner = self.inner.lock();
        let mut all = Vec::new();
        for (group, kind, store) in inner.kinds.iter() {
            let (group, kind) = (group.to_owned(), kind.to_owned());
            let mut id = Identity { group, kind, namespace: String::new(), name: String::new() };
            for (namespace, name, seen) in store.objects.iter() {
                if seen.owner.as_deref() != Some(owner) {
                    continue;
                }
                namespace.clone_into(&mut id.namespace);
                name.clone_into(&mut id.name);
                if !known(&id) {
                    all.push((id.clone(), seen.clone()));
                }
            }
        }
        all
    }

    /// Takes in an answer to a request of ours, if it is newer than what the watch told.
    pub fn learn(&self, id: &Identity, object: &Value) {
        let Some(seen) = self.rules.judged(id, object) else { return };
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&id.group, &id.kind) else { return };
        match store.get(id) {
            Some(before) if before.version >= seen.version => {}
            // The watch is further: the object was there and is gone again.
            None if seen.version <= store.version => {}
            _ if seen.owner.is_some() => store.put(id, seen),
            _ => store.objects.remove(&id.namespace, &id.name),
        }
    }

    /// Drops an object that the server says is gone, if it is still this one.
    pub fn forget(&self, id: &Identity, uid: &str) {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&id.group, &id.kind) else { return };
        if store.get(id).is_some_and(|seen| seen.uid == uid) {
            store.objects.remove(&id.namespace, &id.name);
        }
    }

    /// A complete list of a kind. Whether it shows what the watch had not delivered: a newer object, or the end of one.
    pub(super) fn listed(&self, kind: &KindKey, version: u64, objects: Vec<(Identity, Seen)>) -> bool {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&kind.0, &kind.1) else { return false };
        let told = store.version;
        let newer = |(id, seen): &(Identity, Seen)| {
            seen.version > told && store.get(id).is_none_or(|known| known.version < seen.version)
        };
        let mut missed = objects.iter().any(newer);
        let older = store.objects.iter().filter(|(_, _, seen)| seen.version <= version).count();
        // Each name of the list that the store has takes one off; what remains is gone.
        let there =
            objects.iter().filter(|(id, _)| store.get(id).is_some_and(|known| known.version <= version));
        missed |= older > there.count();
        let missed = missed && store.known == Known::All;
        // Answers that are newer than the list stay.
        store.objects.retain(|_, _, seen| seen.version > version);
        for (id, seen) in objects {
            if store.get(&id).is_none() {
                store.objects.insert(id.namespace, id.name, Arc::new(seen));
            }
        }
        store.version = version;
        store.known = Known::All;
        inner.ring_all(kind);
        missed
    }

    /// What was known of a kind is worth nothing any more: another store answers.
    pub(super) fn unlisted(&self, kind: &KindKey, trouble: Option<Trouble>) {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&kind.0, &kind.1) else { return };
        let known = trouble.map_or(Known::Nothing, Known::Refused);
        if store.known != known {
            store.known = known;
            inner.ring_all(kind);
        }
        let Some(store) = inner.kinds.get_mut(&kind.0, &kind.1) else { return };
        store.objects.clear();
        store.version = 0;
    }

    /// One event of a watch.
    pub(super) fn event(&self, id: &Identity, seen: Seen, there: bool) {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&id.group, &id.kind) else { return };
        store.version = store.version.max(seen.version);
        let before = store.get(id).cloned();
        if before.as_ref().is_some_and(|before| before.version > seen.version) {
            return;
        }
        let owners: BTreeSet<String> = [before.as_ref().and_then(|b| b.owner.clone()), seen.owner.clone()]
            .into_iter()
            .flatten()
            .collect();
        let news = match (&before, there) {
            (Some(before), true) => !before.same(&seen),
            (None, false) => false,
            _ => true,
        };
        if there {
            store.put(id, seen);
        } else {
            store.objects.remove(&id.namespace, &id.name);
            if seen.runs {
                store.ended.insert(id.namespace.clone(), id.name.clone(), Arc::new(seen));
                if store.ended.len() > MOST_ENDED {
                    store.ended.pop_first();
                }
            }
        }
        if news {
            for owner in owners {
                inner.ring(&owner);
            }
        }
    }

    /// The watch has told everything up to here.
    pub(super) fn bookmark(&self, kind: &KindKey, version: u64) {
        if let Some(store) = self.inner.lock().kinds.get_mut(&kind.0, &kind.1) {
            store.version = store.version.max(version);
        }
    }
}

#[cfg(test)]
mod tests;
