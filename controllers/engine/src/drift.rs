//! The `managedFields` of a live object in, whether our part of it is still as our own apply left it out. Metadata alone:
//! values that a server defaulted never look like drift.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::canonical;

/// What became of our part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It is as our apply left it.
    None,
    /// Somebody took fields of ours, or gave us others.
    Changed,
    /// We own nothing there any more.
    Gone,
}

/// Hash of our entry: the fields that our applies own, 32 hexadecimal digits. `None`: there is no entry of ours. Times are
/// not in it.
pub fn of_ours(managed_fields: &[Value], manager: &str) -> Option<String> {
    let ours = managed_fields.iter().find(|e| {
        e["manager"] == manager && e["operation"] == "Apply" && e.get("subresource").is_none_or(|s| s == "")
    })?;
    let fields = canonical::json(ours.get("fieldsV1").unwrap_or(&Value::Null));
    let mut hash = hex::encode(Sha256::digest(fields));
    hash.truncate(32);
    Some(hash)
}

/// Compares with the hash that the answer to our own apply had.
pub fn compare(managed_fields: &[Value], manager: &str, expected: &str) -> Drift {
    match of_ours(managed_fields, manager) {
        None => Drift::Gone,
        Some(hash) if hash == expected => Drift::None,
        Some(_) => Drift::Changed,
    }
}

/// Names of the other managers with an entry, each once, sorted: who may have changed it.
pub fn others(managed_fields: &[Value], manager: &str) -> Vec<String> {
    let mut names: Vec<String> = managed_fields
        .iter()
        .filter_map(|e| e.get("manager")?.as_str())
        .filter(|name| *name != manager)
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[allow(clippy::needless_pass_by_value)] // reads better where it is called
    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    #[test]
    fn a_field_that_somebody_took_is_drift_and_the_time_is_not() {
        let ours = |fields| entry("emco-1", "Apply", fields);
        let first =
            vec![entry("kubectl", "Update", json!({"f:x": {}})), ours(json!({"f:spec": {"f:replicas": {}}}))];
        let baseline = of_ours(&first, "emco-1").unwrap();
        let mut later = first.clone();
        later[1]["time"] = json!("2027-01-01T00:00:00Z");
        assert_eq!(compare(&later, "emco-1", &baseline), Drift::None);
        later[1]["fieldsV1"] = json!({"f:spec": {}});
        assert_eq!(compare(&later, "emco-1", &baseline), Drift::Changed);
        assert_eq!(compare(&later[..1], "emco-1", &baseline), Drift::Gone);
        assert_eq!(others(&later, "emco-1"), ["kubectl"]);
    }

    #[test]
    fn updates_and_subresources_under_our_name_are_not_our_apply() {
        let mut status = entry("emco-1", "Apply", json!({}));
        status["subresource"] = json!("status");
        assert_eq!(of_ours(&[entry("emco-1", "Update", json!({})), status], "emco-1"), None);
    }
}
