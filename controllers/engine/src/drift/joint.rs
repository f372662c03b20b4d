//! Lists that are one field for server-side apply, and that others add entries to: the `imagePullSecrets` of a `ServiceAccount`,
//! where platforms put the Secret that they make for it.

use serde_json::Value;

use crate::identity::{Identity, kind_of};

/// Group, kind and field.
const JOINT: [(&str, &str, &str); 1] = [("", "ServiceAccount", "imagePullSecrets")];

/// The list of an object's kind that others add to.
pub fn field(object: &Value) -> Option<&'static str> {
    of_kind(kind_of(object))
}

fn of_kind(kind: (&str, &str)) -> Option<&'static str> {
    JOINT.iter().find(|(group, of, _)| (*group, *of) == kind).map(|(_, _, field)| *field)
}

/// Others have that list, and our apply has not: what becomes of it then does not change what is ours.
pub fn is_others(id: &Identity, managed_fields: &[Value], manager: &str) -> bool {
    let Some(field) = of_kind((id.group.as_str(), id.kind.as_str())) else { return false };
    let field = format!("f:{field}");
    let ours = super::entry(managed_fields, manager, "Apply");
    let has = |entry: &Value| entry.get("fieldsV1").is_some_and(|fields| fields.get(&field).is_some());
    ours.is_none_or(|fields| fields.get(&field).is_none()) && managed_fields.iter().any(has)
}

/// The entries that an object has in that list.
pub fn entries(object: &Value) -> &[Value] {
    let list = field(object).and_then(|field| object.get(field)).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice)
}

/// All that a manifest says at this pointer is in the live list, among others' entries perhaps.
pub fn holds(manifest: &Value, live: &Value, pointer: &str) -> bool {
    let is_it = |field: &str| pointer.strip_prefix('/') == Some(field);
    let there = entries(live);
    field(manifest).is_some_and(is_it) && entries(manifest).iter().all(|said| there.contains(said))
}

/// Makes a manifest say what others added, too. Entries that earlier manifests said (`before`) are not theirs. A list in which the
/// manifest says nothing is others' alone, unless our apply has it (`ours`): unsaid, it would go as a whole.
pub fn join(manifest: &mut Value, live: &Value, ours: Option<&Value>, before: &[Value]) {
    let Some(field) = field(manifest) else { return };
    let said = entries(manifest);
    if said.is_empty() && ours.is_none_or(|fields| fields.get(format!("f:{field}")).is_none()) {
        // An empty list would be said, and take theirs away.
        if let Some(manifest) = manifest.as_object_mut() {
            manifest.remove(field);
        }
        return;
    }
    let is_theirs = |entry: &&Value| !said.contains(entry) && !before.contains(entry);
    let theirs: Vec<Value> = entries(live).iter().filter(is_theirs).cloned().collect();
    if theirs.is_empty() {
        return;
    }
    let there = entries(live);
    let all: Vec<Value> = if there.iter().all(|entry| said.contains(entry) || theirs.contains(entry))
        && said.iter().all(|entry| there.contains(entry))
    {
        // All of it is there already, in whatever order.
        there.to_vec()
    } else {
        said.iter().cloned().chain(theirs).collect()
    };
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert(field.to_owned(), Value::Array(all));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account(names: &[&str]) -> Value {
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"},
            "imagePullSecrets": list})
    }

    #[test]
    fn a_list_with_more_than_was_said_holds_what_was_said() {
        let at = "/imagePullSecrets";
        assert!(holds(&account(&["a"]), &account(&["theirs", "a"]), at));
        assert!(!holds(&account(&["a", "b"]), &account(&["theirs", "a"]), at));
        assert!(!holds(&account(&["a"]), &account(&["a"]), "/automountServiceAccountToken"));
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "imagePullSecrets": []});
        assert!(!holds(&pod, &pod, at));
    }

    #[test]
    fn a_list_is_others_where_our_apply_has_it_no_more() {
        let entry = |manager: &str, operation: &str, field: &str| json!({"manager": manager, "operation": operation, "fieldsV1": {(field): {}}});
        let ours = |field: &str| entry("emco-1", "Apply", field);
        let theirs = entry("openshift", "Update", "f:imagePullSecrets");
        let of = |object: &Value, entries: &[Value]| is_others(&Identity::of(object), entries, "emco-1");
        let account = account(&[]);
        assert!(
            of(&account, &[ours("f:metadata"), theirs.clone()])
                && of(&account, std::slice::from_ref(&theirs))
        );
        assert!(!of(&account, &[ours("f:imagePullSecrets"), theirs.clone()]));
        assert!(!of(&account, &[ours("f:metadata")]));
        assert!(!of(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), &[theirs]));
    }

    #[test]
    fn what_others_added_is_said_and_what_was_said_before_is_not() {
        let joined = |said: &[&str], before: &[&str]| {
            let mut manifest = account(said);
            let ours = json!({"f:imagePullSecrets": {}});
            join(&mut manifest, &account(&["old", "theirs"]), Some(&ours), entries(&account(before)));
            manifest
        };
        assert_eq!(joined(&["a"], &["old"]), account(&["a", "theirs"]));
        assert_eq!(joined(&["old"], &["old"]), account(&["old", "theirs"]));
        assert_eq!(
            joined(&["theirs"], &[]),
            account(&["old", "theirs"]),
            "in the order in which it is there"
        );
        assert_eq!(joined(&[], &["old"]), account(&["theirs"]));
        assert_eq!(joined(&["a"], &["old", "theirs"]), account(&["a"]));
        let mut silent = account(&[]);
        join(&mut silent, &account(&["theirs"]), Some(&json!({"f:metadata": {}})), &[]);
        assert_eq!(silent.get("imagePullSecrets"), None, "it was never ours");
    }
}
