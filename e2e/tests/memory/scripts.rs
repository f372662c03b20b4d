//! What our code asks of API servers, each thing once, with the refusals that it acts upon.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use emco_controllers::api::{ApiServerExt as _, Content, Method, Request};
use emco_engine::path::ApiPath;
use emco_engine::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use super::pair::{BED, Pair};

const NOBODY: &str = "99999999-0000-4000-8000-000000000000";

pub fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub fn with(mut object: Value, key: &str, value: Value) -> Value {
    object["metadata"][key] = value;
    object
}

pub async fn pair(namespace: &str) -> Pair {
    Pair::new(BED.get().await.unwrap(), namespace).await.unwrap()
}

#[tokio::test]
async fn objects_are_created_read_and_refused_alike() {
    let mut pair = pair("create").await;
    let (maps, widgets) = (pair.maps(), pair.widgets());
    let script = async {
        for (collection, object) in
            [(&maps, map("a", &json!({"x": "1"}))), (&widgets, widget("a", &json!({"x": 1})))]
        {
            pair.create(collection, &object).await?.context("created")?;
            pair.create(collection, &object).await?.unwrap_err();
            pair.create(collection, &with(object.clone(), "name", json!(""))).await?.unwrap_err();
            pair.create(collection, &with(object.clone(), "namespace", json!("elsewhere")))
                .await?
                .unwrap_err();
            pair.get(&format!("{collection}/a")).await?.context("there")?;
            pair.get(&format!("{collection}/b")).await?.unwrap_err();
            let held = with(object.clone(), "finalizers", json!(["example.com/hold", "example.com/too"]));
            pair.create(collection, &with(held, "name", json!("held"))).await?.context("created")?;
            let empty = with(with(object, "labels", json!({})), "annotations", json!({}));
            pair.create(collection, &with(empty, "name", json!("empty"))).await?.context("created")?;
        }
        let nowhere = "/api/v1/namespaces/nowhere/configmaps";
        pair.create(nowhere, &map("a", &json!({}))).await?.unwrap_err();
        pair.get(nowhere).await?.context("an empty list")?;
        let mut with_status = widget("s", &json!({"x": 1}));
        with_status["status"] = json!({"y": 1});
        pair.create(&widgets, &with_status).await?.context("created")?;
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn replacements_and_patches_are_taken_and_refused_alike() {
    let mut pair = pair("replace").await;
    let (maps, widgets) = (pair.maps(), pair.widgets());
    let script = async {
        for (collection, object, changed) in [
            (&maps, map("a", &json!({"x": "1", "y": "1"})), json!({"data": {"x": "2"}})),
            (&widgets, widget("a", &json!({"x": "1", "y": "1"})), json!({"spec": {"x": "2"}})),
        ] {
            let path = format!("{collection}/a");
            let part = if collection.ends_with("widgets") { "spec" } else { "data" };
            pair.create(collection, &object).await?.context("created")?;
            let current = with(object.clone(), "resourceVersion", json!("{version}"));
            pair.put(&path, &current).await?.context("unchanged")?;
            let mut other = current.clone();
            other[part] = json!({"x": "3", "z": "1"});
            pair.put(&path, &other).await?.context("changed")?;
            pair.put(&path, &with(other.clone(), "resourceVersion", json!("1"))).await?.unwrap_err();
            pair.put(&path, &with(other.clone(), "uid", json!(NOBODY))).await?.unwrap_err();
            pair.put(&path, &with(other.clone(), "name", json!("b"))).await?.unwrap_err();
            pair.put(&format!("{collection}/none"), &with(other.clone(), "name", json!("none")))
                .await?
                .unwrap_err();
            // Without a version: built-in kinds take it, custom ones do not.
            let _ = pair.put(&path, &object).await?;
            pair.patch(&path, Content::Merge, &changed).await?.context("patched")?;
            pair.patch(&path, Content::Merge, &changed).await?.context("patched again")?;
            let labels = json!({"metadata": {"labels": {"a": "b"}, "resourceVersion": "{version}"}});
            pair.patch(&path, Content::Merge, &labels).await?.context("labelled")?;
            let stale = json!({"metadata": {"labels": {"a": "c"}, "resourceVersion": "1"}});
            pair.patch(&path, Content::Merge, &stale).await?.unwrap_err();
            pair.patch(&path, Content::Merge, &json!({"metadata": {"labels": null}}))
                .await?
                .context("unlabelled")?;
            pair.patch(&path, Content::Merge, &json!({"metadata": {"uid": NOBODY}})).await?.unwrap_err();
            pair.patch(&format!("{collection}/none"), Content::Merge, &changed).await?.unwrap_err();
            let at = format!("/{part}/x");
            let tested = json!([{"op": "test", "path": at, "value": "2"}, {"op": "replace", "path": at, "value": "4"}]);
            pair.patch(&path, Content::JsonPatch, &tested).await?.context("tested")?;
            pair.patch(&path, Content::JsonPatch, &tested).await?.unwrap_err();
            let gone = json!([{"op": "remove", "path": format!("/{part}/none")}]);
            pair.patch(&path, Content::JsonPatch, &gone).await?.unwrap_err();
            pair.get(&path).await?.context("there")?;
        }
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn a_status_is_written_through_its_subresource_alike() {
    let mut pair = pair("status").await;
    let widgets = pair.widgets();
    let (path, status) = (format!("{widgets}/a"), format!("{widgets}/a/status"));
    let script = async {
        pair.create(&widgets, &widget("a", &json!({"x": 1}))).await?.context("created")?;
        let mut object = with(widget("a", &json!({"x": 9})), "resourceVersion", json!("{version}"));
        object["status"] = json!({"s": 1, "list": [{"type": "Ready", "status": "True"}], "map": {"t": 1}});
        pair.put(&status, &object).await?.context("the status alone")?;
        pair.put(&status, &object).await?.context("the same")?;
        pair.put(&path, &object).await?.context("all but the status")?;
        object["metadata"]["resourceVersion"] = json!("1");
        pair.put(&status, &object).await?.unwrap_err();
        pair.put(&format!("{widgets}/none/status"), &with(object, "name", json!("none"))).await?.unwrap_err();
        let both = json!({"spec": {"x": 5}, "status": {"s": 2}});
        pair.patch(&path, Content::Merge, &both).await?.context("the spec alone")?;
        let request = Request::new(Method::Patch, ApiPath::split(&status)).query("fieldManager", "patcher");
        pair.ask(&request.clone().body(Content::Merge, &both), None).await?.context("the status alone")?;
        let at = |version: &str| {
            let body = json!([
                {"op": "add", "path": "/metadata/resourceVersion", "value": version},
                {"op": "add", "path": "/status", "value": {"t": 1}},
            ]);
            request.clone().body(Content::JsonPatch, &body)
        };
        pair.ask(&at("{version}"), Some(&path)).await?.context("all of the status")?;
        pair.ask(&at("{version}").metadata(), Some(&path)).await?.context("answered with metadata alone")?;
        pair.ask(&at("1"), Some(&path)).await?.unwrap_err();
        pair.get(&path).await?.context("there")?;
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn server_side_apply_merges_conflicts_and_takes_over_alike() {
    let mut pair = pair("apply").await;
    let (maps, widgets) = (pair.maps(), pair.widgets());
    let script = async {
        for (collection, part, make) in [
            (&maps, "data", map as fn(&str, &Value) -> Value),
            (&widgets, "spec", widget as fn(&str, &Value) -> Value),
        ] {
            let path = format!("{collection}/a");
            let say = |data: &Value| make("a", data);
            pair.apply(&path, "one", false, &say(&json!({"x": "1", "y": "1"}))).await?.context("created")?;
            pair.apply(&path, "one", false, &say(&json!({"x": "1", "y": "1"}))).await?.context("the same")?;
            pair.apply(&path, "two", false, &say(&json!({"x": "1", "z": "1"}))).await?.context("shared")?;
            pair.apply(&path, "two", false, &say(&json!({"x": "2", "z": "1"}))).await?.unwrap_err();
            pair.apply(&path, "two", false, &say(&json!({"x": "2", "y": "2"}))).await?.unwrap_err();
            pair.apply(&path, "two", true, &say(&json!({"x": "2", "z": "1"})))
                .await?
                .context("taken over")?;
            pair.apply(&path, "one", false, &say(&json!({"y": "1"}))).await?.context("less")?;
            let change = json!({part: {"y": "9"}});
            pair.patch(&path, Content::Merge, &change).await?.context("patched")?;
            pair.apply(&path, "one", false, &say(&json!({"y": "1"}))).await?.unwrap_err();
            pair.apply(&path, "one", false, &say(&json!({"y": "3", "x": "3"}))).await?.unwrap_err();
            pair.apply(&path, "one", true, &say(&json!({"y": "1"}))).await?.context("taken back")?;
            let labelled = with(say(&json!({"y": "1"})), "labels", json!({"a": "b", "example.com/c": "d"}));
            pair.apply(&path, "one", false, &labelled).await?.context("labelled")?;
            let named = with(say(&json!({"y": "1"})), "uid", json!("{uid}"));
            pair.apply(&path, "one", false, &named).await?.context("of this identity")?;
            pair.apply(&path, "one", false, &with(named.clone(), "uid", json!(NOBODY))).await?.unwrap_err();
            let none = with(with(named, "name", json!("none")), "uid", json!(NOBODY));
            pair.apply(&format!("{collection}/none"), "one", false, &none).await?.unwrap_err();
            // At a version that no object has, an apply makes an object or is refused: never is it about one that is there.
            let made = with(say(&json!({"y": "1"})), "resourceVersion", json!("9223372036854775807"));
            pair.apply(&path, "one", false, &made).await?.unwrap_err();
            pair.apply(&path, "four", true, &made).await?.unwrap_err();
            let made = with(made, "name", json!("new"));
            pair.apply(&format!("{collection}/new"), "one", false, &made).await?.context("made")?;
            pair.apply(&format!("{collection}/new"), "one", false, &made).await?.unwrap_err();
            let held = with(say(&json!({"y": "1"})), "finalizers", json!(["example.com/hold"]));
            pair.apply(&path, "one", false, &held).await?.context("held")?;
            pair.apply(&path, "one", false, &say(&json!({"y": "1"}))).await?.context("let go")?;
            // A map that says nothing leaves what others said of it, and owns nothing that another could contest.
            pair.apply(&path, "three", false, &say(&json!({}))).await?.context("nothing more")?;
            pair.apply(&path, "three", false, &say(&json!({}))).await?.context("the same nothing")?;
            let unnamed = Request::new(Method::Patch, ApiPath::split(&path))
                .body(Content::Apply, &say(&json!({"y": "1"})));
            pair.ask(&unnamed, None).await?.unwrap_err();
        }
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn deletions_are_held_conditional_and_answered_alike() {
    let mut pair = pair("delete").await;
    let (maps, widgets) = (pair.maps(), pair.widgets());
    let script = async {
        for (collection, object) in [(&maps, map("a", &json!({}))), (&widgets, widget("a", &json!({"x": 1})))]
        {
            let path = format!("{collection}/a");
            let background = json!({"propagationPolicy": "Background"});
            pair.create(collection, &object).await?.context("created")?;
            pair.delete(&path, &json!({"preconditions": {"uid": NOBODY}})).await?.unwrap_err();
            pair.delete(&path, &json!({"preconditions": {"resourceVersion": "1"}})).await?.unwrap_err();
            let exact = json!({"preconditions": {"uid": "{uid}", "resourceVersion": "{version}"}});
            pair.delete(&path, &exact).await?.context("deleted")?;
            pair.delete(&path, &background).await?.unwrap_err();

            let held = with(object.clone(), "finalizers", json!(["example.com/hold", "example.com/too"]));
            pair.create(collection, &held).await?.context("created")?;
            pair.delete(&path, &background).await?.context("held")?;
            pair.delete(&path, &background).await?.context("still held")?;
            pair.create(collection, &object).await?.unwrap_err();
            let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
            pair.patch(&path, Content::Merge, &more).await?.unwrap_err();
            let fewer =
                json!({"metadata": {"finalizers": ["example.com/too"], "resourceVersion": "{version}"}});
            pair.patch(&path, Content::Merge, &fewer).await?.context("one less")?;
            pair.patch(&path, Content::Merge, &json!({"metadata": {"finalizers": null}}))
                .await?
                .context("let go")?;
            pair.get(&path).await?.unwrap_err();

            pair.create(collection, &object).await?.context("another of that name")?;
            pair.delete(&path, &json!({"propagationPolicy": "Foreground"})).await?.context("deleted")?;
        }
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn lists_come_in_pages_selected_and_as_metadata_alike() {
    let mut pair = pair("list").await;
    let (maps, widgets) = (pair.maps(), pair.widgets());
    let script = async {
        for (collection, object) in [(&maps, map("a", &json!({}))), (&widgets, widget("a", &json!({"x": 1})))]
        {
            for (name, labels) in [
                ("a", json!({"k": "1", "t": "x"})),
                ("b", json!({"k": "2"})),
                ("c", json!({"k": "1"})),
                ("d", json!({})),
            ] {
                let object = with(with(object.clone(), "name", json!(name)), "labels", labels);
                pair.create(collection, &object).await?.context("created")?;
            }
            for selector in [
                "k",
                "!k",
                "k=1",
                "k==2",
                "k!=1",
                "k in (1,2)",
                "k in (1),t",
                "k notin (1)",
                "k=1,t!=x",
                "none",
            ] {
                let request = Request::new(Method::Get, ApiPath::split(collection))
                    .labels(&LabelSelector::whole(selector));
                pair.ask(&request, None).await?.context("selected")?;
                pair.ask(&request.metadata(), None).await?.context("selected, as metadata")?;
            }
            for name in ["b", "none,metadata.name!=none", r"a\", "b=c"] {
                let named =
                    Request::new(Method::Get, ApiPath::split(collection)).fields(&FieldSelector::name(name));
                pair.ask(&named, None).await?.context("by name")?;
            }
            pair.ask(&Request::new(Method::Get, ApiPath::split(&format!("{collection}/a"))).metadata(), None)
                .await?
                .context("one")?;
            // Where to go on is each server's own word.
            let first = Request::new(Method::Get, ApiPath::split(collection))
                .labels(&LabelSelector::has("k"))
                .query("limit", "2");
            pair.ask(&first, None).await?.context("the first page")?;
            let mut rest = Vec::new();
            for side in [&pair.real, &pair.memory] {
                let page = side.server.send(first.clone()).await?;
                let token = page["metadata"]["continue"].as_str().context("more pages")?;
                let next = side.server.send(first.clone().query("continue", token)).await?;
                ensure!(next["metadata"].get("continue").is_none_or(|token| token == ""), "{next}");
                rest.push(
                    next["items"]
                        .as_array()
                        .map(|items| items.iter().map(|i| i["metadata"]["name"].clone()).collect::<Vec<_>>()),
                );
            }
            ensure!(rest[0] == rest[1], "{rest:?}");
        }
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn a_namespace_drains_and_takes_nothing_in_alike() {
    let bed = BED.get().await.unwrap();
    let mut pair = Pair::new(bed, "drain").await.unwrap();
    let script = async {
        let namespace = "/api/v1/namespaces/draining";
        let maps = format!("{namespace}/configmaps");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "draining"}});
        pair.create("/api/v1/namespaces", &object).await?.context("created")?;
        pair.create("/api/v1/namespaces", &object).await?.unwrap_err();
        let held = with(map("held", &json!({})), "finalizers", json!(["example.com/hold"]));
        pair.create(&maps, &held).await?.context("created")?;
        pair.delete(namespace, &json!({})).await?.context("draining")?;
        pair.create(&maps, &map("late", &json!({}))).await?.unwrap_err();
        pair.apply(&format!("{maps}/late"), "one", true, &map("late", &json!({"x": "1"})))
            .await?
            .unwrap_err();
        pair.create("/api/v1/namespaces", &object).await?.unwrap_err();
        // The namespace controller has its own pace.
        let path = format!("{maps}/held");
        let marked = async {
            while pair
                .real
                .server
                .get_opt(ApiPath::split(&path))
                .await?
                .is_some_and(|o| o["metadata"].get("deletionTimestamp").is_none())
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_mins(1), marked).await??;
        pair.patch(&path, Content::Merge, &json!({"metadata": {"finalizers": null}}))
            .await?
            .context("let go")?;
        let gone = async {
            while pair.real.server.get_opt(namespace).await?.is_some() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_mins(1), gone).await??;
        pair.get(namespace).await?.unwrap_err();
        pair.create(&maps, &map("later", &json!({}))).await?.unwrap_err();
        anyhow::Ok(())
    };
    script.await.unwrap();
}
