//! Facts about the in-memory server. That a real one answers so too is compared in `e2e/tests/memory`.

use emco_engine::selector::LabelSelector;
use serde_json::json;

use super::MemoryServer;
use crate::api::{ApiServer, ApiServerExt, Content, Method, Request, WatchEvent};
use futures::StreamExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn apply(path: &str, manager: &str, force: bool, body: &serde_json::Value) -> Request {
    Request::new(Method::Patch, path)
        .query("fieldManager", manager)
        .query("force", force.to_string())
        .body(Content::Apply, body)
}

fn map(name: &str, data: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

#[tokio::test]
async fn a_404_that_does_not_name_the_object_is_no_proof_that_it_is_gone() {
    let server = MemoryServer::new();
    for (name, path) in [("a", format!("{MAPS}/a")), ("x", "/apis/emco.io/v1alpha1/projects/x".to_owned())] {
        assert_eq!(server.get_opt(&path).await.unwrap(), None, "{name}");
        assert_eq!(server.delete(&path, None, None).await.unwrap(), None, "{name}");
    }
    let unserved = "/apis/example.com/v9/namespaces/default/things/a";
    assert!(server.get_opt(unserved).await.unwrap_err().is_not_found());
    assert!(server.delete(unserved, None, None).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_selector_that_is_text_or_no_label_is_not_sent() {
    let server = MemoryServer::new();
    let list = || Request::new(Method::Get, MAPS);
    for request in [
        list().query("labelSelector", "k"),
        list().query("fieldSelector", "metadata.name=a"),
        list().labels(&LabelSelector::is("k", "a,b")),
    ] {
        let error = server.send(request).await.unwrap_err();
        assert_eq!(error.code(), 400);
        assert!(error.to_string().contains("a selector of "), "{error}");
    }
    assert!(server.send(list().labels(&LabelSelector::is("k", "a"))).await.is_ok());
}

#[tokio::test]
async fn an_apply_removes_what_its_manager_no_longer_says() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    server.send(apply(&path, "one", false, &map("a", &json!({"x": "1", "y": "2"})))).await.unwrap();
    server.send(apply(&path, "two", false, &map("a", &json!({"z": "3"})))).await.unwrap();
    let after = server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    assert_eq!(after["data"], json!({"x": "1", "z": "3"}));
}

#[tokio::test]
async fn an_item_of_which_only_its_key_is_still_said_stays() {
    let server = MemoryServer::new();
    let path = "/api/v1/namespaces/default/pods/p";
    let pod = |container: &serde_json::Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [container]}});
    let full = json!({"name": "web", "image": "x"});
    server.send(apply(path, "one", false, &pod(&full))).await.unwrap();
    let bare = json!({"name": "web"});
    let after = server.send(apply(path, "one", false, &pod(&bare))).await.unwrap();
    assert_eq!(after["spec"]["containers"], json!([bare]));
    // Whoever says the same owns it, too; only a change is a conflict.
    server.send(apply(path, "two", false, &pod(&full))).await.unwrap();
    let refused = server.send(apply(path, "one", false, &pod(&json!({"name": "web", "image": "y"})))).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("conflict with \"two\"") && said.contains("image"), "{said}");
}

#[tokio::test]
async fn two_managers_conflict_unless_forced() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    let refused = server.send(apply(&path, "two", false, &map("a", &json!({"x": "2"})))).await.unwrap_err();
    assert!(refused.is_conflict() && refused.to_string().contains("one"), "{refused}");
    let forced = server.send(apply(&path, "two", true, &map("a", &json!({"x": "2"})))).await.unwrap();
    assert_eq!(forced["data"]["x"], "2");
}

#[tokio::test]
async fn an_unchanged_apply_moves_no_revision() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    let first = server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    let second = server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn an_unchanged_apply_of_one_among_several_managers_moves_no_revision() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    let before = server.send(apply(&path, "two", false, &map("a", &json!({"y": "1"})))).await.unwrap();
    let after = server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn an_apply_of_an_empty_map_takes_nothing_from_others() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    server.send(apply(&path, "one", false, &map("a", &json!({"x": "1"})))).await.unwrap();
    let after = server.send(apply(&path, "two", false, &map("a", &json!({})))).await.unwrap();
    assert_eq!(after["data"], json!({"x": "1"}));
}

#[tokio::test]
async fn a_watch_is_told_of_what_leaves_its_selection_as_it_was_at_the_new_version() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    let mut object = map("a", &json!({"x": "1"}));
    object["metadata"]["labels"] = json!({"k": "1"});
    server.create(MAPS, &object).await.unwrap();
    let request = Request::new(Method::Get, MAPS).labels(&LabelSelector::is("k", "1")).metadata();
    let mut events = server.watch(request).await.unwrap();
    // Without a version, a watch begins with what there is; asked for metadata, it tells no more.
    let there = events.next().await.unwrap().unwrap();
    assert!(matches!(there, WatchEvent::Applied(object) if object.get("data").is_none()));
    let moved = server.merge(&path, &json!({"metadata": {"labels": {"k": "2"}}})).await.unwrap();
    let WatchEvent::Deleted(last) = events.next().await.unwrap().unwrap() else { panic!() };
    assert_eq!(last["metadata"]["labels"], json!({"k": "1"}));
    assert_eq!(last["metadata"]["resourceVersion"], moved["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_stale_replacement_is_refused() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    let first = server.create(MAPS, &map("a", &json!({"x": "1"}))).await.unwrap();
    server.merge(&path, &json!({"data": {"x": "2"}})).await.unwrap();
    assert!(server.replace(&path, &first).await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn a_finalizer_holds_a_deleted_object_and_its_namespace() {
    let server = MemoryServer::new();
    server.put("t", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    let mut object = map("a", &json!({}));
    object["metadata"]["namespace"] = json!("n");
    object["metadata"]["finalizers"] = json!(["emco.io/inventory"]);
    server.create("/api/v1/namespaces/n/configmaps", &object).await.unwrap();
    server.delete("/api/v1/namespaces/n", None, None).await.unwrap();
    assert!(server.object("/api/v1/namespaces/n").is_some());
    let mut late = map("b", &json!({}));
    late["metadata"]["namespace"] = json!("n");
    let refused = server.create("/api/v1/namespaces/n/configmaps", &late).await.unwrap_err();
    assert_eq!(refused.code(), 403);
    server
        .merge("/api/v1/namespaces/n/configmaps/a", &json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    assert!(server.object("/api/v1/namespaces/n").is_none());
}

#[tokio::test]
async fn a_watch_replays_what_came_after_its_revision() {
    let server = MemoryServer::new();
    server.create(MAPS, &map("a", &json!({}))).await.unwrap();
    let list = server.send(Request::new(Method::Get, MAPS)).await.unwrap();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.create(MAPS, &map("b", &json!({}))).await.unwrap();
    let mut events =
        server.watch(Request::new(Method::Get, MAPS).query("resourceVersion", revision)).await.unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Applied(object) if object["metadata"]["name"] == "b"));
}

#[tokio::test]
async fn a_copy_has_what_was_stored_and_goes_its_own_way() {
    let server = MemoryServer::new();
    let path = format!("{MAPS}/a");
    let before = server.revision().to_string();
    server.create(MAPS, &map("a", &json!({"x": "1"}))).await.unwrap();
    let copy = server.copied();
    assert_eq!((copy.objects(), copy.revision()), (server.objects(), server.revision()));
    server.create(MAPS, &map("b", &json!({}))).await.unwrap();
    assert!(copy.object(&format!("{MAPS}/b")).is_none());
    copy.merge(&path, &json!({"data": {"x": "2"}})).await.unwrap();
    assert_eq!(server.object(&path).unwrap()["data"]["x"], "1");
    // What came before the copy was made is told by it, too.
    let request = Request::new(Method::Get, MAPS).query("resourceVersion", before);
    let mut events = copy.watch(request).await.unwrap();
    for x in ["1", "2"] {
        let event = events.next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Applied(object) if object["data"]["x"] == x));
    }
}

#[tokio::test]
async fn status_is_written_through_its_subresource_alone() {
    let server = MemoryServer::new();
    server.put("t", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "p"}}));
    let collection = "/apis/emco.io/v1alpha1/namespaces/p/syncshards";
    let shard = json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard", "metadata": {"name": "s"}, "spec": {"slot": 0}, "status": {"x": 1}});
    let made = server.create(collection, &shard).await.unwrap();
    assert!(made.get("status").is_none());
    let mut with_status = made.clone();
    with_status["status"] = json!({"observedGeneration": 1});
    with_status["spec"] = json!({"slot": 9});
    let written = server.replace(&format!("{collection}/s/status"), &with_status).await.unwrap();
    assert_eq!(written["spec"]["slot"], 0);
    assert_eq!(written["metadata"]["generation"], 1);
    assert_eq!(written["status"]["observedGeneration"], 1);
}
