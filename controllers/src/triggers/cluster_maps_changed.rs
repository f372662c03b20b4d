//! Maps a change to the ConfigMaps, kept for members of projects, that it may change.

use std::collections::BTreeMap;

use emco_crds::names::label;
use emco_crds::{ClusterProvider, Project};
use emco_engine::cloud;
use emco_engine::cluster_maps::slot;
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::change::Change;
use super::predicates::changed;
use crate::api::key_queue::Key;
use crate::object::meta;
use crate::stores::{NamespaceMeta, Stores};
use crate::tenancy::facts;

/// What was read of those on which more than one ConfigMap depends. Their statuses are not: those change with every cluster.
#[derive(Default)]
pub struct ClusterMapsChanged {
    providers: Mutex<BTreeMap<String, Value>>,
    projects: Mutex<BTreeMap<String, Value>>,
    namespaces: Mutex<BTreeMap<String, Value>>,
}

impl ClusterMapsChanged {
    /// Grants changed: all ConfigMaps of all projects, for nobody knows any more whom they named before.
    pub fn provider(&self, stores: &Stores, change: &Change<'_, ClusterProvider>) {
        if changed(&self.providers, change, || json!(change.object.spec)) {
            all(stores);
        }
    }

    /// What grants read of a project changed: all ConfigMaps of it.
    pub fn project(&self, stores: &Stores, change: &Change<'_, Project>) {
        let project = change.object;
        let read = || json!([project.metadata.labels, project.spec.namespace, meta::deleting(project)]);
        if changed(&self.projects, change, read) {
            stores.cluster_maps.enqueue_all(project.owned_namespace());
        }
    }

    /// A namespace has another owner: the ConfigMaps in it, or those that have the clusters in it.
    pub fn namespace(&self, stores: &Stores, change: &Change<'_, NamespaceMeta>) {
        let namespace = change.object;
        let read = || {
            let owner =
                |key: &str| namespace.meta().labels.as_ref().and_then(|labels| labels.get(key)).cloned();
            json!([owner(label::PROJECT), owner(label::PROVIDER), meta::deleting(namespace)])
        };
        if !changed(&self.namespaces, change, read) {
            return;
        }
        let name = meta::name(namespace);
        if stores.projects.state().iter().any(|project| project.owned_namespace() == name) {
            stores.cluster_maps.enqueue_all(name);
        }
        if !stores.clusters.within(name).is_empty() {
            all(stores);
        }
    }
}

/// What is read of a Cluster changed: one ConfigMap of each project that its provider grants anything. A grant that covers the cluster by its
/// labels is such a one before and after.
pub fn cluster(stores: &Stores, (within, name): &Key) {
    let slot = slot(within, name);
    let namespace = stores.namespaces.named("", within);
    let labels = namespace.as_ref().and_then(|namespace| namespace.meta().labels.as_ref());
    let provider = labels.and_then(|labels| labels.get(label::PROVIDER));
    // Without one nothing is granted; where it comes, or went, it says so itself.
    let Some(provider) = provider.and_then(|name| stores.providers.named("", name)) else { return };
    for project in stores.projects.state() {
        if cloud::grants_any(&provider, meta::name(project.as_ref()), &facts::labels(project.as_ref())) {
            stores.cluster_maps.enqueue(project.owned_namespace(), slot);
        }
    }
}

fn all(stores: &Stores) {
    for project in stores.projects.state() {
        stores.cluster_maps.enqueue_all(project.owned_namespace());
    }
}

#[cfg(test)]
mod tests {
    use emco_engine::cluster_maps::{SLOTS, name};
    use kube::runtime::watcher::Event;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::stores::{Feed, Writers, stores};

    fn object<K: DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    fn provider(projects: &[&str]) -> ClusterProvider {
        object(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "ClusterProvider", "metadata": {"name": "acme", "uid": "p"},
            "spec": {"grants": [{"name": "some", "projects": projects, "clusters": [{"selector": {"matchLabels": {"tier": "edge"}}}]}]},
        }))
    }

    fn show<K>(feed: &mut Feed<K>, shown: K)
    where
        K: kube::runtime::reflector::Lookup<DynamicType = ()> + Clone + 'static,
    {
        feed.apply_watcher_event(&Event::Apply(shown));
    }

    /// Provider acme grants to team-a; there is team-b, too.
    fn world() -> (Stores, Writers) {
        let (stores, mut writers) = stores();
        show(&mut writers.providers, provider(&["team-a"]));
        for name in ["team-a", "team-b"] {
            show(&mut writers.projects, Project::new(name, emco_crds::project::ProjectSpec::default()));
        }
        let labels = json!({"emco.io/provider": "acme"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme", "uid": "n", "labels": labels}});
        show(&mut writers.namespaces, object(namespace));
        (stores, writers)
    }

    fn queued(stores: &Stores) -> Vec<Key> {
        std::iter::from_fn(|| stores.cluster_maps.queue.take()).collect()
    }

    #[test]
    fn a_cluster_concerns_one_map_of_each_project_that_is_granted_any() {
        let (stores, _writers) = world();
        let berlin = ("acme".to_owned(), "berlin".to_owned());
        for _ in 0..2 {
            cluster(&stores, &berlin);
            assert_eq!(queued(&stores), [("team-a".to_owned(), name(slot("acme", "berlin")))]);
        }
        cluster(&stores, &("other".to_owned(), "berlin".to_owned()));
        assert!(queued(&stores).is_empty(), "nobody owns its namespace");
    }

    #[test]
    fn grants_concern_all_maps_and_the_status_of_a_provider_none() {
        let (stores, _writers) = world();
        let maps = ClusterMapsChanged::default();
        let mut acme = provider(&["team-a"]);
        maps.provider(&stores, &Change { object: &acme, gone: false });
        assert_eq!(queued(&stores).len(), 2 * SLOTS);
        acme.status = Some(object(json!({"summary": {"clusters": "3/4"}})));
        maps.provider(&stores, &Change { object: &acme, gone: false });
        assert!(queued(&stores).is_empty());
        maps.provider(&stores, &Change { object: &provider(&["team-b"]), gone: false });
        assert_eq!(queued(&stores).len(), 2 * SLOTS);
    }
}
