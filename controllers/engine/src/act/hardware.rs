//! Has workloads ask for what consumers of a `HardwareIntent` require: labels of nodes, requests, limits, replicas.
//!
//! What is preferred changes no manifest: a cluster without it must be able to carry the app, too.

use emco_crds::fields::Quantity;
use emco_crds::hardware_intent::{Consumer, Importance, Requirement, ResourceRequirement, Workload};
use serde_json::{Map, json};

use super::entry::{Doing, Entry, TARGET};
use crate::edits::{Amount, WorkloadChange, pods_of};
use crate::identity::split_api_version;

/// The change of a consumer's target; `None` where it names none.
pub fn asking<'a>(intent: &'a str, consumer: &'a Consumer) -> Option<Entry<'a>> {
    let target = consumer.target.as_ref()?;
    let mut body = Map::new();
    body.insert(TARGET.to_owned(), json!({"name": target.name}));
    let doing = Doing::Asking(consumer, target, change(consumer, target));
    Some(Entry { intent, doing, secret: false, body, templates: None })
}

fn change(consumer: &Consumer, target: &Workload) -> WorkloadChange {
    let required = || {
        let all = consumer.requirements.iter();
        all.filter(|one| one.importance.unwrap_or_default() == Importance::Required)
    };
    let labels = required().filter_map(|one| one.node_selector.as_ref());
    let amount = |one: &Requirement| {
        let ResourceRequirement { name, request, limit } = one.resource.as_ref()?;
        let text = |Quantity(written): &Quantity| written.to_string();
        // Kubernetes gives nobody a part of what it limits.
        let whole = name.starts_with("hugepages-") || name.contains('/');
        let limit = limit.as_ref().or_else(|| whole.then_some(request)).map(text);
        Some((name.clone(), Amount { request: text(request), limit }))
    };
    WorkloadChange {
        pods: pods_of(split_api_version(&target.api_version).0, &target.kind).to_owned(),
        container: consumer.container.clone(),
        node_selector: labels.flat_map(|selector| selector.match_labels.clone()).collect(),
        resources: required().filter_map(amount).collect(),
        replicas: consumer.replicas,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    #[allow(clippy::needless_pass_by_value)] // written where it is called
    fn consumer(requirements: Value) -> Consumer {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
        let consumer = json!({"name": "web", "app": "web", "target": target, "container": "web", "replicas": 2,
            "requirements": requirements});
        serde_json::from_value(consumer).unwrap()
    }

    fn asked(requirements: Value) -> WorkloadChange {
        let consumer = consumer(requirements);
        change(&consumer, consumer.target.as_ref().unwrap())
    }

    #[test]
    fn devices_are_limited_to_what_is_requested_and_processors_are_not() {
        let change = asked(json!([
            {"name": "gpu", "resource": {"name": "nvidia.com/gpu", "request": 1}},
            {"name": "cpu", "resource": {"name": "cpu", "request": "500m"}},
            {"name": "memory", "resource": {"name": "memory", "request": "1Gi", "limit": "2Gi"}},
        ]));
        let limit = |name: &str| change.resources[name].limit.as_deref();
        assert_eq!((limit("nvidia.com/gpu"), limit("cpu"), limit("memory")), (Some("1"), None, Some("2Gi")));
        assert_eq!((change.replicas, change.resources["cpu"].request.as_str()), (Some(2), "500m"));
    }

    #[test]
    fn what_is_preferred_is_not_asked_for() {
        let change = asked(json!([
            {"name": "avx", "nodeSelector": {"matchLabels": {"avx": "true"}}, "importance": "Preferred"},
            {"name": "disk", "nodeSelector": {"matchLabels": {"disk": "nvme"}}},
        ]));
        assert_eq!(change.node_selector, BTreeMap::from([("disk".to_owned(), "nvme".to_owned())]));
    }

    #[test]
    fn a_consumer_without_target_changes_nothing() {
        let mut consumer =
            consumer(json!([{"name": "disk", "nodeSelector": {"matchLabels": {"disk": "nvme"}}}]));
        assert_eq!(asking("gpu", &consumer).unwrap().origin(), "HardwareIntent gpu, spec.consumers[web]");
        consumer.target = None;
        assert!(asking("gpu", &consumer).is_none());
    }
}
