//! Unions of workloads as a real API server treats them: the member that it fills in where nothing is said, and the words in
//! which it refuses two of them.

use emco_engine::apis::ApiResource;
use serde_json::{Map, Value, json};

const HANDLERS: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];

/// The field in which a kind has its strategy, and the values of the usual one's member.
fn strategy(resource: &ApiResource) -> Option<(&'static str, Value)> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment") => Some(("strategy", json!({"maxSurge": "25%", "maxUnavailable": "25%"}))),
        ("apps", "DaemonSet") => Some(("updateStrategy", json!({"maxSurge": 0, "maxUnavailable": 1}))),
        ("apps", "StatefulSet") => Some(("updateStrategy", json!({"partition": 0}))),
        _ => None,
    }
}

/// Fills in members of which nothing is said.
pub(super) fn fill(resource: &ApiResource, object: &mut Value) {
    let Some((name, usual)) = strategy(resource) else { return };
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let strategy = spec.entry(name).or_insert(Value::Null);
    if strategy.is_null() {
        *strategy = json!({});
    }
    if let Some(strategy) = strategy.as_object_mut() {
        strategy.retain(|_, value| !value.is_null());
        let rolls = *strategy.entry("type").or_insert_with(|| json!("RollingUpdate")) == "RollingUpdate";
        if rolls
            && let (Some(usual), Some(said)) = (
                usual.as_object(),
                strategy.entry("rollingUpdate").or_insert_with(|| json!({})).as_object_mut(),
            )
        {
            for (name, value) in usual {
                said.entry(name.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
    let volumes = spec.get_mut("template").and_then(|template| template.pointer_mut("/spec/volumes"));
    for volume in volumes.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) = volume.as_object_mut()
            && volume.len() == 1
        {
            volume.insert("emptyDir".to_owned(), json!({}));
        }
    }
}

/// The first union of which an object has more than it may: `(field, what)`.
pub(super) fn refused(resource: &ApiResource, object: &Value) -> Option<(String, String)> {
    let (name, _) = strategy(resource)?;
    let spec = object.get("spec")?;
    if let Some(strategy) = spec.get(name)
        && strategy.get("rollingUpdate").is_some()
        && strategy["type"] != "RollingUpdate"
        && resource.kind != "DaemonSet"
    {
        let what = match resource.kind.as_str() {
            "Deployment" => "Forbidden: may not be specified when strategy `type` is 'Recreate'".to_owned(),
            _ => "Invalid value: (withheld): only allowed for updateStrategy 'RollingUpdate'".to_owned(),
        };
        return Some((format!("spec.{name}.rollingUpdate"), what));
    }
    let pod = spec.pointer("/template/spec")?;
    let items =
        |value: &Value, list: &str| value.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    for (at, volume) in items(pod, "volumes").iter().enumerate() {
        // The filled in one is looked at first.
        let usual = volume.get("emptyDir").is_some();
        let source = |name: &str| name != "name" && !(usual && name == "emptyDir");
        if let Some(second) = nth(volume, source, usize::from(!usual)) {
            let field = format!("spec.template.spec.volumes[{at}].{second}");
            return Some((field, "Forbidden: may not specify more than 1 volume type".to_owned()));
        }
    }
    for (at, container) in items(pod, "containers").iter().enumerate() {
        let place = format!("spec.template.spec.containers[{at}]");
        for (at, env) in items(container, "env").iter().enumerate() {
            let has = |name: &str| env.get(name).is_some_and(|value| !value.is_null() && value != "");
            if has("value") && has("valueFrom") {
                let what = "Invalid value: (withheld): may not be specified when `value` is not empty";
                return Some((format!("{place}.env[{at}].valueFrom"), what.to_owned()));
            }
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let handlers = container.get(probe).unwrap_or(&Value::Null);
            if let Some(second) = nth(handlers, |name| HANDLERS.contains(&name), 1) {
                let what = "Forbidden: may not specify more than 1 handler type";
                return Some((format!("{place}.{probe}.{second}"), what.to_owned()));
            }
        }
    }
    None
}

/// The n-th of such fields, if there are more.
fn nth(value: &Value, counts: impl Fn(&str) -> bool, n: usize) -> Option<String> {
    let fields = value.as_object().into_iter().flat_map(Map::iter);
    fields.filter(|(name, value)| counts(name) && !value.is_null()).nth(n).map(|(name, _)| name.clone())
}
