//! Edits of manifests: what each kind of patch makes of an object, and what is refused.

mod fields;
mod json;
mod laws;
mod lists;
mod refused;

use emco_engine::edits::{Patch, check, patched};
use serde_json::{Value, json};

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "finalizers": ["a/1", "a/2"]},
        "spec": {
            "replicas": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {"spec": {
                "containers": [
                    {"name": "web", "image": "web:1", "args": ["--one", "--two"],
                     "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                     "ports": [{"containerPort": 80, "name": "http"}]},
                    {"name": "log", "image": "log:1"},
                ],
                "tolerations": [{"key": "edge", "operator": "Exists"}],
                "volumes": [{"name": "data", "emptyDir": {}}],
            }},
        },
    })
}

fn pod_spec(fields: &Value) -> Value {
    json!({"spec": {"template": {"spec": fields}}})
}

/// The pod spec of the deployment after a strategic merge patch of it.
fn merged(fields: &Value) -> Value {
    strategic(&pod_spec(fields))["spec"]["template"]["spec"].clone()
}

fn strategic(patch: &Value) -> Value {
    let patch = Patch::Strategic(patch.clone());
    check("apps/v1", "Deployment", &patch).unwrap();
    patched(&deployment(), &patch).unwrap()
}

fn refusal(object: &Value, patch: &Patch) -> String {
    patched(object, patch).unwrap_err().to_string()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}
