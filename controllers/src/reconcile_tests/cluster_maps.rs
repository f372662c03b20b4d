//! Compares the ConfigMaps that members of a project read with the clusters that it may use, and counts their writes.

use emco_engine::cluster_maps::{KEY, Row, SLOTS, name, read, slot};
use serde_json::{Value, json};

use super::rig::{Rig, cluster_object, emco, settled, world};
use super::shop::labelled;
use crate::api::{ApiServerExt, Method};
use crate::reconcile::cluster_maps;

const MAPS: &str = "/api/v1/namespaces/team-a/configmaps";

fn path(cluster: &str) -> String {
    format!("{MAPS}/{}", name(slot("acme", cluster)))
}

/// Looks at all maps of team-a as the watches show things now; the writes.
async fn look(rig: &mut Rig) -> Vec<(Method, String)> {
    rig.see();
    rig.ctx.stores.cluster_maps.rebuild(&rig.ctx.stores.clusters.sorted());
    rig.hub.take_seen();
    for slot in 0..SLOTS {
        cluster_maps::reconcile(&rig.ctx, "team-a", &name(slot)).await.unwrap();
    }
    rig.writes().into_iter().map(|seen| (seen.method, seen.path)).collect()
}

/// All maps there are.
fn maps(rig: &Rig) -> Vec<Value> {
    (0..SLOTS).filter_map(|slot| rig.hub.object(&format!("{MAPS}/{}", name(slot)))).collect()
}

/// What the maps say, in the order of clusters.
fn rows(rig: &Rig) -> Vec<Row> {
    let clusters = |map: &Value| read(map["data"][KEY].as_str().unwrap()).unwrap().clusters;
    let mut rows: Vec<Row> = maps(rig).iter().flat_map(clusters).collect();
    rows.sort_by_key(|row| row.name.clone());
    rows
}

/// The watch of ConfigMaps shows one as it is now.
fn show(rig: &Rig, cluster: &str) {
    let live = rig.hub.object(&path(cluster));
    let version = live.as_ref().and_then(|live| live["metadata"]["resourceVersion"].as_str());
    rig.ctx.stores.cluster_maps.seen("team-a", &name(slot("acme", cluster)), version);
}

/// Clusters a, b and c, of which a answers, and their maps.
async fn written() -> Rig {
    let mut rig = settled().await;
    for name in ["b", "c"] {
        rig.hub.put("test", &cluster_object(name));
    }
    rig.settle().await;
    look(&mut rig).await;
    rig
}

#[tokio::test]
async fn maps_say_name_level_labels_and_state_of_granted_clusters() {
    let mut rig = settled().await;
    let mut a = labelled("a", &json!({"tier": "edge"}));
    a["metadata"]["annotations"] = json!({"note": "hunter2"});
    a["spec"]["scheduling"] = json!("Cordoned");
    a["spec"]["properties"] = json!({"rack": "hunter2"});
    rig.hub.put("test", &a);
    rig.settle().await;
    look(&mut rig).await;
    let rows = rows(&rig);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let said = serde_json::to_value(row).unwrap();
    let wanted = json!({
        "provider": "acme", "name": "a", "level": "Admin", "scheduling": "Cordoned", "reachable": "True", "version": "v1.33.1",
        "labels": {"tier": "edge"},
    });
    assert_eq!(said, wanted);
    let all = json!(maps(&rig)).to_string();
    for hidden in ["hunter2", "192.0.2.1", "kubeconfig", "uid-a"] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    let map = rig.hub.object(&path("a")).unwrap();
    assert_eq!(map["metadata"]["labels"], json!({"emco.io/project": "team-a"}));
    assert_eq!(map["metadata"]["ownerReferences"][0]["kind"], "Project");
}

#[tokio::test]
async fn a_changed_label_is_one_write_and_rest_is_none() {
    let mut rig = written().await;
    assert_eq!(rows(&rig).len(), 3);
    assert!(look(&mut rig).await.is_empty());
    rig.hub.put("test", &labelled("b", &json!({"tier": "edge"})));
    rig.settle().await;
    assert_eq!(look(&mut rig).await, [(Method::Patch, path("b"))]);
    assert_eq!(rows(&rig)[1].labels["tier"], "edge");
    assert!(look(&mut rig).await.is_empty());
    rig.restart();
    assert!(look(&mut rig).await.is_empty(), "another process finds them as they should be");
}

#[tokio::test]
async fn a_grant_that_ends_takes_its_clusters_out_and_the_maps_away() {
    let mut rig = written().await;
    let grants = json!({"grants": [{"name": "one", "projects": ["team-a"], "clusters": [{"provider": "acme", "cluster": "b"}]}]});
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &grants));
    rig.settle().await;
    look(&mut rig).await;
    let left: Vec<(String, String)> =
        rows(&rig).iter().map(|row| (row.name.clone(), row.level.as_str().to_owned())).collect();
    assert_eq!(left, [("b".to_owned(), "Standard".to_owned())]);
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &json!({"grants": []})));
    rig.settle().await;
    assert_eq!(look(&mut rig).await, [(Method::Delete, path("b"))]);
    assert!(maps(&rig).is_empty());
    assert!(look(&mut rig).await.is_empty());
}

#[tokio::test]
async fn what_tenants_write_into_a_map_is_taken_back() {
    let mut rig = written().await;
    let before = essence(&rig, "a");
    for edit in [
        json!({"data": {KEY: "{}"}}),
        json!({"data": {"more": "x"}}),
        json!({"binaryData": {"more": "eA=="}}),
        json!({"metadata": {"labels": {"emco.io/project": null}}, "data": {KEY: "{}"}}),
        json!({"metadata": {"ownerReferences": null}}),
        json!({"data": {KEY: "{}"}, "immutable": true}),
    ] {
        rig.hub.merge(path("a"), &edit).await.unwrap();
        show(&rig, "a");
        assert!(!look(&mut rig).await.is_empty(), "{edit}");
        assert_eq!(essence(&rig, "a"), before, "{edit}");
        assert!(look(&mut rig).await.is_empty(), "{edit}");
    }
    rig.hub.remove(&path("a"));
    show(&rig, "a");
    assert_eq!(look(&mut rig).await, [(Method::Post, MAPS.to_owned())]);
    assert_eq!(essence(&rig, "a"), before);
}

/// What of a map is the operator's.
fn essence(rig: &Rig, cluster: &str) -> Value {
    let map = rig.hub.object(&path(cluster)).unwrap();
    let meta = &map["metadata"];
    json!([map["data"], map["binaryData"], meta["labels"], meta["ownerReferences"]])
}

#[tokio::test]
async fn a_map_of_another_owner_is_left_alone_until_it_goes() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(slot("acme", "a")), "namespace": "team-a"},
        "data": {"mine": "x"},
    });
    rig.hub.put("test", &foreign);
    assert!(look(&mut rig).await.is_empty());
    rig.hub.remove(&path("a"));
    show(&rig, "a");
    assert_eq!(look(&mut rig).await, [(Method::Post, MAPS.to_owned())]);
}
