//! Lists in strategic merge patches: merge keys, order and directives, as `kubectl patch --type strategic --local` has them.

use emco_engine::edits::{Patch, patched};
use serde_json::json;

use crate::{deployment, merged, names, strategic};

#[test]
fn a_container_is_changed_by_its_name() {
    let spec = merged(&json!({"containers": [{"name": "log", "image": "log:2"}]}));
    assert_eq!(names(&spec["containers"]), ["web", "log"]);
    assert_eq!(spec["containers"][1], json!({"name": "log", "image": "log:2"}));
    assert_eq!(spec["containers"][0], deployment()["spec"]["template"]["spec"]["containers"][0]);
}

#[test]
fn what_a_patch_adds_comes_before_what_it_does_not_name() {
    let spec = merged(&json!({"containers": [{"name": "new", "image": "new:1"}]}));
    assert_eq!(names(&spec["containers"]), ["new", "web", "log"]);
}

#[test]
fn named_items_are_in_the_order_of_the_patch() {
    let spec = merged(&json!({"containers": [{"name": "log"}, {"name": "new"}, {"name": "web"}]}));
    assert_eq!(names(&spec["containers"]), ["log", "new", "web"]);
}

#[test]
fn lists_below_merged_items_are_merged_by_keys_of_their_own() {
    let patch = json!({"containers": [{
        "name": "web",
        "args": ["--three"],
        "env": [{"name": "B", "value": "3"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "volumeMounts": [{"mountPath": "/data", "name": "data"}],
    }]});
    let web = merged(&patch)["containers"][0].clone();
    assert_eq!(web["args"], json!(["--three"]), "a list without a merge key is replaced");
    assert_eq!(web["env"], json!([{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]));
    assert_eq!(web["ports"], json!([{"containerPort": 80, "name": "http", "protocol": "TCP"}]));
    assert_eq!(web["volumeMounts"], json!([{"mountPath": "/data", "name": "data"}]));
}

#[test]
fn tolerations_are_replaced_as_a_whole() {
    let spec = merged(&json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]}));
    assert_eq!(spec["tolerations"], json!([{"key": "gpu", "operator": "Exists"}]));
}

#[test]
fn an_item_is_deleted_by_its_key() {
    let spec = merged(
        &json!({"containers": [{"name": "web", "$patch": "delete"}, {"name": "gone", "$patch": "delete"}]}),
    );
    assert_eq!(names(&spec["containers"]), ["log"]);
}

#[test]
fn a_merged_list_is_replaced_where_the_patch_says_so() {
    let spec = merged(&json!({"containers": [{"$patch": "replace"}, {"name": "new", "image": "new:1"}]}));
    assert_eq!(spec["containers"], json!([{"name": "new", "image": "new:1"}]));
}

#[test]
fn the_order_of_a_list_is_set() {
    let order = json!([{"name": "log"}, {"name": "new"}, {"name": "web"}]);
    let spec = merged(&json!({"$setElementOrder/containers": order, "containers": [{"name": "new"}]}));
    assert_eq!(names(&spec["containers"]), ["log", "new", "web"]);
    let spec = merged(&json!({"$setElementOrder/containers": [{"name": "log"}, {"name": "web"}]}));
    assert_eq!(names(&spec["containers"]), ["log", "web"]);
}

#[test]
fn what_comes_for_what_goes_is_after_what_stays_in_a_set_order() {
    // Go appends in the memory that the deleted item left, and looks for the order before in it.
    let patch = json!({
        "$setElementOrder/containers": [{"name": "new"}],
        "containers": [{"name": "web", "$patch": "delete"}, {"name": "new"}],
    });
    assert_eq!(names(&merged(&patch)["containers"]), ["log", "new"]);
}

#[test]
fn finalizers_are_merged_and_taken_out_as_values() {
    let added = strategic(&json!({"metadata": {"finalizers": ["a/2", "a/3"]}}));
    assert_eq!(added["metadata"]["finalizers"], json!(["a/1", "a/2", "a/3"]));
    let removed = strategic(&json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1", "a/9"]}}));
    assert_eq!(removed["metadata"]["finalizers"], json!(["a/2"]));
}

#[test]
fn ports_of_services_are_merged_by_their_port() {
    let object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]},
    });
    let patch = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}});
    let result = patched(&object, &Patch::Strategic(patch)).unwrap();
    let ports = json!([{"port": 80, "name": "http"}, {"port": 443, "name": "https", "targetPort": 8443}]);
    assert_eq!(result["spec"]["ports"], ports);
}

#[test]
fn webhooks_and_conditions_are_merged_by_name_and_type() {
    let hooks = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "h"},
        "webhooks": [{"name": "a", "timeoutSeconds": 1}, {"name": "b"}],
    });
    let patch = json!({"webhooks": [{"name": "a", "failurePolicy": "Ignore"}]});
    let result = patched(&hooks, &Patch::Strategic(patch)).unwrap();
    assert_eq!(
        result["webhooks"],
        json!([{"name": "a", "timeoutSeconds": 1, "failurePolicy": "Ignore"}, {"name": "b"}])
    );
    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": {"initContainers": [{"name": "i", "image": "i:1"}]}}}}},
    });
    let patch = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"initContainers": [{"name": "i", "tty": true}]}}}}}});
    let result = patched(&cron, &Patch::Strategic(patch)).unwrap();
    let spec = &result["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    assert_eq!(spec["initContainers"], json!([{"name": "i", "image": "i:1", "tty": true}]));
}
