//! Finds in `managedFields` who set the number of replicas of a workload by its subresource, as autoscalers do.

use serde_json::Value;

/// Programs in which Kubernetes' autoscaler runs, as their requests name them: of its own, and those of distributions that are one
/// program.
const AUTOSCALERS: [&str; 3] = ["kube-controller-manager", "k3s", "kubelite"];

/// The kind of client that set a number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaledBy {
    /// Kubernetes' autoscaler.
    Autoscaler,
    /// Somebody: a person with `kubectl scale`, or a program that works beside the autoscaler, as KEDA does around zero.
    Somebody,
}

/// Says who set the number of replicas by the subresource. Several who set the same number all have it: an autoscaler counts.
pub fn scaled_by(managed_fields: &[Value]) -> Option<ScaledBy> {
    let text =
        |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let scaled = managed_fields.iter().filter(|entry| {
        text(entry, "subresource") == "scale" && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    });
    let kinds = scaled.map(|entry| {
        let by_autoscaler = AUTOSCALERS.contains(&text(entry, "manager").as_str());
        if by_autoscaler { ScaledBy::Autoscaler } else { ScaledBy::Somebody }
    });
    kinds.min_by_key(|by| *by == ScaledBy::Somebody)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_autoscaler_is_known_by_its_name_and_by_how_it_writes() {
        let by = |manager: &str, subresource: &str| {
            let fields = json!({"f:spec": {"f:replicas": {}}});
            scaled_by(&[json!({"manager": manager, "subresource": subresource, "fieldsV1": fields})])
        };
        assert_eq!(by("kube-controller-manager", "scale"), Some(ScaledBy::Autoscaler));
        assert_eq!(by("k3s", "scale"), Some(ScaledBy::Autoscaler));
        assert_eq!(by("kubectl", "scale"), Some(ScaledBy::Somebody));
        assert_eq!(by("kube-controller-manager", ""), None, "another controller");
        let status = json!({"manager": "k3s", "subresource": "scale", "fieldsV1": {"f:status": {}}});
        assert_eq!((scaled_by(&[status]), scaled_by(&[])), (None, None));
        let both = ["keda", "kube-controller-manager"].map(|manager| {
            json!({"manager": manager, "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}})
        });
        assert_eq!(scaled_by(&both), Some(ScaledBy::Autoscaler), "they set the same number");
    }
}
