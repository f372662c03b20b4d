//! Patches that are refused, with a sentence that says what to do.

use emco_engine::edits::{Patch, PatchError, check, patched};
use serde_json::{Value, json};

use crate::{deployment, pod_spec, refusal};

fn refused(patch: &Value) -> String {
    refusal(&deployment(), &Patch::Strategic(patch.clone()))
}

#[test]
fn a_strategic_merge_of_a_custom_kind_is_refused() {
    let object = json!({"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let patch = Patch::Strategic(json!({"spec": {}}));
    let expected = "a strategic merge patch is for kinds that are built into Kubernetes, and Widget of acme.io/v1 is not: \
                    use a JSON patch or a merge patch";
    assert_eq!(refusal(&object, &patch), expected);
    assert_eq!(check("acme.io/v1", "Widget", &patch).unwrap_err().to_string(), expected);
    assert!(check("v1", "Deployment", &patch).is_err(), "a kind of another group");
    for (api_version, kind) in
        [("v1", "ConfigMap"), ("apps/v1", "StatefulSet"), ("rbac.authorization.k8s.io/v1", "Role")]
    {
        check(api_version, kind, &patch).unwrap();
    }
}

#[test]
fn an_edit_that_changes_the_identity_is_refused_by_its_field() {
    let cases = [
        ("apiVersion", json!({"apiVersion": "v1"})),
        ("kind", json!({"kind": "DaemonSet"})),
        ("metadata.name", json!({"metadata": {"name": "other"}})),
        ("metadata.name", json!({"metadata": null})),
        ("metadata.namespace", json!({"metadata": {"namespace": null}})),
    ];
    for (field, patch) in cases {
        for patch in [Patch::Merge(patch.clone()), Patch::Strategic(patch.clone())] {
            assert_eq!(patched(&deployment(), &patch).unwrap_err(), PatchError::Identity { field });
        }
    }
    let replaced = json!({"op": "replace", "path": "", "value": {}});
    let error = patched(&deployment(), &Patch::Json(vec![replaced])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the patch changes apiVersion, and so which object this is: leave apiVersion out of the patch"
    );
    let version = Patch::Merge(json!({"apiVersion": "apps/v2"}));
    assert_eq!(
        patched(&deployment(), &version).unwrap()["apiVersion"],
        "apps/v2",
        "the same object in another version"
    );
}

#[test]
fn a_patch_that_is_no_map_is_refused() {
    let expected = "the merge patch is no map: write the fields that it changes, as the object has them";
    assert_eq!(refusal(&deployment(), &Patch::Merge(json!([]))), expected);
    assert!(
        refusal(&deployment(), &Patch::Strategic(json!("x")))
            .starts_with("the strategic merge patch is no map")
    );
}

#[test]
fn an_unknown_directive_is_refused() {
    assert_eq!(
        refused(&json!({"spec": {"$patsch": "replace"}})),
        "spec.$patsch of the strategic merge patch: there is no such directive; there are $patch, $retainKeys, \
         $setElementOrder/FIELD and $deleteFromPrimitiveList/FIELD"
    );
    assert_eq!(
        refused(&json!({"spec": {"strategy": {"$patch": "remove"}}})),
        "spec.strategy of the strategic merge patch: $patch has to be replace, delete or merge"
    );
}

#[test]
fn an_item_without_its_merge_key_is_refused() {
    assert_eq!(
        refused(&pod_spec(&json!({"containers": [{"image": "web:2"}]}))),
        "spec.template.spec.containers of the strategic merge patch: an item has no name, by which items of this list are merged"
    );
    assert!(
        refused(&pod_spec(&json!({"containers": ["web"]}))).contains("every item has to be a map with name")
    );
}

#[test]
fn deleting_from_a_list_that_is_replaced_is_refused() {
    let said = refused(&pod_spec(&json!({"tolerations": [{"key": "edge", "$patch": "delete"}]})));
    assert!(said.contains("replaces this list as a whole"), "{said}");
}

#[test]
fn an_order_that_lacks_an_item_of_the_patch_is_refused() {
    let patch = json!({"$setElementOrder/containers": [{"name": "web"}], "containers": [{"name": "log"}]});
    assert!(refused(&pod_spec(&patch)).contains("list all of them"));
}

#[test]
fn a_field_that_retained_keys_lack_is_refused() {
    let said = refused(&json!({"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}}));
    assert_eq!(
        said,
        "spec.strategy.type of the strategic merge patch: $retainKeys beside it does not name this field: add it there"
    );
}

#[test]
fn a_patch_that_nests_too_deep_is_refused() {
    let nested = (0..130).fold(json!(1), |inner, _| json!({"a": inner}));
    let operation = json!({"op": "add", "path": "/spec/x", "value": nested.clone()});
    for patch in
        [Patch::Merge(nested.clone()), Patch::Strategic(nested.clone()), Patch::Json(vec![operation])]
    {
        assert_eq!(patched(&deployment(), &patch).unwrap_err(), PatchError::TooDeep);
        assert_eq!(check("v1", "ConfigMap", &patch).unwrap_err(), PatchError::TooDeep);
    }
    let mut operations = vec![json!({"op": "add", "path": "/x", "value": {}})];
    operations.extend((0..130).map(|_| json!({"op": "copy", "from": "/x", "path": "/x/x"})));
    assert_eq!(patched(&deployment(), &Patch::Json(operations)).unwrap_err(), PatchError::TooDeep);
}

#[test]
fn a_message_quotes_no_value_and_no_endless_path() {
    let long = "x".repeat(10_000);
    let operation = json!({"op": "test", "path": format!("/{long}"), "value": "secret"});
    let said = refusal(&deployment(), &Patch::Json(vec![operation]));
    assert!(said.len() < 400 && !said.contains("secret"), "{said}");
}
