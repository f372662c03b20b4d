//! Marks a manifest as its owner's before it is sent to an edge, and makes the patch that removes the marks.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use emco_crds::OwnerKind;
use emco_crds::names::{annotation, label, manager};

pub mod made;

/// The owner hash: first 32 hexadecimal digits of SHA-256 over installation, kind, namespace and name of the owner.
pub fn owner_hash(installation: &str, kind: &OwnerKind, namespace: &str, name: &str) -> String {
    let mut hash = hex::encode(Sha256::digest([installation, kind.as_str(), namespace, name].join("\0")));
    hash.truncate(32);
    hash
}

/// Field manager of an owner's applies on edges: two owners, or two hubs, are two managers.
pub fn field_manager(owner_hash: &str) -> String {
    format!("{}{owner_hash}", manager::EDGE_PREFIX)
}

/// Marks that change what becomes of an object when it is removed. We say them of what we found on a cluster; in a manifest they are its
/// author's, and would let it outlive its owner.
const OF_LIVE: [&str; 2] = [annotation::ADOPTED, annotation::MADE_FOR];

/// Puts our label and annotations on the top-level metadata; pod templates stay as they are, or a new revision would
/// restart every pod. Marks of ours that the manifest brings are not sent.
pub fn mark(mut manifest: Value, owner_hash: &str, digest: &str, placed_by: &str) -> Value {
    let metadata = manifest.as_object_mut().and_then(|object| map_in(object, "metadata"));
    if let Some(metadata) = metadata {
        if let Some(labels) = map_in(metadata, "labels") {
            labels.insert(label::OWNER.to_owned(), Value::from(owner_hash));
        }
        if let Some(annotations) = map_in(metadata, "annotations") {
            annotations.retain(|key, _| !OF_LIVE.contains(&key.as_str()));
            annotations.insert(annotation::MANIFEST.to_owned(), Value::from(digest));
            annotations.insert(annotation::PLACED_BY.to_owned(), Value::from(placed_by));
        }
    }
    manifest
}

/// Says of a marked manifest that its object was there before: it is released on removal, never deleted.
pub fn adopt(mut marked: Value) -> Value {
    let metadata = marked.as_object_mut().and_then(|object| map_in(object, "metadata"));
    if let Some(annotations) = metadata.and_then(|metadata| map_in(metadata, "annotations")) {
        annotations.insert(annotation::ADOPTED.to_owned(), Value::from("true"));
    }
    marked
}

/// The map under a key; anything else that stood there makes room for one.
fn map_in<'a>(parent: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let slot = parent.entry(key).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

/// The owner hash on a live object, if it carries one. Takes the object or a partial one with `metadata`.
pub fn owner_of(live: &Value) -> Option<&str> {
    live.get("metadata")?.get("labels")?.get(label::OWNER)?.as_str()
}

/// The manifest digest on a live object, if it carries one.
pub fn manifest_of(live: &Value) -> Option<&str> {
    live.get("metadata")?.get("annotations")?.get(annotation::MANIFEST)?.as_str()
}

/// Whether the object was there before us: released on removal, never deleted.
pub fn is_adopted(live: &Value) -> bool {
    let annotations = live.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.is_some_and(|a| a.get(annotation::ADOPTED).is_some_and(Value::is_string))
}

/// A JSON patch that lets go of a live object without touching its content: our label, our annotations and our entries in
/// `managedFields` leave. It applies to exactly this object at exactly this version (tests of uid and resourceVersion).
///
/// `None` when there is nothing of this owner to take off, or the object names no uid and resourceVersion.
pub fn release_patch(live: &Value, owner_hash: &str) -> Option<Patch> {
    let metadata = live.get("metadata")?;
    let (uid, version) = (metadata.get("uid")?.as_str()?, metadata.get("resourceVersion")?.as_str()?);
    let mut operations = Vec::new();
    // Annotations say whose they are only through the label: another owner's stay.
    let owner = owner_of(live);
    if owner == Some(owner_hash) {
        operations.push(remove(["metadata", "labels", label::OWNER]));
        if made::proof_on(live).is_some() {
            operations.push(remove(["metadata", "annotations", annotation::MADE_FOR]));
        }
    }
    if owner.is_none_or(|owner| owner == owner_hash) {
        for key in [annotation::MANIFEST, annotation::PLACED_BY, annotation::ADOPTED] {
            if metadata["annotations"].get(key).is_some() {
                operations.push(remove(["metadata", "annotations", key]));
            }
        }
    }
    operations.extend(forget_fields(metadata, &field_manager(owner_hash)));
    if operations.is_empty() {
        return None;
    }
    let mut all = vec![test(["metadata", "uid"], uid), test(["metadata", "resourceVersion"], version)];
    all.append(&mut operations);
    Some(Patch(all))
}

/// The same of a namespace that was made for the owner: from then on it carries the proof, by which it is taken again.
pub fn release_made_patch(live: &Value, owner_hash: &str, proof: &str) -> Option<Patch> {
    let Patch(mut operations) = release_patch(live, owner_hash)?;
    for operation in &mut operations {
        // Where nobody has a field, the next apply gives all there are to `before-first-apply`: what we drop later would stay.
        if let PatchOperation::Replace(entries) = operation {
            entries.value = json!([entry_of_proof()]);
        }
    }
    let has_annotations = live.pointer("/metadata/annotations").is_some_and(Value::is_object);
    operations.push(if has_annotations {
        add(["metadata", "annotations", annotation::MADE_FOR], Value::from(proof))
    } else {
        add(["metadata", "annotations"], json!({(annotation::MADE_FOR): proof}))
    });
    Some(Patch(operations))
}

/// What `managedFields` says of the proof.
fn entry_of_proof() -> Value {
    let proof = format!("f:{}", annotation::MADE_FOR);
    json!({
        "manager": manager::RELEASE, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {(proof): {}}}},
    })
}

/// Removes the manager's entries, last first so that the places of the others hold. An empty list would be ignored by the
/// API server (it protects against clients that know nothing of the field); one empty entry is its word for "none".
fn forget_fields(metadata: &Value, manager: &str) -> Vec<PatchOperation> {
    let Some(entries) = metadata["managedFields"].as_array() else { return Vec::new() };
    let ours: Vec<usize> =
        entries.iter().enumerate().filter(|(_, e)| e["manager"] == manager).map(|(i, _)| i).collect();
    if !ours.is_empty() && ours.len() == entries.len() {
        let path = pointer(["metadata", "managedFields"]);
        return vec![PatchOperation::Replace(ReplaceOperation { path, value: json!([{}]) })];
    }
    ours.into_iter().rev().map(|i| remove(["metadata", "managedFields", &i.to_string()])).collect()
}

fn pointer<'a>(tokens: impl IntoIterator<Item = &'a str>) -> PointerBuf {
    PointerBuf::from_tokens(tokens)
}

fn add<'a>(tokens: impl IntoIterator<Item = &'a str>, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: pointer(tokens), value })
}

fn remove<'a>(tokens: impl IntoIterator<Item = &'a str>) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: pointer(tokens) })
}

fn test<'a>(tokens: impl IntoIterator<Item = &'a str>, value: &str) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: pointer(tokens), value: Value::from(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_hash_does_not_move_between_releases() {
        // Format 1, as on the edges. A failure here means that every edge object would become foreign.
        assert_eq!(
            owner_hash("inst", &OwnerKind::DeploymentIntentGroup, "team-a", "shop"),
            "ade79496f44871bd7cfed7e66027dfe1"
        );
        let of = |kind: &str, namespace| owner_hash("i", &OwnerKind::from(kind), namespace, "c");
        assert_ne!(of("a", "b"), of("ab", ""));
    }

    #[test]
    fn marks_go_to_the_top_level_only() {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": null},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}}}});
        let marked = mark(manifest.clone(), "hash", "digest", "team-a/shop");
        assert_eq!(
            marked["metadata"],
            json!({"name": "web", "labels": {"app": "web", "emco.io/owner": "hash"},
                "annotations": {"emco.io/manifest": "digest", "emco.io/placed-by": "team-a/shop"}})
        );
        assert_eq!(marked["spec"], manifest["spec"]);
        assert_eq!(owner_of(&marked), Some("hash"));
        assert_eq!(manifest_of(&marked), Some("digest"));
        assert!(!is_adopted(&marked));
    }

    #[test]
    fn marks_that_a_manifest_brings_are_not_sent() {
        let manifest = json!({"metadata": {"name": "web", "labels": {"emco.io/owner": "other"}, "annotations": {
            "emco.io/adopted": "true", "emco.io/made-for": "a proof", "emco.io/manifest": "other", "note": "n"}}});
        let marked = mark(manifest, "hash", "digest", "p/d");
        assert!(!is_adopted(&marked) && made::proof_on(&marked).is_none());
        assert_eq!((owner_of(&marked), manifest_of(&marked)), (Some("hash"), Some("digest")));
        assert_eq!(marked["metadata"]["annotations"]["note"], "n");
        assert!(is_adopted(&adopt(marked)), "what we found there is said");
    }

    #[test]
    fn an_adopted_object_says_so_and_loses_that_mark_when_it_is_released() {
        let mut object = adopt(live(&["emco-hash", "kubectl"]));
        assert!(is_adopted(&object));
        let patch = release_patch(&object, "hash").unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        assert!(!is_adopted(&object));
        assert_eq!(object["metadata"]["annotations"], json!({"note": "n"}));
    }

    fn live(managers: &[&str]) -> Value {
        let entries: Vec<Value> = managers.iter().map(|m| json!({"manager": m, "fieldsV1": {}})).collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "metadata": {
            "name": "c", "uid": "u", "resourceVersion": "7", "managedFields": entries,
            "labels": {"app": "x"}, "annotations": {"note": "n"}}});
        mark(object, "hash", "digest", "p/d")
    }

    #[test]
    fn a_released_object_keeps_its_content_and_loses_every_mark() {
        let mut object = live(&["emco-hash", "kubectl", "emco-hash", "emco-other"]);
        let patch = release_patch(&object, "hash").unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "metadata": {
                "name": "c", "uid": "u", "resourceVersion": "7", "labels": {"app": "x"}, "annotations": {"note": "n"},
                "managedFields": [{"manager": "kubectl", "fieldsV1": {}}, {"manager": "emco-other", "fieldsV1": {}}]}})
        );
        assert_eq!(release_patch(&object, "hash"), None);
    }

    #[test]
    fn the_only_entry_is_replaced_by_an_empty_one_because_servers_ignore_an_empty_list() {
        let mut object = live(&["emco-hash"]);
        let patch = release_patch(&object, "hash").unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        assert_eq!(object["metadata"]["managedFields"], json!([{}]));
    }

    #[test]
    fn a_release_applies_to_exactly_the_version_it_was_made_for() {
        let object = live(&["emco-hash", "kubectl"]);
        let patch = release_patch(&object, "hash").unwrap();
        for field in ["uid", "resourceVersion"] {
            let mut changed = object.clone();
            changed["metadata"][field] = json!("other");
            assert!(json_patch::patch(&mut changed, &patch).is_err(), "{field}");
        }
    }

    #[test]
    fn marks_of_another_owner_stay() {
        let object = live(&["kubectl"]);
        assert_eq!(release_patch(&object, "somebody"), None);
    }
}
