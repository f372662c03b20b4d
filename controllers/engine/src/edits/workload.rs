//! Has a workload ask for hardware: labels of nodes, amounts of one container, replicas.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::PatchError;
use crate::hardware::quantity;
use crate::normalise;

/// The place of the spec of pods in custom kinds.
const USUAL: &str = "/spec/template/spec";

/// A change of a workload. Everything else of it stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadChange {
    /// Pointer to the spec of its pods.
    pub pods: String,
    /// The container that gets the amounts.
    pub container: Option<String>,
    /// Labels of nodes, beside those that are there.
    pub node_selector: BTreeMap<String, String>,
    /// Amounts by resource.
    pub resources: BTreeMap<String, Amount>,
    /// `spec.replicas`.
    pub replicas: Option<i32>,
}

/// The amount of one resource, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    /// The request.
    pub request: String,
    /// The most; `None` leaves the one that is there.
    pub limit: Option<String>,
}

/// Pointer to the spec of the pods of a kind: as Kubernetes has it; of other kinds the usual one.
pub fn pods_of(group: &str, kind: &str) -> &'static str {
    normalise::pod_spec_path(group, kind).unwrap_or(USUAL)
}

/// The object as the change leaves it.
pub(super) fn changed(object: &Value, change: &WorkloadChange) -> Result<Value, PatchError> {
    let mut result = object.clone();
    if let Some(replicas) = change.replicas {
        let spec = result.get_mut("spec").and_then(Value::as_object_mut);
        let spec = spec.ok_or_else(|| failed("it has no spec, whose replicas could be set"))?;
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let pods = result.pointer_mut(&change.pods).and_then(Value::as_object_mut);
    let field = change.pods.trim_start_matches('/').replace('/', ".");
    let pods = pods.ok_or_else(|| {
        failed(format!("it has no {field}: name a workload in target, whose Pods ask for what is required"))
    })?;
    let labels = change.node_selector.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    set(pods, "nodeSelector", labels);
    let Some(name) = change.container.as_ref() else { return Ok(result) };
    let container = container(pods, name, &field)?;
    let mut resources = match container.remove("resources") {
        Some(Value::Object(resources)) => resources,
        _ => Map::new(),
    };
    for (resource, Amount { request, limit }) in &change.resources {
        let known = resources.get("limits").and_then(|limits| limits.get(resource));
        if let (None, Some(known)) = (limit, known) {
            check_limit(resource, request, known)?;
        }
        set(&mut resources, "requests", [(resource.clone(), request.as_str().into())]);
        set(&mut resources, "limits", limit.iter().map(|limit| (resource.clone(), limit.as_str().into())));
    }
    if !resources.is_empty() {
        container.insert("resources".to_owned(), Value::Object(resources));
    }
    Ok(result)
}

/// The container of this name.
fn container<'a>(
    pods: &'a mut Map<String, Value>,
    name: &str,
    field: &str,
) -> Result<&'a mut Map<String, Value>, PatchError> {
    let named = |container: &Value| container.get("name").and_then(Value::as_str).map(str::to_owned);
    let all = pods.get_mut("containers").and_then(Value::as_array_mut);
    let all = all.ok_or_else(|| failed(format!("it has no {field}.containers")))?;
    let names: Vec<String> = all.iter().filter_map(named).collect();
    let found = all.iter_mut().find(|container| named(container).as_deref() == Some(name));
    found.and_then(Value::as_object_mut).ok_or_else(|| {
        let names = names.join(", ");
        failed(format!("it has no container {name} in {field}.containers (it has {names}): change container"))
    })
}

/// A limit that the chart sets has to leave room for the request.
fn check_limit(resource: &str, request: &str, limit: &Value) -> Result<(), PatchError> {
    let written = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
    let amounts = quantity::thousandths(request).zip(quantity::thousandths(&written));
    if amounts.is_some_and(|(request, limit)| request > limit) {
        return Err(failed(format!(
            "the chart limits {resource} to {written}, which is smaller than the request {request}: write a limit into the requirement"
        )));
    }
    Ok(())
}

/// Sets entries of a map within a map; where there is none and there are some, it is made.
fn set(parent: &mut Map<String, Value>, field: &str, entries: impl IntoIterator<Item = (String, Value)>) {
    let entries: Map<String, Value> = entries.into_iter().collect();
    if entries.is_empty() {
        return;
    }
    match parent.get_mut(field) {
        Some(Value::Object(map)) => map.extend(entries),
        _ => {
            parent.insert(field.to_owned(), Value::Object(entries));
        }
    }
}

fn failed(what: impl Into<String>) -> PatchError {
    PatchError::Workload { what: what.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gpu(pods: &str) -> WorkloadChange {
        let amount = |request: &str, limit: Option<&str>| Amount {
            request: request.to_owned(),
            limit: limit.map(str::to_owned),
        };
        WorkloadChange {
            pods: pods.to_owned(),
            container: Some("web".to_owned()),
            node_selector: [("avx512".to_owned(), "true".to_owned())].into(),
            resources: [
                ("cpu".to_owned(), amount("500m", None)),
                ("nvidia.com/gpu".to_owned(), amount("1", Some("1"))),
            ]
            .into(),
            replicas: None,
        }
    }

    fn pod() -> Value {
        json!({"nodeSelector": {"disk": "nvme"}, "containers": [
            {"name": "log"}, {"name": "web", "image": "w", "resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "1"}}},
        ]})
    }

    #[test]
    fn every_kind_of_workload_asks_for_it_where_it_has_its_pods() {
        let kinds = [
            ("", "Pod", "/spec"),
            ("apps", "Deployment", "/spec/template/spec"),
            ("apps", "StatefulSet", "/spec/template/spec"),
            ("apps", "DaemonSet", "/spec/template/spec"),
            ("apps", "ReplicaSet", "/spec/template/spec"),
            ("", "ReplicationController", "/spec/template/spec"),
            ("batch", "Job", "/spec/template/spec"),
            ("batch", "CronJob", "/spec/jobTemplate/spec/template/spec"),
            ("example.com", "Machine", "/spec/template/spec"),
        ];
        for (group, kind, pods) in kinds {
            assert_eq!(pods_of(group, kind), pods, "{kind}");
            let mut object = pods
                .split('/')
                .skip(1)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .fold(pod(), |inner, name| json!({name: inner}));
            object["kind"] = json!(kind);
            let after = changed(&object, &gpu(pods)).unwrap();
            let pod = after.pointer(pods).unwrap();
            assert_eq!(pod["nodeSelector"], json!({"disk": "nvme", "avx512": "true"}), "{kind}");
            assert_eq!(
                pod["containers"][1]["resources"],
                json!({"requests": {"memory": "1Gi", "cpu": "500m", "nvidia.com/gpu": "1"}, "limits": {"cpu": "1", "nvidia.com/gpu": "1"}}),
                "{kind}"
            );
            assert_eq!(pod["containers"][0], json!({"name": "log"}), "{kind}");
        }
    }

    #[test]
    fn replicas_are_set_where_the_chart_has_none() {
        let change =
            WorkloadChange { replicas: Some(2), pods: USUAL.to_owned(), ..WorkloadChange::default() };
        let after = changed(&json!({"spec": {"template": {"spec": {}}}}), &change).unwrap();
        assert_eq!(after, json!({"spec": {"replicas": 2, "template": {"spec": {}}}}));
    }

    #[test]
    fn a_container_that_is_not_there_and_a_kind_without_pods_are_refused() {
        let mut change = gpu(USUAL);
        let object = json!({"spec": {"template": {"spec": pod()}}});
        change.container = Some("nginx".to_owned());
        assert_eq!(
            changed(&object, &change).unwrap_err().to_string(),
            "it has no container nginx in spec.template.spec.containers (it has log, web): change container"
        );
        assert_eq!(
            changed(&json!({"data": {}}), &gpu(USUAL)).unwrap_err().to_string(),
            "it has no spec.template.spec: name a workload in target, whose Pods ask for what is required"
        );
    }

    #[test]
    fn a_request_above_the_limit_of_the_chart_is_refused() {
        let mut change = gpu(USUAL);
        let object = json!({"spec": {"template": {"spec": pod()}}});
        change.resources.get_mut("cpu").unwrap().request = "2".to_owned();
        assert_eq!(
            changed(&object, &change).unwrap_err().to_string(),
            "the chart limits cpu to 1, which is smaller than the request 2: write a limit into the requirement"
        );
    }
}
