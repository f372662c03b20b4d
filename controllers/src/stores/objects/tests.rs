//! Objects are found while they are there.

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

fn by_site(cluster: &Cluster) -> BTreeSet<IndexKey> {
    let labels = cluster.metadata.labels.iter().flatten();
    labels.map(|(key, value)| ("site", format!("{key}={value}"))).collect()
}

fn at(name: &str, site: &str) -> Cluster {
    let mut cluster = cluster("acme", name);
    cluster.metadata.labels = Some([("site".to_owned(), site.to_owned())].into());
    cluster
}

#[test]
fn objects_are_found_by_the_key_that_they_have_now() {
    let (_, mut feed) = objects::<Cluster>();
    feed.index_by(by_site);
    let objects = feed.as_reader();
    let found = |site: &str| shown(&objects.indexed("site", &format!("site={site}")));
    for (name, site) in [("a", "north"), ("b", "north"), ("c", "south"), ("a", "south")] {
        feed.apply_watcher_event(&Event::Apply(at(name, site)));
    }
    assert_eq!(found("north"), ["acme/b"]);
    assert_eq!(found("south"), ["acme/a", "acme/c"]);
    assert_eq!((objects.count("site", "site=south"), objects.count("site", "site=west")), (2, 0));
    assert_eq!(objects.names_within("acme", 2), (3, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(objects.names_within("other", 2), (0, Vec::new()));
    feed.apply_watcher_event(&Event::Apply(cluster("acme", "c")));
    feed.apply_watcher_event(&Event::Delete(at("a", "south")));
    assert_eq!(found("south"), Vec::<String>::new());
    feed.apply_watcher_event(&Event::Init);
    feed.apply_watcher_event(&Event::InitApply(at("d", "south")));
    assert_eq!(found("south"), Vec::<String>::new(), "the list is not whole yet");
    feed.apply_watcher_event(&Event::InitDone);
    assert_eq!((found("north"), found("south")), (Vec::new(), vec!["acme/d".to_owned()]));
    assert!(objects.indexed("other", "site=south").is_empty());
}

#[test]
fn the_last_key_is_that_of_an_object_that_is_there() {
    let (_, mut feed) = objects::<Cluster>();
    feed.index_by(by_site);
    let objects = feed.as_reader();
    let last = || objects.last_key("site");
    assert_eq!(last(), None);
    for (name, site) in [("a", "3"), ("b", "7")] {
        feed.apply_watcher_event(&Event::Apply(at(name, site)));
    }
    assert_eq!((last().as_deref(), objects.last_key("sit")), (Some("site=7"), None));
    feed.apply_watcher_event(&Event::Delete(at("b", "7")));
    assert_eq!(last().as_deref(), Some("site=3"));
}

const OWNER: &str = "owner";

fn owners(cluster: &Cluster) -> BTreeSet<IndexKey> {
    let labels = cluster.metadata.labels.iter().flatten();
    labels.map(|(_, owner)| (OWNER, owner.clone())).collect()
}

#[test]
fn objects_are_found_by_their_owner_while_they_are_there() {
    let owned = |namespace: &str, name: &str, owner: &str| {
        let mut cluster = cluster(namespace, name);
        cluster.metadata.labels = Some([(OWNER.to_owned(), owner.to_owned())].into());
        cluster
    };
    let (_, mut feed) = objects::<Cluster>();
    feed.index_by(owners);
    let objects = feed.as_reader();
    for object in [owned("acme", "b", "o"), owned("acme", "a", "o"), owned("other", "c", "p")] {
        feed.apply_watcher_event(&Event::Apply(object));
    }
    feed.apply_watcher_event(&Event::Apply(cluster("acme", "nobody's")));
    assert_eq!(shown(&objects.indexed(OWNER, "o")), ["acme/a", "acme/b"]);
    assert_eq!(shown(&objects.indexed(OWNER, "p")), ["other/c"]);
    feed.apply_watcher_event(&Event::Delete(owned("acme", "a", "o")));
    feed.apply_watcher_event(&Event::Apply(owned("other", "d", "o")));
    assert_eq!(shown(&objects.indexed(OWNER, "o")), ["acme/b", "other/d"]);
    feed.apply_watcher_event(&Event::Init);
    feed.apply_watcher_event(&Event::InitApply(owned("acme", "e", "o")));
    assert_eq!(shown(&objects.indexed(OWNER, "o")), ["acme/b", "other/d"], "the list is not whole yet");
    feed.apply_watcher_event(&Event::InitDone);
    assert_eq!(shown(&objects.indexed(OWNER, "o")), ["acme/e"]);
    assert_eq!(shown(&objects.indexed(OWNER, "p")), Vec::<String>::new());
    assert_eq!(shown(&objects.sorted()), ["acme/e"]);
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

#[test]
fn a_watch_does_not_wait_for_those_who_look_objects_up() {
    let (objects, mut feed) = objects::<Cluster>();
    feed.index_by(by_site);
    for name in ["a", "b"] {
        feed.apply_watcher_event(&Event::Apply(at(name, "3")));
    }
    let found = [objects.sorted(), objects.within("acme"), objects.indexed("site", "site=3")];
    assert!(found.iter().all(|found| shown(found) == ["acme/a", "acme/b"]), "{found:?}");
    assert_eq!(shown(&objects.called("b")), ["acme/b"]);
    assert_eq!(visits::while_locked(), 0);
}
