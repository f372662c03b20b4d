//! Objects of one kind as the watch saw them last, found by namespace or by name without a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;
use parking_lot::RwLock;

/// Where objects are: namespace ("": of the whole cluster) and name, each by the other.
#[derive(Default)]
struct Places {
    by_namespace: BTreeMap<String, BTreeSet<String>>,
    by_name: BTreeMap<String, BTreeSet<String>>,
}

impl Places {
    fn add(&mut self, (namespace, name): &(String, String)) {
        self.by_namespace.entry(namespace.clone()).or_default().insert(name.clone());
        self.by_name.entry(name.clone()).or_default().insert(namespace.clone());
    }

    fn remove(&mut self, (namespace, name): &(String, String)) {
        let take = |all: &mut BTreeMap<String, BTreeSet<String>>, key: &str, one: &str| {
            if let Some(some) = all.get_mut(key) {
                some.remove(one);
                if some.is_empty() {
                    all.remove(key);
                }
            }
        };
        take(&mut self.by_namespace, namespace, name);
        take(&mut self.by_name, name, namespace);
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
        let reference = ObjectRef::<K>::new(name);
        self.store.get(&if namespace.is_empty() { reference } else { reference.within(namespace) })
    }

    /// All, sorted by namespace and name.
    pub fn sorted(&self) -> Vec<Arc<K>> {
        let mut all = self.store.state();
        all.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        all
    }

    /// Those of a namespace, sorted by name.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let places = self.places.read();
        let names = places.by_namespace.get(namespace).into_iter().flatten();
        names.filter_map(|name| self.named(namespace, name)).collect()
    }

    /// Those of one name, sorted by namespace.
    pub fn called(&self, name: &str) -> Vec<Arc<K>> {
        let places = self.places.read();
        let namespaces = places.by_name.get(name).into_iter().flatten();
        namespaces.filter_map(|namespace| self.named(namespace, name)).collect()
    }
}

/// The writer of a store, for who feeds it.
pub struct Feed<K: Lookup<DynamicType = ()> + Clone + 'static> {
    writer: Writer<K>,
    places: Arc<RwLock<Places>>,
    /// What the list that is being read has so far.
    listed: Places,
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Default for Feed<K> {
    fn default() -> Self {
        Self { writer: Writer::default(), places: Arc::default(), listed: Places::default() }
    }
}

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Feed<K> {
    /// A reader.
    pub fn as_reader(&self) -> Objects<K> {
        Objects { store: self.writer.as_reader(), places: Arc::clone(&self.places) }
    }

    /// Takes in what the watch says.
    pub fn apply_watcher_event(&mut self, event: &Event<K>) {
        match event {
            Event::Apply(object) => self.places.write().add(&place(object)),
            Event::Init => self.listed = Places::default(),
            Event::InitApply(object) => self.listed.add(&place(object)),
            Event::InitDone => {
                let mut places = self.places.write();
                for (namespace, names) in &self.listed.by_namespace {
                    for name in names {
                        places.add(&(namespace.clone(), name.clone()));
                    }
                }
            }
            Event::Delete(_) => {}
        }
        self.writer.apply_watcher_event(event);
        match event {
            Event::Delete(object) => self.places.write().remove(&place(object)),
            Event::InitDone => *self.places.write() = std::mem::take(&mut self.listed),
            Event::Apply(_) | Event::Init | Event::InitApply(_) => {}
        }
    }
}

/// An empty store and its writer.
pub fn objects<K: Lookup<DynamicType = ()> + Clone + 'static>() -> (Objects<K>, Feed<K>) {
    let feed = Feed::default();
    (feed.as_reader(), feed)
}

fn place<K: Lookup<DynamicType = ()>>(object: &K) -> (String, String) {
    let text = |part: Option<std::borrow::Cow<'_, str>>| part.map(String::from).unwrap_or_default();
    (text(object.namespace()), text(object.name()))
}

#[cfg(test)]
mod tests {
    use emco_crds::{Cluster, Project};

    use super::*;

    fn cluster(namespace: &str, name: &str) -> Cluster {
        let mut cluster = Cluster::new(name, emco_crds::cluster::ClusterSpec::default());
        cluster.metadata.namespace = Some(namespace.to_owned());
        cluster
    }

    fn shown<K: Lookup<DynamicType = ()>>(all: &[Arc<K>]) -> Vec<String> {
        let one = |object: &Arc<K>| {
            let (namespace, name) = place(object.as_ref());
            format!("{namespace}/{name}")
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn objects_are_found_by_namespace_and_by_name_while_they_are_there() {
        let (objects, mut feed) = objects::<Cluster>();
        for (namespace, name) in [("acme", "b"), ("other", "a"), ("acme", "a")] {
            feed.apply_watcher_event(&Event::Apply(cluster(namespace, name)));
        }
        assert_eq!(shown(&objects.within("acme")), ["acme/a", "acme/b"]);
        assert_eq!(shown(&objects.called("a")), ["acme/a", "other/a"]);
        feed.apply_watcher_event(&Event::Delete(cluster("acme", "a")));
        assert_eq!(shown(&objects.within("acme")), ["acme/b"]);
        assert_eq!(shown(&objects.called("a")), ["other/a"]);
    }

    #[test]
    fn a_new_list_counts_once_it_is_whole() {
        let (objects, mut feed) = objects::<Cluster>();
        feed.apply_watcher_event(&Event::Apply(cluster("acme", "old")));
        feed.apply_watcher_event(&Event::Init);
        feed.apply_watcher_event(&Event::InitApply(cluster("acme", "new")));
        assert_eq!(shown(&objects.within("acme")), ["acme/old"]);
        feed.apply_watcher_event(&Event::InitDone);
        assert_eq!(shown(&objects.within("acme")), ["acme/new"]);
        assert_eq!(shown(&objects.called("old")), Vec::<String>::new());
    }

    #[test]
    fn objects_of_the_whole_cluster_have_no_namespace() {
        let (objects, mut feed) = objects::<Project>();
        let project = Project::new("shop", emco_crds::project::ProjectSpec::default());
        feed.apply_watcher_event(&Event::Apply(project));
        assert_eq!(shown(&objects.called("shop")), ["/shop"]);
        assert!(objects.named("", "shop").is_some());
        assert_eq!(shown(&objects.within("shop")), Vec::<String>::new());
    }
}
