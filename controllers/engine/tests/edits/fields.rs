//! Maps: merge patches, and what strategic merge patches do beside lists.

use emco_engine::edits::{Patch, patched};
use serde_json::json;

use crate::{deployment, merged, strategic};

#[test]
fn a_merge_patch_sets_fields_removes_null_and_replaces_lists() {
    let patch = json!({
        "metadata": {"labels": {"app": null, "tier": "front"}},
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}], "volumes": null}}},
    });
    let result = patched(&deployment(), &Patch::Merge(patch)).unwrap();
    assert_eq!(result["metadata"]["labels"], json!({"tier": "front"}));
    let spec = &result["spec"]["template"]["spec"];
    assert_eq!(spec["containers"], json!([{"name": "web", "image": "web:2"}]));
    assert!(spec.get("volumes").is_none());
    assert_eq!(result["spec"]["replicas"], json!(2));
}

#[test]
fn numbers_stay_as_they_are_written() {
    let mut object = deployment();
    object["spec"]["big"] = json!(18_446_744_073_709_551_615_u64);
    object["spec"]["float"] = json!(1.0);
    for patch in [Patch::Merge(json!({"spec": {"x": 0.1}})), Patch::Strategic(json!({"spec": {"x": 0.1}}))] {
        let result = patched(&object, &patch).unwrap();
        assert_eq!(result["spec"]["big"].to_string(), "18446744073709551615");
        assert_eq!(result["spec"]["float"].to_string(), "1.0");
        assert_eq!(result["spec"]["x"].to_string(), "0.1");
    }
}

#[test]
fn a_strategic_null_removes_a_field_and_adds_none() {
    let result =
        strategic(&json!({"spec": {"replicas": null, "paused": null, "selector": {"a": null, "b": 1}}}));
    assert!(result["spec"].get("replicas").is_none());
    assert!(result["spec"].get("paused").is_none());
    assert_eq!(result["spec"]["selector"], json!({"b": 1}));
}

#[test]
fn a_map_is_replaced_or_emptied_where_the_patch_says_so() {
    let replaced = strategic(&json!({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}));
    assert_eq!(replaced["spec"]["strategy"], json!({"type": "Recreate"}));
    let emptied = strategic(&json!({"spec": {"strategy": {"$patch": "delete"}}}));
    assert_eq!(emptied["spec"]["strategy"], json!({}));
    let merged = strategic(&json!({"spec": {"strategy": {"$patch": "merge", "type": "Recreate"}}}));
    assert_eq!(merged["spec"]["strategy"], json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}));
}

#[test]
fn a_map_with_a_directive_for_what_is_not_there_adds_nothing() {
    // As kubectl and API servers of Kubernetes 1.36 have it.
    let result = strategic(&json!({"spec": {"selector": {"$patch": "replace", "matchLabels": {"a": "b"}}}}));
    assert!(result["spec"].get("selector").is_none());
}

#[test]
fn retained_keys_remove_every_other_field() {
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(strategic(&patch)["spec"]["strategy"], json!({"type": "Recreate"}));
    let volumes = json!({"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "data", "hostPath": {"path": "/d"}}]});
    assert_eq!(merged(&volumes)["volumes"], json!([{"name": "data", "hostPath": {"path": "/d"}}]));
}

#[test]
fn a_selector_of_a_disruption_budget_is_replaced_as_a_whole() {
    let object = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let patch = json!({"spec": {"selector": {"matchLabels": {"tier": "front"}}}});
    let result = patched(&object, &Patch::Strategic(patch)).unwrap();
    assert_eq!(result["spec"]["selector"], json!({"matchLabels": {"tier": "front"}}));
}

#[test]
fn no_directive_is_left_in_what_a_patch_adds() {
    let volume = json!({"volumes": [{"$retainKeys": ["name", "emptyDir"], "name": "new", "emptyDir": {}}]});
    assert_eq!(merged(&volume)["volumes"][0], json!({"name": "new", "emptyDir": {}}));
}
