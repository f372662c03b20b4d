//! What watches of ConfigMaps and Secrets tell after they were cut.

use kube::core::Status;
use serde_json::json;

use super::*;
use crate::api::key_queue::Key;
use crate::reconcile_tests::Rig;

type Heard = Event<PartialObjectMeta<Secret>>;

fn meta(name: &str) -> PartialObjectMeta<Secret> {
    serde_json::from_value(json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": name, "namespace": "acme", "uid": name, "resourceVersion": "1"}}))
    .unwrap()
}

fn list(watch: &mut Watch, names: &[&str]) {
    let listed = names.iter().map(|name| Event::InitApply(meta(name)));
    for event in std::iter::once(Event::Init).chain(listed).chain([Event::InitDone]) {
        watch.hear::<Secret>(&event);
    }
}

/// A watch in a namespace whose Clusters a, b and c name Secrets of their own.
fn watch(kind: &'static str) -> Watch {
    let mut rig = Rig::new();
    rig.hub.put(
        "test",
        &json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "acme", "labels": {"emco.io/provider": "acme"}}}),
    );
    for name in ["a", "b", "c"] {
        rig.hub.put(
            "test",
            &json!({"apiVersion": "emco.io/v1alpha1", "kind": "Cluster",
                "metadata": {"name": name, "namespace": "acme"},
                "spec": {"access": {"kubeconfigSecretRef": {"name": name}}}}),
        );
    }
    rig.see();
    Watch::new(kind, "acme", &Arc::new(rig.ctx), &Arc::default())
}

fn woken(watch: &Watch) -> Vec<String> {
    let keys = std::iter::from_fn(|| watch.triggers.clusters.take());
    let mut names: Vec<String> = keys.map(|(_, name): Key| name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_went_while_a_watch_was_cut_wakes_who_names_it() {
    let mut watch = watch("Secret");
    list(&mut watch, &["a", "b", "c"]);
    assert_eq!(woken(&watch), ["a", "b", "c"]);
    watch.hear(&Heard::Delete(meta("c")));
    assert_eq!(woken(&watch), ["c"]);
    // Those that are there are told, too, as in each list; c is not told a second time.
    list(&mut watch, &["b"]);
    assert_eq!(woken(&watch), ["a", "b"]);
    list(&mut watch, &["b"]);
    assert_eq!(woken(&watch), ["b"], "it is told once");
}

#[tokio::test]
async fn where_more_go_than_are_remembered_all_of_the_namespace_look() {
    let mut watch = watch("Secret");
    let names: Vec<String> = (0..=MOST_NAMES).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    list(&mut watch, &names);
    assert_eq!(watch.there.all.known.len(), MOST_NAMES);
    assert_eq!(woken(&watch), Vec::<String>::new(), "a first list lacks nothing");
    list(&mut watch, &[]);
    assert_eq!(woken(&watch), ["a", "b", "c"]);
    list(&mut watch, &[]);
    assert_eq!(woken(&watch), Vec::<String>::new());
}

#[tokio::test]
async fn the_version_of_a_secret_holds_while_its_watch_is_not_cut() {
    let mut watch = watch("Secret");
    list(&mut watch, &["a"]);
    let versions = Arc::clone(&watch.ctx.stores.secret_versions);
    let of = || versions.of("acme", "a");
    assert_eq!(of().as_deref(), Some("a@1"));
    let refused = Status::failure("secrets is forbidden", "Forbidden").with_code(403);
    watch.fail(&watcher::Error::WatchStartFailed(kube::Error::Api(refused.boxed())));
    assert_eq!(of(), None, "rights may have been withdrawn");
    watch.hear(&Heard::Apply(meta("b")));
    assert_eq!(of().as_deref(), Some("a@1"));
}
