use super::*;

fn now() -> Timestamp {
    "2026-11-26T12:00:00Z".parse().unwrap()
}

fn group(metadata: &Value, spec: &Value) -> DeploymentIntentGroup {
    let mut whole = json!({"compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let kind = json!({"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup"});
    let mut object = kind;
    object["metadata"] = json!({"name": "till", "namespace": "shop"});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object["spec"] = whole;
    serde_json::from_value(object).unwrap()
}

fn on_hub(spec: &Value) -> DeploymentIntentGroup {
    let metadata = json!({
        "uid": "u", "generation": 4, "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"team": "a"}, "finalizers": ["emco.io/terminate"],
    });
    let mut object = serde_json::to_value(group(&metadata, spec)).unwrap();
    object["status"] = json!({"revision": 3});
    serde_json::from_value(object).unwrap()
}

#[test]
fn an_edit_keeps_who_an_object_is_and_has_a_generation_of_its_own() {
    let file = group(&json!({"labels": {"tier": "edge"}}), &json!({"release": "till"}));
    let laid = laid(Some(&on_hub(&json!({}))), &file, now()).unwrap();
    assert!(laid.exists && laid.changes && laid.kept.is_empty());
    let meta = &laid.object.metadata;
    assert_eq!((meta.uid.as_deref(), meta.generation), (Some("u"), Some(5)));
    assert_eq!(meta.resource_version.as_deref(), Some("7"));
    let labels = meta.labels.clone().unwrap();
    assert_eq!((labels["team"].as_str(), labels["tier"].as_str()), ("a", "edge"));
    assert_eq!(laid.object.status.unwrap().revision, Some(3), "the status is the hub's");
    assert_eq!(laid.object.spec.release.as_deref(), Some("till"));
}

#[test]
fn what_is_as_the_hub_has_it_changes_nothing() {
    let laid = laid(Some(&on_hub(&json!({}))), &group(&json!({}), &json!({})), now()).unwrap();
    assert!(!laid.changes);
    assert_eq!(laid.object.metadata.generation, Some(4));
}

#[test]
fn what_commands_set_on_the_hub_stays_unless_the_files_name_it() {
    let hub = on_hub(&json!({"suspend": true, "revision": 2}));
    let laid_out = laid(Some(&hub), &group(&json!({}), &json!({})), now()).unwrap();
    assert_eq!((laid_out.kept, laid_out.changes), (vec!["suspend", "revision"], false));
    let named =
        laid(Some(&hub), &group(&json!({}), &json!({"suspend": false, "revision": 1})), now()).unwrap();
    assert!(named.kept.is_empty() && named.changes);
    assert_eq!((named.object.spec.suspend, named.object.spec.revision), (Some(false), Some(1)));
}

#[test]
fn a_new_object_is_younger_than_all_others_and_has_no_status() {
    let laid = laid(None, &group(&json!({}), &json!({})), now()).unwrap();
    assert!(!laid.exists && laid.changes);
    let meta = &laid.object.metadata;
    assert_eq!(meta.creation_timestamp.as_ref().map(|time| time.0), Some(now()));
    assert_eq!((meta.generation, laid.object.status), (Some(1), None));
}

#[test]
fn text_of_a_secret_is_stored_as_its_data() {
    let secret = json!({"kind": "Secret", "data": {"a": "b25l", "b": "b25l"}, "stringData": {"b": "two"}});
    assert_eq!(stored(secret), json!({"kind": "Secret", "data": {"a": "b25l", "b": "dHdv"}}));
    let secret = json!({"kind": "Secret", "stringData": {"b": "two"}});
    assert_eq!(stored(secret), json!({"kind": "Secret", "data": {"b": "dHdv"}}));
}
