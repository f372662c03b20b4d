//! Applies manifests as API servers do: what a manager sends no more is taken away, and who has which fields is written down. A list is one
//! field, and nobody's fields conflict: whoever applies has its way.

use serde_json::{Map, Value, json};

/// Fields that are no one's: the object's own, and the server's.
const NO_ONES: [&str; 6] =
    ["name", "namespace", "uid", "resourceVersion", "managedFields", "creationTimestamp"];

/// The object after a manager applied a manifest to it.
pub(super) fn applied(known: Option<&Value>, sent: &Value, manager: &str) -> Value {
    let fields = fields_of(sent);
    let mut object = known.cloned().unwrap_or_else(|| {
        json!({"apiVersion": sent["apiVersion"], "kind": sent["kind"], "metadata": {"name": sent["metadata"]["name"]}})
    });
    let managed = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let (own, mut others): (Vec<Value>, Vec<Value>) =
        managed.into_iter().partition(|entry| entry["manager"] == manager && entry["operation"] == "Apply");
    let theirs: Vec<&Value> = others.iter().map(|entry| &entry["fieldsV1"]).collect();
    for entry in &own {
        take_away(&mut object, &entry["fieldsV1"], &fields, &theirs);
    }
    merge(&mut object, sent, true);
    others.push(json!({"manager": manager, "operation": "Apply", "apiVersion": sent["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": fields}));
    object["metadata"]["managedFields"] = Value::Array(others);
    object
}

/// The object after a JSON merge patch.
pub(super) fn patched(known: &Value, patch: &Value) -> Value {
    let mut object = known.clone();
    merge_patch(&mut object, patch);
    object
}

fn merge_patch(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(object) = object.as_object_mut() {
                object.remove(key);
            }
        } else {
            merge_patch(&mut object[key.as_str()], value);
        }
    }
}

/// The fields of a manifest, as `managedFields` names them.
fn fields_of(sent: &Value) -> Value {
    let mut fields = Map::new();
    for (key, value) in sent.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let own = value.as_object().into_iter().flatten();
                let own = own.filter(|(key, _)| !NO_ONES.contains(&key.as_str()));
                let named: Map<String, Value> =
                    own.map(|(key, value)| (format!("f:{key}"), tree(value))).collect();
                if !named.is_empty() {
                    fields.insert("f:metadata".to_owned(), Value::Object(named));
                }
            }
            _ => {
                fields.insert(format!("f:{key}"), tree(value));
            }
        }
    }
    Value::Object(fields)
}

fn tree(value: &Value) -> Value {
    let below = value.as_object().into_iter().flatten();
    Value::Object(below.map(|(key, value)| (format!("f:{key}"), tree(value))).collect())
}

/// Takes away what was a manager's, is not any more, and nobody else has.
fn take_away(object: &mut Value, was: &Value, is: &Value, others: &[&Value]) {
    let Some(object) = object.as_object_mut() else { return };
    for (key, below) in was.as_object().into_iter().flatten() {
        let Some(field) = key.strip_prefix("f:") else { continue };
        let theirs: Vec<&Value> = others.iter().filter_map(|other| other.get(key)).collect();
        let stays = is.get(key).is_some();
        let is_leaf = below.as_object().is_none_or(Map::is_empty);
        let is_empty = match object.get_mut(field) {
            Some(value) if !is_leaf => {
                take_away(value, below, is.get(key).unwrap_or(&Value::Null), &theirs);
                value.as_object().is_some_and(Map::is_empty)
            }
            _ => is_leaf,
        };
        if is_empty && !stays && theirs.is_empty() {
            object.remove(field);
        }
    }
}

/// Maps are merged, all else is replaced. At the top, what is no one's stays as it is where it is there.
fn merge(object: &mut Value, sent: &Value, is_top: bool) {
    for (key, value) in sent.as_object().into_iter().flatten() {
        if is_top && key == "metadata" {
            let own = value.as_object().into_iter().flatten();
            let own = own.filter(|(key, _)| *key == "namespace" || !NO_ONES.contains(&key.as_str()));
            let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
            merge(&mut object["metadata"], &Value::Object(own), false);
        } else if value.is_object() && object[key.as_str()].is_object() {
            merge(&mut object[key.as_str()], value, false);
        } else {
            object[key.as_str()] = value.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "one", "namespace": "shop", "labels": {"emco.io/owner": "o"}}, "data": data})
    }

    #[test]
    fn what_a_manager_sends_no_more_is_taken_away_unless_others_have_it() {
        let first = applied(None, &map(&json!({"a": "1", "b": "2"})), "emco");
        let second = applied(Some(&first), &map(&json!({"b": "3", "c": "4"})), "people");
        assert_eq!(second["data"], json!({"a": "1", "b": "3", "c": "4"}));
        let third = applied(Some(&second), &map(&json!({})), "emco");
        assert_eq!(third["data"], json!({"b": "3", "c": "4"}), "b is of people, too");
        let last = applied(
            Some(&third),
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}),
            "people",
        );
        assert_eq!(last["data"], json!({}), "the map is still applied");
        assert_eq!(last["metadata"]["labels"], json!({"emco.io/owner": "o"}));
    }

    #[test]
    fn fields_are_those_that_were_sent_and_the_same_apply_changes_nothing() {
        let first = applied(None, &map(&json!({"a": "1"})), "emco");
        let managed = &first["metadata"]["managedFields"];
        assert_eq!(managed[0]["manager"], "emco");
        let fields = json!({"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:emco.io/owner": {}}}});
        assert_eq!(managed[0]["fieldsV1"], fields);
        assert_eq!(applied(Some(&first), &map(&json!({"a": "1"})), "emco"), first);
        assert_eq!(first["metadata"]["namespace"], "shop");
    }

    #[test]
    fn a_merge_patch_takes_away_what_is_null() {
        let known = json!({"data": {"a": "1", "b": "2"}, "metadata": {"name": "one"}});
        let now = patched(&known, &json!({"data": {"a": null, "c": {"d": "3"}}}));
        assert_eq!(now, json!({"data": {"b": "2", "c": {"d": "3"}}, "metadata": {"name": "one"}}));
    }
}
