//! What controllers, scheduler and kubelets would make of an object: a status, at once.

use serde_json::{Value, json};

/// Sets the status that an object settles at.
pub(super) fn settle(object: &mut Value, ready: bool) {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1);
    let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let status = match kind.as_str() {
        "Namespace" => {
            let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
            json!({"phase": if deleting { "Terminating" } else { "Active" }})
        }
        "CustomResourceDefinition" if has_condition(object, "NamesAccepted", "False") => return,
        "CustomResourceDefinition" => {
            json!({"conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]})
        }
        _ if !ready => return,
        "Deployment" => json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [{"type": "Available", "status": "True"}],
        }),
        "StatefulSet" => json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas, "currentReplicas": replicas,
            "currentRevision": "r", "updateRevision": "r",
        }),
        "DaemonSet" => json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1,
        }),
        "ReplicaSet" => json!({
            "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "fullyLabeledReplicas": replicas,
        }),
        "Job" => json!({
            "succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}],
        }),
        "Pod" => {
            let once = object.pointer("/spec/restartPolicy").and_then(Value::as_str) == Some("Never");
            if once {
                json!({"phase": "Succeeded", "conditions": []})
            } else {
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
            }
        }
        "PersistentVolumeClaim" => json!({"phase": "Bound"}),
        "Service" if object.pointer("/spec/type").and_then(Value::as_str) == Some("LoadBalancer") => {
            json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
        }
        "PodDisruptionBudget" => json!({
            "observedGeneration": generation, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
            "disruptionsAllowed": 0,
        }),
        _ => return,
    };
    if let Some(map) = object.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
}

fn has_condition(object: &Value, type_: &str, status: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let of = |condition: &Value, key: &str| condition.get(key).and_then(Value::as_str).map(str::to_owned);
    conditions.into_iter().flatten().any(|condition| {
        of(condition, "type").as_deref() == Some(type_) && of(condition, "status").as_deref() == Some(status)
    })
}
