//! Judges by the `managedFields` of a live object whether our part of it is still as our own apply left it. Metadata
//! alone: values that a server defaulted never look like drift.

use std::collections::BTreeSet;

use emco_crds::deployment_intent_group::sync::IgnoreRule;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::canonical;
use crate::identity::{Identity, split_api_version};

mod autoscaled;
pub mod bundles;
pub mod joint;
pub mod named;
pub mod owned;
pub mod unions;

pub use autoscaled::{ScaledBy, scaled_by};

/// Stands in a row for who changed an object that is not there any more.
pub const DELETED: &str = "deleted";

/// What stands behind the hash while the number of replicas is ours.
const REPLICAS: &str = "r";

/// Where the number of replicas is.
const REPLICAS_POINTER: &str = "/spec/replicas";

/// Hash of our entry: the fields that our applies own, 32 hexadecimal digits, and whether `spec.replicas` is among them. `None`:
/// there is no entry of ours. Times are not in it.
pub fn of_ours(managed_fields: &[Value], manager: &str) -> Option<String> {
    let mut fields = entry(managed_fields, manager, "Apply")?.clone();
    let spec = fields.get_mut("f:spec").and_then(Value::as_object_mut);
    let replicas = spec.and_then(|spec| spec.remove("f:replicas")).is_some();
    let mut hash = hex::encode(Sha256::digest(canonical::json(&fields)));
    hash.truncate(32);
    if replicas {
        hash.push_str(REPLICAS);
    }
    Some(hash)
}

/// The fields of a manager's entry, if it has one; not those of subresources.
pub fn entry<'a>(managed_fields: &'a [Value], manager: &str, operation: &str) -> Option<&'a Value> {
    let entry = managed_fields.iter().find(|e| {
        e["manager"] == manager && e["operation"] == operation && e.get("subresource").is_none_or(|s| s == "")
    })?;
    entry.get("fieldsV1")
}

/// What became of the fields of a manifest on the live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Pointers to fields that are not ours any more: others have them, or removed them.
    pub taken: Vec<String>,
    /// Who has some of them; nobody where they are gone.
    pub by: Vec<String>,
    /// Pointers to fields that the cluster's own admission rewrote while we applied them: an update in our name.
    pub rewritten: Vec<String>,
}

/// Compares a manifest, with our marks, with the `managedFields` of the live object.
pub fn judge(manifest: &Value, managed_fields: &[Value], manager: &str) -> Judged {
    let nothing = serde_json::json!({".": {}});
    let ours = entry(managed_fields, manager, "Apply").unwrap_or(&nothing);
    let lost = owned::missing(manifest, ours);
    if lost.is_empty() {
        return Judged::default();
    }
    let admission = entry(managed_fields, manager, "Update").unwrap_or(&nothing);
    let not_rewritten = owned::missing(manifest, admission);
    let (taken, rewritten): (Vec<String>, Vec<String>) =
        lost.into_iter().partition(|pointer| touches(&not_rewritten, pointer));
    let has = |entry: &&Value| {
        let missing = entry.get("fieldsV1").map(|fields| owned::missing(manifest, fields));
        missing.is_some_and(|missing| taken.iter().any(|pointer| !owned::covers(&missing, pointer)))
    };
    let entries: Vec<Value> = managed_fields.iter().filter(has).cloned().collect();
    Judged { by: others(&entries, manager), taken, rewritten }
}

/// Whether one of the pointers is this one, or stands above or below it.
fn touches(pointers: &[String], pointer: &str) -> bool {
    owned::covers(pointers, pointer) || pointers.iter().any(|p| owned::covers(&[pointer.to_owned()], p))
}

/// Whether our part is as the answer to our own apply showed it; both sides from [`of_ours`], nothing for no entry. `scaled`:
/// an autoscaler of the same owner sets the number of replicas, which is then no drift.
pub fn same(baseline: &str, now: &str, scaled: bool) -> bool {
    if scaled {
        return baseline.trim_end_matches(REPLICAS) == now.trim_end_matches(REPLICAS);
    }
    baseline == now
}

/// What an autoscaler scales, of all manifests of an owner on a cluster.
pub fn scaled<'a>(manifests: impl Iterator<Item = &'a Value>) -> BTreeSet<Identity> {
    targets(manifests.filter(|json| json["kind"] == "HorizontalPodAutoscaler"))
}

/// The workloads that autoscalers scale. Items of a list do not say their kind.
pub fn targets<'a>(autoscalers: impl Iterator<Item = &'a Value>) -> BTreeSet<Identity> {
    autoscalers
        .filter_map(|json| {
            let target = json.pointer("/spec/scaleTargetRef")?;
            let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
            let (group, _) = split_api_version(target.get("apiVersion").and_then(Value::as_str)?);
            Some(Identity {
                group: group.to_owned(),
                kind: text(target.get("kind")),
                namespace: text(json.pointer("/metadata/namespace")),
                name: text(target.get("name")),
            })
        })
        .collect()
}

/// Pointers to fields of an object that are left alone once it is there: the owner says so, or an autoscaler of the same owner
/// sets them (`scaled`).
pub fn left_to_others(rules: &[IgnoreRule], id: &Identity, scaled: bool) -> Vec<String> {
    let rules = rules.iter().filter(|rule| {
        rule.kind == id.kind
            && rule.group.as_ref().is_none_or(|group| *group == id.group)
            && rule.name.as_ref().is_none_or(|name| *name == id.name)
    });
    let replicas = scaled.then(|| REPLICAS_POINTER.to_owned());
    rules.flat_map(|rule| rule.json_pointers.clone()).chain(replicas).collect()
}

/// Names of the other managers that wrote more than a status, each once, sorted: who may have changed it.
pub fn others(managed_fields: &[Value], manager: &str) -> Vec<String> {
    let mut names: Vec<String> = managed_fields
        .iter()
        .filter(|e| e.get("subresource").is_none_or(|s| s != "status"))
        .filter_map(|e| e.get("manager")?.as_str())
        .filter(|name| !name.is_empty() && *name != manager)
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
    fn written(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    #[test]
    fn a_field_that_somebody_took_is_drift_and_the_time_is_not() {
        let ours = |fields| written("emco-1", "Apply", fields);
        let mut status = written("kube-controller-manager", "Update", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let first = vec![
            written("kubectl", "Update", json!({"f:x": {}})),
            status,
            ours(json!({"f:spec": {"f:paused": {}}})),
        ];
        let baseline = of_ours(&first, "emco-1").unwrap();
        let mut later = first.clone();
        later[2]["time"] = json!("2027-01-01T00:00:00Z");
        assert!(same(&baseline, &of_ours(&later, "emco-1").unwrap(), false));
        later[2]["fieldsV1"] = json!({"f:spec": {}});
        assert!(!same(&baseline, &of_ours(&later, "emco-1").unwrap(), false));
        assert_eq!(of_ours(&later[..2], "emco-1"), None);
        assert_eq!(others(&later, "emco-1"), ["kubectl"]);
    }

    #[test]
    fn replicas_are_drift_unless_an_autoscaler_of_the_owner_sets_them() {
        let of = |fields| of_ours(&[written("emco-1", "Apply", fields)], "emco-1").unwrap();
        let before = of(json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}));
        let scaled_away = of(json!({"f:spec": {"f:paused": {}}}));
        assert!(!same(&before, &scaled_away, false) && same(&before, &scaled_away, true));
        assert!(!same(&before, &of(json!({"f:spec": {}})), true), "only the replicas are excused");
        let scaler = json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        let targets = scaled([&scaler, &json!({"kind": "Deployment"})].into_iter());
        assert_eq!(targets.iter().map(ToString::to_string).collect::<Vec<_>>(), ["apps/Deployment/shop/web"]);
    }

    #[test]
    fn the_rules_of_its_kind_and_an_autoscaler_leave_fields_of_an_object_to_others() {
        let rule = |kind: &str, name: Option<&str>, pointer: &str| IgnoreRule {
            kind: kind.to_owned(),
            name: name.map(str::to_owned),
            json_pointers: vec![pointer.to_owned()],
            ..IgnoreRule::default()
        };
        let rules =
            [rule("Deployment", None, "/a"), rule("Deployment", Some("db"), "/b"), rule("Job", None, "/c")];
        let web = Identity::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"}}));
        assert_eq!(left_to_others(&rules, &web, true), ["/a", "/spec/replicas"]);
        assert_eq!(left_to_others(&rules, &web, false), ["/a"]);
    }

    #[test]
    fn what_is_not_ours_any_more_is_named_with_who_has_it_and_what_admission_rewrote_is_not() {
        let manifest = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"},
            "spec": {"a": 1, "b": 2, "c": 3, "d": 4}});
        let all = |keys: &[&str]| {
            let fields: serde_json::Map<String, Value> =
                keys.iter().map(|k| (format!("f:{k}"), json!({}))).collect();
            json!({"f:spec": fields})
        };
        let entries = vec![
            written("emco-1", "Apply", all(&["a"])),
            written("emco-1", "Update", all(&["b"])),
            written("kubectl-edit", "Update", all(&["c"])),
            written("other", "Update", all(&["z"])),
        ];
        let judged = judge(&manifest, &entries, "emco-1");
        assert_eq!(judged.taken, ["/spec/c", "/spec/d"]);
        assert_eq!(judged.by, ["kubectl-edit"]);
        assert_eq!(judged.rewritten, ["/spec/b"]);
        assert_eq!(
            judge(&manifest, &[written("emco-1", "Apply", all(&["a", "b", "c", "d"]))], "emco-1"),
            Judged::default()
        );
        assert_eq!(judge(&manifest, &[], "emco-1").taken, ["/spec"], "without an entry nothing is ours");
    }

    #[test]
    fn updates_and_subresources_under_our_name_are_not_our_apply() {
        let mut status = written("emco-1", "Apply", json!({}));
        status["subresource"] = json!("status");
        assert_eq!(of_ours(&[written("emco-1", "Update", json!({})), status], "emco-1"), None);
    }
}
