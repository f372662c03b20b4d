//! Says of an object that is being deleted since when, and what it waits for.

use emco_engine::identity::Identity;
use emco_engine::order;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Conditions of a namespace that does not end, the most telling first. The words about a cluster that cannot list all kinds speak of kinds
/// that are nobody's business here.
const OF_NAMESPACES: [(&str, Option<&str>); 4] = [
    ("NamespaceFinalizersRemaining", None),
    ("NamespaceDeletionDiscoveryFailure", Some("the cluster cannot list all of its kinds")),
    ("NamespaceDeletionContentFailure", Some("the cluster cannot delete all that is in it")),
    ("NamespaceContentRemaining", None),
];

/// `it is being deleted since ... and waits for its finalizers: ...`.
pub fn sentence(id: &Identity, object: &Value) -> String {
    let since = since(object).map(|since| format!(" since {since}")).unwrap_or_default();
    let waits = match finalizers(object) {
        Some(finalizers) => format!(" and waits for its finalizers: {finalizers}"),
        None => match content(id, object) {
            Some(content) => format!(" and waits for what is in it: {content}"),
            None => ", and its end is awaited".to_owned(),
        },
    };
    format!("it is being deleted{since}{waits}")
}

/// The time of the request: the timestamp of a deletion is the end of its grace period.
fn since(object: &Value) -> Option<Timestamp> {
    let metadata = object.get("metadata")?;
    let over: Timestamp = metadata.get("deletionTimestamp")?.as_str()?.parse().ok()?;
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    over.checked_sub(SignedDuration::from_secs(grace)).ok()
}

fn finalizers(object: &Value) -> Option<String> {
    let all = object.pointer("/metadata/finalizers")?.as_array()?;
    let names: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn content(id: &Identity, object: &Value) -> Option<String> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    let said = |type_: &str| {
        conditions.iter().find(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(type_)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    };
    let (condition, instead) = OF_NAMESPACES
        .into_iter()
        .filter(|_| order::is_namespace(id.kind()))
        .find_map(|(type_, instead)| Some((said(type_)?, instead)))?;
    let words = || condition.get("message").and_then(Value::as_str);
    instead.or_else(words).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(kind: &str, object: &Value) -> String {
        let text = |text: &str| text.to_owned();
        let id = Identity { group: text(""), kind: text(kind), namespace: text(""), name: text("x") };
        sentence(&id, object)
    }

    #[test]
    fn what_is_being_deleted_says_since_when_and_for_what_it_waits() {
        let metadata = json!({"deletionTimestamp": "2026-11-28T12:00:30Z", "deletionGracePeriodSeconds": 30,
            "finalizers": ["example.com/a", "example.com/b"]});
        assert_eq!(
            said("Pod", &json!({"metadata": metadata})),
            "it is being deleted since 2026-11-28T12:00:00Z and waits for its finalizers: example.com/a, example.com/b"
        );
        let metadata = json!({"deletionTimestamp": "2026-11-28T12:00:00Z", "finalizers": []});
        assert_eq!(
            said("Pod", &json!({"metadata": metadata})),
            "it is being deleted since 2026-11-28T12:00:00Z, and its end is awaited"
        );
    }

    #[test]
    fn a_namespace_says_what_holds_it_and_nothing_of_the_cluster() {
        let of = |conditions: Value| {
            let metadata = json!({"deletionTimestamp": "2026-11-28T12:00:00Z"});
            said("Namespace", &json!({"metadata": metadata, "status": {"conditions": conditions}}))
        };
        let condition =
            |type_: &str, message: &str| json!({"type": type_, "status": "True", "message": message});
        let held =
            "Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances";
        let remains = condition("NamespaceContentRemaining", "Some resources are remaining");
        let text = of(json!([remains, condition("NamespaceFinalizersRemaining", held)]));
        assert!(text.ends_with(&format!(" and waits for what is in it: {held}")), "{text}");
        let failed = condition("NamespaceDeletionDiscoveryFailure", "metrics.k8s.io/v1beta1: no answer");
        let text = of(json!([remains, failed]));
        assert!(text.ends_with("the cluster cannot list all of its kinds"), "{text}");
        let over = json!({"type": "NamespaceContentRemaining", "status": "False", "message": "All is gone"});
        assert!(of(json!([over])).ends_with(", and its end is awaited"));
    }
}
