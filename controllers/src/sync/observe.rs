//! Watches what is on one cluster of ours: one watch per kind serves all owners, and every owner has a bell that rings when
//! something of its own changed. A kind that may not be listed on the whole cluster is watched in each namespace where somebody needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::{Id, Identity};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::errors::Trouble;
use super::health_rules::HealthRules;

mod inner;
mod leaving;
mod pairs;
mod seen;
mod store;
mod taken;
mod wants;
pub(super) mod watcher;

use inner::Inner;
pub use seen::Seen;
use store::{KindStore, Place};
pub use wants::Wanted;
use wants::{WatchKey, Watched};

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

/// Where objects of one kind and namespace are found.
#[derive(Clone, Copy)]
struct Near<'a> {
    id: &'a Identity,
    is_listed: bool,
    names: Option<&'a BTreeMap<String, Arc<Seen>>>,
}

impl<'a> Near<'a> {
    fn of(inner: &'a Inner, id: &'a Identity) -> Self {
        let store = inner.kinds.get(&id.group, &id.kind);
        let is_listed = store.is_some_and(|store| store.is_listed(&id.namespace));
        Self { id, is_listed, names: store.and_then(|store| store.objects.of(&id.namespace)) }
    }
}

/// The store of one cluster.
pub struct Observed {
    inner: Mutex<Inner>,
    wanted: watch::Sender<BTreeMap<WatchKey, Watched>>,
    // The kind of which an answer last showed that it is served, where it was not.
    proven: watch::Sender<KindKey>,
    rules: Arc<HealthRules>,
}

impl Observed {
    /// An empty store, whose objects are judged by these rules.
    pub fn new(rules: Arc<HealthRules>) -> Self {
        let (wanted, proven) = (watch::channel(BTreeMap::new()).0, watch::channel(KindKey::default()).0);
        Self { inner: Mutex::new(Inner::default()), wanted, proven, rules }
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

    /// Says which objects of others an owner takes as they are.
    pub fn takes<'a>(&self, owner: &str, ids: impl Iterator<Item = &'a Id>) {
        self.inner.lock().taken.set(owner, ids);
    }

    /// Somebody misses objects that owners may take as they are: these look again.
    pub fn doubt(&self, misses: impl Fn(&Identity) -> bool) {
        let mut inner = self.inner.lock();
        for owner in inner.taken.doubt(misses) {
            inner.ring(&owner);
        }
    }

    /// What an owner takes and somebody misses, once.
    pub fn doubted(&self, owner: &str) -> Vec<Id> {
        self.inner.lock().taken.doubted(owner)
    }

    /// Says which kinds an owner needs, where, and as which account it writes; an owner that needs none is forgotten.
    pub fn want(&self, owner: &str, wanted: &[Wanted], account: Option<&Arc<str>>) {
        let mut inner = self.inner.lock();
        if !inner.wants.set(owner, wanted, account) {
            return;
        }
        if wanted.is_empty() {
            inner.bells.remove(owner);
            inner.taken.set(owner, std::iter::empty());
        }
        let needed: BTreeSet<KindKey> = inner.wants.resources().map(|(kind, _)| kind.clone()).collect();
        inner.kinds.retain(|group, kind, _| needed.contains(&(group.to_owned(), kind.to_owned())));
        for kind in &needed {
            if inner.kinds.or_default(&kind.0, &kind.1).is_split() {
                inner.split(kind);
            }
        }
        self.publish(&inner);
    }

    /// Tells which watches there have to be.
    fn publish(&self, inner: &Inner) {
        let wanted = inner.watches();
        self.wanted.send_if_modified(|before| {
            let changed = *before != wanted;
            *before = wanted;
            changed
        });
    }

    /// The watches that there have to be.
    pub(super) fn wanted(&self) -> watch::Receiver<BTreeMap<WatchKey, Watched>> {
        self.wanted.subscribe()
    }

    /// Kinds that an answer shows to be served, where lists were refused because they were not.
    pub(super) fn proven(&self) -> watch::Receiver<KindKey> {
        self.proven.subscribe()
    }

    /// How much is known of a kind in a namespace ("": of objects that are in none).
    pub fn known(&self, kind: &KindKey, namespace: &str) -> Known {
        let inner = self.inner.lock();
        let part = inner.store(kind).and_then(|store| store.part(namespace));
        part.map(|part| part.known.clone()).unwrap_or_default()
    }

    /// Why what is known of a kind in a namespace may be minutes old.
    pub fn stale(&self, kind: &KindKey, namespace: &str) -> Option<Trouble> {
        self.inner.lock().store(kind)?.part(namespace)?.unwatched.clone()
    }

    /// Whether a kind that may not be listed on the whole cluster is known where it is needed.
    pub(super) fn is_known_in_parts(&self, kind: &KindKey) -> bool {
        self.inner.lock().store(kind).is_some_and(KindStore::is_known_in_parts)
    }

    /// Notes why what is known of a kind may be minutes old, or that it is not.
    pub(super) fn unwatched(&self, kind: &KindKey, place: &Place, trouble: Option<Trouble>) {
        let mut inner = self.inner.lock();
        let Some(part) = inner.store_mut(kind).and_then(|store| store.at(place)) else { return };
        if part.unwatched != trouble {
            part.unwatched = trouble;
            inner.ring_all(kind, place);
        }
    }

    /// An object, as far as it carries anybody's owner label.
    pub fn get(&self, id: &Identity) -> Option<Arc<Seen>> {
        self.inner.lock().kinds.get(&id.group, &id.kind)?.get(id).cloned()
    }

    /// The same, and whether absence means anything.
    pub fn look(&self, id: &Identity) -> Look {
        match self.inner.lock().kinds.get(&id.group, &id.kind) {
            Some(store) if store.is_listed(&id.namespace) => {
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
            Found { seen, is_listed: there.is_listed }
        };
        ids.map(&mut find).collect()
    }

    /// The object of a kind that was written last, as far as is known: a store without it is older than what is known of it.
    /// Jobs and Pods go by themselves, and what is being deleted has gone most of its way.
    pub(super) fn newest(&self, kind: &KindKey, place: &Place) -> Option<(Identity, Arc<Seen>)> {
        let inner = self.inner.lock();
        let objects = inner.store(kind)?.objects.iter().filter(|(namespace, ..)| place.covers(namespace));
        let lasting = objects.filter(|(_, _, seen)| !seen.runs && !seen.deleting);
        let (namespace, name, seen) = lasting.max_by_key(|(_, _, seen)| seen.version)?;
        let (group, kind) = kind.clone();
        let id = Identity { group, kind, namespace: namespace.to_owned(), name: name.to_owned() };
        Some((id, Arc::clone(seen)))
    }

    /// The last state of a Job or Pod whose deletion the watch told, ended or not: one with `ttlSecondsAfterFinished: 0` goes
    /// the moment it ends.
    pub fn ended(&self, id: &Identity) -> Option<Arc<Seen>> {
        self.inner.lock().kinds.get(&id.group, &id.kind)?.ended(id).cloned()
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
        if let Some(part) = store.part_mut(&id.namespace)
            && matches!(&part.known, Known::Refused(trouble) if trouble.reason == "KindMissing")
        {
            part.known = Known::Nothing;
            self.proven.send_replace((id.group.clone(), id.kind.clone()));
        }
        let told = store.part(&id.namespace).map_or(0, |part| part.version);
        match store.get(id) {
            Some(before) if before.version >= seen.version => {}
            // The watch is further: the object was there and is gone again.
            None if seen.version <= told => {}
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

    /// A complete list of a kind in a place. Whether it shows what the watch had not delivered: a newer object, or the end of one.
    pub(super) fn listed(
        &self,
        kind: &KindKey,
        place: &Place,
        version: u64,
        objects: Vec<(Identity, Seen)>,
    ) -> bool {
        let mut inner = self.inner.lock();
        let Some(store) = inner.store_mut(kind) else { return false };
        let was_split = store.is_split();
        let Some(missed) = store.listed(place, version, objects) else { return false };
        let united = was_split && !store.is_split();
        inner.ring_all(kind, place);
        if united {
            self.publish(&inner);
        }
        missed
    }

    /// What was known of a kind in a place is worth nothing any more: another store answers, or it cannot be listed. A kind that may not
    /// be listed on the whole cluster is looked at where it is needed.
    pub(super) fn unlisted(&self, kind: &KindKey, place: &Place, trouble: Option<Trouble>) {
        let mut inner = self.inner.lock();
        let splits = *place == Place::Everywhere
            && trouble.as_ref().is_some_and(|trouble| trouble.reason == "Forbidden")
            && inner.wants.is_namespaced(kind);
        let Some(store) = inner.store_mut(kind) else { return };
        // What is seen in namespaces holds, whatever becomes of the whole.
        if *place == Place::Everywhere && store.is_split() {
            return;
        }
        let changed = store.unlisted(place, trouble.map_or(Known::Nothing, Known::Refused));
        if splits {
            inner.split(kind);
            self.publish(&inner);
        }
        if changed {
            inner.ring_all(kind, place);
        }
    }

    /// One event of a watch.
    pub(super) fn event(&self, id: &Identity, seen: Seen, there: bool) {
        let mut inner = self.inner.lock();
        let Some(store) = inner.kinds.get_mut(&id.group, &id.kind) else { return };
        if let Some(part) = store.part_mut(&id.namespace) {
            part.version = part.version.max(seen.version);
        }
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
            store.end(id, seen);
        }
        if news {
            for owner in owners {
                inner.ring(&owner);
            }
        }
    }

    /// The watch of a place has told everything up to here.
    pub(super) fn bookmark(&self, kind: &KindKey, place: &Place, version: u64) {
        if let Some(part) = self.inner.lock().store_mut(kind).and_then(|store| store.at(place)) {
            part.version = part.version.max(version);
        }
    }
}

#[cfg(test)]
mod tests;
