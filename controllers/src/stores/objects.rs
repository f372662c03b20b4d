//! Objects of one kind as the watch saw them last, found by namespace, by name or by what they say, without a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};
use std::ops::Deref;
use std::sync::Arc;

use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;
use parking_lot::RwLock;

/// A way to find an object beside its place: the name of an index, and the entry in it.
pub type IndexKey = (&'static str, String);

/// Namespace ("": of the whole cluster) and name.
type Place = (String, String);

/// Places of objects, each by the other; and by their keys in indexes.
#[derive(Default)]
struct Places {
    by_namespace: BTreeMap<String, BTreeSet<String>>,
    by_name: BTreeMap<String, BTreeSet<String>>,
    by_key: BTreeMap<IndexKey, BTreeSet<Place>>,
    keys: BTreeMap<Place, BTreeSet<IndexKey>>,
}

fn take<K: Ord, V: Ord>(all: &mut BTreeMap<K, BTreeSet<V>>, key: &K, one: &V) {
    if let Some(some) = all.get_mut(key) {
        some.remove(one);
        if some.is_empty() {
            all.remove(key);
        }
    }
}

impl Places {
    /// An object is there, or is about to be, with these keys and those that it had.
    fn add(&mut self, place: &Place, keys: &BTreeSet<IndexKey>) {
        let (namespace, name) = place;
        self.by_namespace.entry(namespace.clone()).or_default().insert(name.clone());
        self.by_name.entry(name.clone()).or_default().insert(namespace.clone());
        if keys.is_empty() {
            return;
        }
        let known = self.keys.entry(place.clone()).or_default();
        for key in keys {
            if known.insert(key.clone()) {
                self.by_key.entry(key.clone()).or_default().insert(place.clone());
            }
        }
    }

    /// It has these keys and no others.
    fn keep(&mut self, place: &Place, keys: &BTreeSet<IndexKey>) {
        let Some(known) = self.keys.get_mut(place) else { return };
        for key in known.difference(keys) {
            take(&mut self.by_key, key, place);
        }
        if keys.is_empty() {
            self.keys.remove(place);
        } else {
            known.retain(|key| keys.contains(key));
        }
    }

    fn remove(&mut self, place: &Place) {
        let (namespace, name) = place;
        take(&mut self.by_namespace, namespace, name);
        take(&mut self.by_name, name, namespace);
        self.keep(place, &BTreeSet::new());
    }
}

/// The reader. At any moment it knows the places of all objects that the store has, and maybe more: reads begin with places, so
/// that they leave nothing out.
pub struct Objects<K: Lookup<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    places: Arc<RwLock<Places>>,
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), places: Arc::clone(&self.places) }
    }
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Deref for Objects<K> {
    type Target = Store<K>;

    fn deref(&self) -> &Store<K> {
        &self.store
    }
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Objects<K> {
    /// As kube's controllers read it.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// One object; `namespace` is "" where the kind has none.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        #[cfg(test)]
        visits::count(&K::kind(&()), self.places.is_locked());
        let reference = ObjectRef::<K>::new(name);
        self.store.get(&if namespace.is_empty() { reference } else { reference.within(namespace) })
    }

    /// All, in the order of namespaces and names. Nothing is sorted for it.
    pub fn sorted(&self) -> Vec<Arc<K>> {
        self.found(|places| {
            let all = places.by_namespace.iter();
            let all =
                all.flat_map(|(within, names)| names.iter().map(move |name| (within.clone(), name.clone())));
            all.collect()
        })
    }

    /// Objects at places. The places are free while the objects are looked up, so that the watch goes on: one that goes meanwhile is left out,
    /// and one that stays is not.
    fn found(&self, which: impl FnOnce(&Places) -> Vec<Place>) -> Vec<Arc<K>> {
        let places = which(&self.places.read());
        places.iter().filter_map(|(namespace, name)| self.named(namespace, name)).collect()
    }

    /// Those of a namespace, sorted by name.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        self.found(|places| {
            let names = places.by_namespace.get(namespace).into_iter().flatten();
            names.map(|name| (namespace.to_owned(), name.clone())).collect()
        })
    }

    /// Those with a key in an index, sorted by namespace and name. One that changes at this moment may be among them with its former key.
    pub fn indexed(&self, index: &'static str, key: &str) -> Vec<Arc<K>> {
        let key = (index, key.to_owned());
        self.found(|places| places.by_key.get(&key).into_iter().flatten().cloned().collect())
    }

    /// The number of those that have a key in an index.
    pub fn count(&self, index: &'static str, key: &str) -> usize {
        self.places.read().by_key.get(&(index, key.to_owned())).map_or(0, BTreeSet::len)
    }

    /// The number of those that a namespace has, and the names of the first of them.
    pub fn names_within(&self, namespace: &str, most: usize) -> (usize, Vec<String>) {
        let places = self.places.read();
        let Some(names) = places.by_namespace.get(namespace) else { return (0, Vec::new()) };
        (names.len(), names.iter().take(most).cloned().collect())
    }

    /// The last key of an index whose keys are numbers with leading zeros; none, where it is empty.
    pub fn last_key(&self, index: &'static str) -> Option<String> {
        let (first, end) = ((index, String::new()), (index, "~".to_owned()));
        let places = self.places.read();
        let last = places.by_key.range((Included(first), Excluded(end))).next_back();
        last.map(|((_, key), _)| key.clone())
    }

    /// Those of one name, sorted by namespace.
    pub fn called(&self, name: &str) -> Vec<Arc<K>> {
        self.found(|places| {
            let namespaces = places.by_name.get(name).into_iter().flatten();
            namespaces.map(|namespace| (namespace.clone(), name.to_owned())).collect()
        })
    }
}

/// The writer of a store, for who feeds it.
pub struct Feed<K: Lookup<DynamicType = ()> + Clone + 'static> {
    writer: Writer<K>,
    places: Arc<RwLock<Places>>,
    /// Keys of an object in indexes.
    keys: fn(&K) -> BTreeSet<IndexKey>,
    /// What the list that is being read has so far.
    listed: Places,
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Default for Feed<K> {
    fn default() -> Self {
        Self {
            writer: Writer::default(),
            places: Arc::default(),
            keys: |_| BTreeSet::new(),
            listed: Places::default(),
        }
    }
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Feed<K> {
    /// A reader.
    pub fn as_reader(&self) -> Objects<K> {
        Objects { store: self.writer.as_reader(), places: Arc::clone(&self.places) }
    }

    /// Objects are found by these keys, too. Called before there are any.
    pub fn index_by(&mut self, keys: fn(&K) -> BTreeSet<IndexKey>) {
        self.keys = keys;
    }

    /// Takes in what the watch says.
    pub fn apply_watcher_event(&mut self, event: &Event<K>) {
        match event {
            Event::Apply(object) => return self.apply(event, object),
            Event::Init => self.listed = Places::default(),
            Event::InitApply(object) => self.listed.add(&place(object), &(self.keys)(object)),
            Event::InitDone => self.add_listed(),
            Event::Delete(_) => {}
        }
        self.writer.apply_watcher_event(event);
        match event {
            Event::Delete(object) => self.places.write().remove(&place(object)),
            Event::InitDone => *self.places.write() = std::mem::take(&mut self.listed),
            Event::Apply(_) | Event::Init | Event::InitApply(_) => {}
        }
    }

    fn apply(&mut self, event: &Event<K>, object: &K) {
        let (place, keys) = (place(object), (self.keys)(object));
        self.places.write().add(&place, &keys);
        self.writer.apply_watcher_event(event);
        self.places.write().keep(&place, &keys);
    }

    fn add_listed(&self) {
        let none = BTreeSet::new();
        let mut places = self.places.write();
        for (namespace, names) in &self.listed.by_namespace {
            for name in names {
                let place = (namespace.clone(), name.clone());
                places.add(&place, self.listed.keys.get(&place).unwrap_or(&none));
            }
        }
    }
}

/// An empty store and its writer.
pub fn objects<K: Lookup<DynamicType = ()> + Clone + 'static>() -> (Objects<K>, Feed<K>) {
    let feed = Feed::default();
    (feed.as_reader(), feed)
}

fn place<K: Lookup<DynamicType = ()>>(object: &K) -> Place {
    let text = |part: Option<std::borrow::Cow<'_, str>>| part.map(String::from).unwrap_or_default();
    (text(object.namespace()), text(object.name()))
}

/// Counts the objects that readers of this thread were given, for tests of what a change costs.
#[cfg(test)]
pub mod visits {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    thread_local! {
        static VISITS: RefCell<BTreeMap<String, usize>> = const { RefCell::new(BTreeMap::new()) };
        static LOCKED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(kind: &str, is_locked: bool) {
        VISITS.with_borrow_mut(|visits| *visits.entry(kind.to_owned()).or_default() += 1);
        LOCKED.set(LOCKED.get() + usize::from(is_locked));
    }

    /// Those that were given while a watch had to wait.
    pub(super) fn while_locked() -> usize {
        LOCKED.get()
    }

    /// Those since the last look, by kind.
    pub fn take() -> BTreeMap<String, usize> {
        VISITS.take()
    }
}

#[cfg(test)]
mod tests;
