//! Sums what the Pods of each node request. They are read page by page, and nothing but the sums is kept.

use emco_engine::hardware::{Amounts, Requested, amounts};
use serde_json::Value;

use super::wire::at;
use crate::api::{ApiResult, ApiServer, Method, Request, pages};

/// Pods in a page.
const PAGE: &str = "250";
/// Nodes that are kept, no name of which is longer; and resources of each.
const NODES: usize = 50_000;
const NAME: usize = 253;
const PER_NODE: usize = 256;

/// Requests of the Pods of each node, as the scheduler counts them: those that ended request nothing.
pub async fn requested(server: &dyn ApiServer) -> ApiResult<Requested> {
    let mut all = Requested::new();
    let request = Request::new(Method::Get, "/api/v1/pods").query("limit", PAGE);
    pages(server, request, |pod| add(&mut all, &pod)).await?;
    Ok(all)
}

fn add(all: &mut Requested, pod: &Value) {
    let Some(node) = at(pod, "/spec/nodeName").as_str().filter(|node| (1..=NAME).contains(&node.len()))
    else {
        return;
    };
    if matches!(at(pod, "/status/phase").as_str(), Some("Succeeded" | "Failed")) {
        return;
    }
    if all.len() >= NODES && !all.contains_key(node) {
        return;
    }
    let known = all.entry(node.to_owned()).or_default();
    let mut own = of(at(pod, "/spec"));
    if known.len() + own.len() > PER_NODE {
        own.retain(|name, _| known.contains_key(name));
    }
    plus(known, &own);
}

/// The request of a Pod: all of its containers together, or the largest of those that come before them, if that is more.
fn of(spec: &Value) -> Amounts {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let requests = |container: &Value| amounts(container.pointer("/resources/requests"));
    let (mut running, mut before) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let own = requests(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            // It goes on beside all that follow.
            plus(&mut running, &own);
            most(&mut before, &running);
        } else {
            let mut beside = running.clone();
            plus(&mut beside, &own);
            most(&mut before, &beside);
        }
    }
    for container in list("containers") {
        plus(&mut running, &requests(container));
    }
    most(&mut running, &before);
    // A request of the Pod as a whole takes the place of the sum.
    running.extend(amounts(spec.pointer("/resources/requests")));
    plus(&mut running, &amounts(spec.get("overhead")));
    running
}

fn plus(all: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let known = all.entry(name.clone()).or_default();
        *known = known.saturating_add(*amount);
    }
}

fn most(all: &mut Amounts, others: &Amounts) {
    for (name, amount) in others {
        let known = all.entry(name.clone()).or_default();
        *known = (*known).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(cpu: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: &Value) -> i128 {
        of(spec)["cpu"]
    }

    #[test]
    fn a_pod_requests_what_the_scheduler_counts() {
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = json!("Always");
        assert_eq!(cpu(&json!({"containers": [container("1"), container("500m")]})), 1500);
        assert_eq!(cpu(&json!({"containers": [container("1")], "initContainers": [container("2")]})), 2000);
        assert_eq!(
            cpu(&json!({"containers": [container("1")], "initContainers": [sidecar, container("2")]})),
            2100
        );
        assert_eq!(cpu(&json!({"containers": [container("1")], "overhead": {"cpu": "50m"}})), 1050);
        assert_eq!(
            cpu(&json!({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}})),
            3000
        );
    }

    #[test]
    fn pods_that_ended_or_have_no_node_request_nothing() {
        let pod = |node: Value, phase: &str| json!({"spec": {"nodeName": node, "containers": [container("1")]}, "status": {"phase": phase}});
        let mut all = Requested::new();
        for pod in [
            pod(json!("a"), "Running"),
            pod(json!("a"), "Pending"),
            pod(json!("a"), "Succeeded"),
            pod(json!("a"), "Failed"),
            pod(Value::Null, "Pending"),
        ] {
            add(&mut all, &pod);
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all["a"]["cpu"], 2000);
    }

    #[test]
    fn a_node_whose_pods_request_all_sorts_of_things_keeps_some() {
        let mut all = Requested::new();
        for number in 0..1000 {
            let requests = json!({"cpu": "1", (format!("acme.example/r{number}")): "1"});
            let pod =
                json!({"spec": {"nodeName": "a", "containers": [{"resources": {"requests": requests}}]}});
            add(&mut all, &pod);
        }
        assert!(all["a"].len() <= PER_NODE);
        assert_eq!(all["a"]["cpu"], 1_000_000);
    }
}
