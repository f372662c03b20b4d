//! What is compared otherwise than by one answer: watches, and the ownership of a workload's fields.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use emco_controllers::api::{ApiError, ApiServerExt as _, Content, Method, Request, WatchEvent};
use emco_engine::path::ApiPath;
use emco_engine::selector::LabelSelector;
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::pair::{BED, Pair};
use super::scripts::{map, pair, with};

#[tokio::test]
async fn a_watch_tells_the_same_changes() {
    let pair = pair("watch").await;
    let maps = pair.maps();
    let script = async {
        let mut told = Vec::new();
        for side in [&pair.real, &pair.memory] {
            let server = &side.server;
            server.create(ApiPath::split(&maps), &map("before", &json!({}))).await?;
            let list = server.send(Request::new(Method::Get, ApiPath::split(&maps))).await?;
            let since = list["metadata"]["resourceVersion"].as_str().context("a version")?.to_owned();
            let request = Request::new(Method::Get, ApiPath::split(&maps))
                .query("resourceVersion", since)
                .labels(&LabelSelector::is("k", "1"));
            let mut events = server.watch(request).await?;
            let path_of = |name: &str| format!("{maps}/{name}");
            let (path, yes, no) = (path_of("a"), json!({"k": "1"}), json!({"k": "2"}));
            server.create(ApiPath::split(&maps), &with(map("a", &json!({})), "labels", yes.clone())).await?;
            server
                .create(ApiPath::split(&maps), &with(map("unseen", &json!({})), "labels", no.clone()))
                .await?;
            server.merge(ApiPath::split(&path), &json!({"data": {"x": "1"}})).await?;
            server.merge(ApiPath::split(&path), &json!({"data": {"x": "1"}})).await?;
            // Out of the selection, and into it again.
            server.merge(ApiPath::split(&path), &json!({"metadata": {"labels": no}})).await?;
            server
                .merge(
                    ApiPath::split(&path),
                    &json!({"metadata": {"labels": yes, "finalizers": ["example.com/hold"]}}),
                )
                .await?;
            server.delete(ApiPath::split(&path), None, None).await?;
            server.merge(ApiPath::split(&path), &json!({"metadata": {"finalizers": null}})).await?;
            // Nothing holds this one.
            server.merge(ApiPath::split(&path_of("unseen")), &json!({"metadata": {"labels": yes}})).await?;
            server.delete(ApiPath::split(&path_of("unseen")), None, None).await?;
            server.create(ApiPath::split(&maps), &with(map("last", &json!({})), "labels", yes)).await?;
            let (mut seen, mut versions) = (Vec::new(), Vec::new());
            let reading = async {
                while let Some(event) = events.next().await {
                    let (what, object) = match event? {
                        WatchEvent::Applied(object) => ("applied", object),
                        WatchEvent::Deleted(object) => ("deleted", object),
                        WatchEvent::Bookmark(_) => continue,
                    };
                    let metadata = &object["metadata"];
                    let deleting = metadata.get("deletionTimestamp").is_some();
                    seen.push(format!(
                        "{what} {} {} {} {deleting} {}",
                        metadata["name"], metadata["labels"], metadata["finalizers"], object["data"]
                    ));
                    let version = metadata["resourceVersion"].as_str().context("a version")?;
                    versions.push(version.parse::<u64>()?);
                    if metadata["name"] == "last" {
                        break;
                    }
                }
                anyhow::Ok(())
            };
            tokio::time::timeout(Duration::from_secs(30), reading).await??;
            // Each event, of a deletion too, is a point from which another watch could go on.
            ensure!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
            told.push(seen);
        }
        ensure!(told[0] == told[1], "real {:#?}\nmemory {:#?}", told[0], told[1]);
        ensure!(told[0].len() == 9, "{:#?}", told[0]);
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn what_an_apply_owns_of_a_workload_is_written_alike() {
    let bed = BED.get().await.unwrap();
    let pair = Pair::new(bed, "workload").await.unwrap();
    let deployment = |image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "c", "image": image, "ports": [{"containerPort": 80}],
                 "env": [{"name": "E", "value": "1"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                 "args": ["a", "b"], "resources": {"limits": {"memory": "1Gi"}},
                 "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            ], "imagePullSecrets": [{"name": "p"}], "nodeSelector": {"n": "o"}, "volumes": [{"name": "v", "emptyDir": {}}]}},
        }})
    };
    let script = async {
        let path = "/apis/apps/v1/namespaces/workload/deployments/w";
        let mut told = Vec::new();
        for side in [&pair.real, &pair.memory] {
            let apply = |manager: &str, image: &str| {
                Request::new(Method::Patch, ApiPath::split(path))
                    .query("fieldManager", manager)
                    .body(Content::Apply, &deployment(image))
            };
            let made = side.server.send(apply("one", "i")).await?;
            let entries = made["metadata"]["managedFields"].as_array().context("entries")?.clone();
            let ours = entries.into_iter().find(|entry| entry["manager"] == "one").context("an entry")?;
            let refused = side.server.send(apply("two", "j")).await.err().context("a conflict")?;
            told.push((plain(&ours["fieldsV1"]), refused.code(), refused.to_string()));
        }
        ensure!(told[0] == told[1], "{told:#?}");
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn a_dry_run_tells_what_an_apply_would_come_to_and_stores_nothing() {
    let pair = pair("dry").await;
    let path = format!("{}/a", pair.maps());
    let script = async {
        let mut told = Vec::new();
        for side in [&pair.real, &pair.memory] {
            let apply = |manager: &str, force: bool, dry: bool, value: &str| {
                let mut request = Request::new(Method::Patch, ApiPath::split(&path))
                    .query("fieldManager", manager)
                    .query("force", force.to_string());
                if dry {
                    request = request.query("dryRun", "All");
                }
                request.body(Content::Apply, &map("a", &json!({"x": value})))
            };
            let made = side.server.send(apply("one", false, false, "1")).await?;
            let tried = side.server.send(apply("two", true, true, "2")).await?;
            let refused =
                side.server.send(apply("two", false, true, "2")).await.err().context("a conflict")?;
            let now = side.server.send(Request::new(Method::Get, ApiPath::split(&path))).await?;
            ensure!(now["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"], "{now}");
            let same = tried["metadata"]["uid"] == made["metadata"]["uid"];
            told.push((tried["data"].clone(), same, refused.to_string(), now["data"].clone()));
        }
        ensure!(told[0] == told[1], "{told:#?}");
        anyhow::Ok(())
    };
    script.await.unwrap();
}

#[tokio::test]
async fn fields_that_cannot_be_changed_are_refused_in_the_same_words() {
    let pair = pair("fixed").await;
    let template = |image: &str| {
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "restartPolicy": "Always", "containers": [{"name": "c", "image": image}]}})
    };
    let labels = |value: &str| json!({"matchLabels": {"a": "b", "t": value}});
    let of = |kind: &str, value: &str| {
        let (api_version, plural, body) = match kind {
            "Deployment" | "DaemonSet" => {
                let mut template = template("i");
                template["metadata"]["labels"]["t"] = json!(value);
                let plural = if kind == "Deployment" { "deployments" } else { "daemonsets" };
                ("apps/v1", plural, json!({"spec": {"selector": labels(value), "template": template}}))
            }
            "StatefulSet" => {
                let selector = json!({"matchLabels": {"a": "b"}});
                let spec = json!({"selector": selector, "serviceName": value, "template": template("i")});
                ("apps/v1", "statefulsets", json!({"spec": spec}))
            }
            "Secret" => ("v1", "secrets", json!({"type": format!("example.com/{value}")})),
            "RoleBinding" => {
                let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": value});
                ("rbac.authorization.k8s.io/v1", "rolebindings", json!({"roleRef": role}))
            }
            _ => {
                let mut template = template(value);
                template["spec"]["restartPolicy"] = json!("Never");
                ("batch/v1", "jobs", json!({"spec": {"template": template}}))
            }
        };
        let mut object = body;
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "x"});
        let root = if api_version == "v1" { "api" } else { "apis" };
        (format!("/{root}/{api_version}/namespaces/fixed/{plural}/x"), object)
    };
    let script = async {
        for kind in ["Deployment", "DaemonSet", "StatefulSet", "Secret", "RoleBinding", "Job"] {
            let mut told = Vec::new();
            for side in [&pair.real, &pair.memory] {
                let apply = |value: &str| {
                    let (path, object) = of(kind, value);
                    let request =
                        Request::new(Method::Patch, ApiPath::split(&path)).query("fieldManager", "one");
                    request.body(Content::Apply, &object)
                };
                side.server.send(apply("one")).await?;
                let refused = side.server.send(apply("two")).await.err().context("a refusal")?;
                let ApiError::Status { code, causes, .. } = refused else { anyhow::bail!("{refused}") };
                // Built-in kinds are validated twice, and then say everything twice.
                let causes: BTreeSet<(String, String)> = causes.into_iter().collect();
                told.push((code, causes));
            }
            ensure!(told[0] == told[1], "{kind}: {told:#?}");
        }
        anyhow::Ok(())
    };
    script.await.unwrap();
}

/// Without the dots, which say that an item itself is owned.
fn plain(fields: &Value) -> Value {
    match fields {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != ".")
            .map(|(key, value)| (key.clone(), plain(value)))
            .collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn a_second_member_of_a_union_is_refused_in_the_same_words() {
    let pair = pair("unions").await;
    let web = |strategy: &Value, volume: &Value, probe: &Value| {
        let mut web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"volumes": [volume],
                "containers": [{"name": "c", "image": "i", "livenessProbe": probe}]}}}});
        if !strategy.is_null() {
            web["spec"]["strategy"] = strategy.clone();
        }
        web
    };
    let (strategy, volume, probe) =
        (Value::Null, json!({"name": "v"}), json!({"httpGet": {"path": "/", "port": 80}}));
    let script = async {
        let path = "/apis/apps/v1/namespaces/unions/deployments/w";
        let mut told = Vec::new();
        for side in [&pair.real, &pair.memory] {
            let apply = |manager: &str, object: &Value| {
                let request =
                    Request::new(Method::Patch, ApiPath::split(path)).query("fieldManager", manager);
                side.server.send(request.body(Content::Apply, object))
            };
            let first = web(&strategy, &volume, &probe);
            apply("two", &first).await?;
            let made = apply("one", &first).await?;
            let mut all =
                vec![json!(made["spec"]["strategy"]), json!(made["spec"]["template"]["spec"]["volumes"])];
            for second in [
                web(&json!({"type": "Recreate"}), &volume, &probe),
                web(&json!({"type": "Recreate", "rollingUpdate": null}), &volume, &probe),
                web(&strategy, &json!({"name": "v", "configMap": {"name": "x"}}), &probe),
                web(&strategy, &volume, &json!({"tcpSocket": {"port": 80}})),
            ] {
                let refused = apply("one", &second).await.err().context("a refusal")?;
                let ApiError::Status { code, causes, .. } = refused else { anyhow::bail!("{refused}") };
                let causes: BTreeSet<(String, String)> = causes.into_iter().collect();
                all.push(json!([code, causes]));
            }
            told.push(all);
        }
        ensure!(told[0] == told[1], "{told:#?}");
        anyhow::Ok(())
    };
    script.await.unwrap();
}
