use serde_json::json;

use super::*;

fn only(document: Value) -> Value {
    let mut out = normalise(document);
    assert_eq!(out.objects.len(), 1, "{:?}", out.objects);
    out.objects.remove(0)
}

#[test]
fn what_a_server_sets_is_dropped() {
    insta::assert_json_snapshot!(only(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": null, "uid": "1", "resourceVersion": "2", "creationTimestamp": null,
            "managedFields": [], "generation": 3, "selfLink": "/x", "labels": {"app": "web", "tier": null},
            "annotations": null, "ownerReferences": null,
        },
        "spec": {"template": {
            "metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
        "status": {"replicas": 1},
    })));
}

#[test]
fn lists_are_expanded_and_members_of_typed_lists_know_what_they_are() {
    insta::assert_json_snapshot!(
        normalise(json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMapList", "items": [
                {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "data": {"k": "v"}},
            ]},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "resourceVersion": "7"}},
            null,
            "text",
        ]}))
        .objects
    );
}

#[test]
fn a_kind_that_only_ends_in_list_is_an_object() {
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}, "spec": {}});
    assert_eq!(only(object.clone()), object);
}

#[test]
fn string_data_becomes_data_and_wins() {
    let secret = only(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "b2xk", "b": "eA=="}, "stringData": {"a": "new", "c": null},
    }));
    assert_eq!(
        secret,
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"a": "bmV3", "b": "eA==", "c": ""},
        })
    );
    // A custom resource of the same kind keeps its own field.
    let other = json!({"apiVersion": "x.example/v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
    assert_eq!(only(other.clone()), other);
}

#[test]
fn a_generated_name_stays_while_the_content_does() {
    let job = |image: &str| json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "migrate-"}, "spec": {"image": image}});
    let name = |v: Value| only(v)["metadata"]["name"].as_str().unwrap().to_owned();
    let first = name(job("a"));
    assert!(first.starts_with("migrate-") && first.len() == 16, "{first}");
    assert_eq!(first, name(job("a")));
    assert_ne!(first, name(job("b")));
    let mut named = job("a");
    named["metadata"]["name"] = json!("fixed");
    assert_eq!(only(named)["metadata"], json!({"name": "fixed"}));
    let mut long = job("a");
    long["metadata"]["generateName"] = json!("é".repeat(60));
    assert!(name(long).len() <= 63);
}

#[test]
fn the_last_of_two_list_entries_of_one_key_wins_with_a_warning() {
    let out = normalise(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop", "finalizers": ["a", "a"]},
        "spec": {"template": {"spec": {
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "configMap": {"name": "c"}}],
            "initContainers": [{"name": "i", "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]}],
            "containers": [{
                "name": "c",
                "env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}],
                "ports": [
                    {"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"},
                    {"containerPort": 53, "protocol": "TCP", "name": "dns"},
                ],
                "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}],
            }],
        }}},
    }));
    insta::assert_json_snapshot!(json!({"objects": out.objects, "warnings": out.warnings}));
}

#[test]
fn a_cron_job_and_a_service_are_made_unique_too() {
    let cron = only(
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {
        "template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]}}}}}}),
    );
    assert_eq!(
        cron.pointer("/spec/jobTemplate/spec/template/spec/containers/0/env").unwrap(),
        &json!([{"name": "A", "value": "2"}])
    );
    let service = only(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}, {"port": 53, "name": "x"}]}}));
    assert_eq!(service["spec"]["ports"], json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "name": "x"}]));
}

#[test]
fn entries_without_a_key_are_left_for_the_server_to_judge() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"image": "a"}, {"image": "b"}], "volumes": "text"}});
    assert_eq!(only(pod.clone()), pod);
}

#[test]
fn normalising_twice_changes_nothing() {
    let once = normalise(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-", "labels": {"a": null}},
        "stringData": {"a": "b"}, "status": {},
    }));
    assert_eq!(normalise(once.objects[0].clone()).objects, once.objects);
}

#[test]
fn a_document_that_is_no_object_is_left_out_with_a_warning() {
    assert_eq!(normalise(Value::Null), Normalised::default());
    assert_eq!(normalise(json!("x")).warnings, ["a document that is a text and no object was left out"]);
}

#[test]
fn what_a_kept_list_holds_is_kept() {
    let item = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let kept = normalise(json!({
        "apiVersion": "v1", "kind": "List", "metadata": {"annotations": {RESOURCE_POLICY: " Keep"}},
        "items": [item("a"), {"apiVersion": "v1", "kind": "List", "items": [item("b")]},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "annotations": null}}],
    }));
    assert_eq!(kept.objects.len(), 3);
    for object in &kept.objects {
        assert_eq!(object["metadata"]["annotations"], json!({RESOURCE_POLICY: "keep"}));
        assert!(is_marked_to_stay(object.as_object().unwrap()));
    }
    let plain = normalise(json!({"apiVersion": "v1", "kind": "List", "items": [item("a")]}));
    assert_eq!(plain.objects, [item("a")]);
}
