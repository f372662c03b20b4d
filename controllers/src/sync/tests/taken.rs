//! Objects of others that are taken as they are, and go: no watch of ours tells of it.

use std::time::Duration;

use emco_engine::marks;
use emco_engine::set::SetManifest;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rig::*;

const SHARED: &str = "/api/v1/namespaces/shared";
const REALMS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/realms.example.com";

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}})
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "realms.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Realm", "plural": "realms"},
            "versions": [{"name": "v1", "served": true, "storage": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]}})
}

/// What a logical cloud has of a namespace that was there before, and a chart of its `crds/` folder.
fn both() -> Vec<SetManifest> {
    let (mut space, mut kind) = (manifest(namespace(), None), manifest(definition(), None));
    space.take_existing = true;
    kind.crd_folder = true;
    vec![space, kind]
}

/// An engine that took both from somebody.
async fn taken() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("somebody", &namespace());
    rig.edge("a").put("somebody", &definition());
    rig.start().await;
    rig.target(&on("a", &[app_of("namespace", both())])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
    rig
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_from_others_and_goes_is_made_within_minutes() {
    let rig = taken().await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    let looks = rig.edge("a").take_seen().iter().filter(|seen| seen.path.starts_with(SHARED)).count();
    assert!((5..20).contains(&looks), "{looks} looks in half an hour");
    rig.edge("a").remove(SHARED);
    rig.edge("a").remove(REALMS);
    tokio::time::sleep(Duration::from_mins(4)).await;
    for path in [SHARED, REALMS] {
        let object = rig.edge("a").object(path).unwrap_or_else(|| panic!("{path} is not made"));
        assert_eq!(marks::owner_of(&object), Some(rig.hash.as_str()));
    }
    let row = rig.row("a").unwrap();
    assert_eq!((row.ready, row.total, row.error), (2, 2, None));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_from_others_is_made_at_once_where_it_is_missed() {
    let rig = taken().await;
    *rig.policy.namespace.lock() = Some("shared".to_owned());
    rig.edge("a").remove(SHARED);
    let mut object = config("c", "1");
    object["metadata"]["namespace"] = json!("shared");
    let begun = Instant::now();
    rig.target_of("other", &on("a", &[app("web", vec![object])])).await;
    let there = |rig: &Rig| rig.edge("a").object(&format!("{SHARED}/configmaps/c")).is_some();
    rig.until("the other deployment has its object", there).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_from_others_and_cannot_be_read_stays_taken() {
    let rig = taken().await;
    rig.edges.set_down(&cluster("a"), true);
    tokio::time::sleep(Duration::from_mins(10)).await;
    rig.edges.set_down(&cluster("a"), false);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(rig.edge("a").writes().is_empty());
    let row = rig.row("a").unwrap();
    assert_eq!((row.ready, row.total, row.error), (2, 2, None));
}
