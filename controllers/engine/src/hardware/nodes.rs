//! Holds what is known of the nodes of one cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::demand::Demand;
use super::quantity;

/// Resources kept of one node.
const PER_NODE: usize = 64;
/// No name of a resource is longer, and no value of a label.
const NAME: usize = 317;
const LABEL: usize = 63;

/// Amounts in thousandths, by resource.
pub type Amounts = BTreeMap<String, i128>;
/// Nodes by name.
pub type Nodes = BTreeMap<String, Node>;
/// Requests of the Pods of each node, by its name.
pub type Requested = BTreeMap<String, Amounts>;

/// The outcome of reading something on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Read<T> {
    /// It was not read yet, or cannot be.
    #[default]
    Not,
    /// The registered credentials may not read it.
    Forbidden,
    /// It was read.
    Done(T),
}

impl<T> Read<T> {
    /// The content, if it was read.
    pub const fn done(&self) -> Option<&T> {
        match self {
            Self::Done(read) => Some(read),
            Self::Not | Self::Forbidden => None,
        }
    }
}

/// One node, as far as hardware is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// It takes new Pods: it is ready, not cordoned, and has no taint that keeps them off.
    pub open: bool,
    /// Labels, of the keys that somebody asked for.
    pub labels: BTreeMap<String, String>,
    /// Amounts that Pods may request of it.
    pub allocatable: Amounts,
    /// Devices that it has beside those, and that nobody gets now: their plugin restarts, or they are ill.
    pub away: Amounts,
}

impl Node {
    /// Reads a node as the API server has it; labels of other keys than these are left out.
    pub fn read(node: &Value, keep: impl Fn(&str) -> bool) -> Self {
        let list = |pointer: &str| node.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let is = |value: &Value, field: &str, what: &str| text(value, field).as_deref() == Some(what);
        let ready =
            list("/status/conditions").any(|one| is(one, "type", "Ready") && is(one, "status", "True"));
        let cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
        let tainted =
            list("/spec/taints").any(|one| is(one, "effect", "NoSchedule") || is(one, "effect", "NoExecute"));
        let allocatable = amounts(node.pointer("/status/allocatable"));
        let mut away = amounts(node.pointer("/status/capacity"));
        away.retain(|name, amount| {
            *amount = amount.saturating_sub(allocatable.get(name).copied().unwrap_or_default());
            name.contains('/') && *amount > 0
        });
        let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        Self {
            open: ready && !cordoned && !tainted,
            labels: labels
                .filter(|(key, _)| keep(key))
                .filter_map(|(key, value)| Some((key, value.as_str().filter(|value| value.len() <= LABEL)?)))
                .map(|(key, value)| (key.clone(), value.to_owned()))
                .collect(),
            allocatable,
            away,
        }
    }
}

/// A map of quantities, as the API server has it.
pub fn amounts(quantities: Option<&Value>) -> Amounts {
    let all = quantities.and_then(Value::as_object).into_iter().flatten();
    let read = |(name, amount): (&String, &Value)| {
        let milli = match amount {
            Value::String(text) => quantity::thousandths(text),
            Value::Number(number) => quantity::thousandths(&number.to_string()),
            _ => None,
        };
        Some((name.clone(), milli?))
    };
    all.filter(|(name, _)| name.len() <= NAME).take(PER_NODE).filter_map(read).collect()
}

/// All that is known of the nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The nodes.
    pub nodes: Read<Arc<Nodes>>,
    /// Requests of their Pods.
    pub requested: Read<Arc<Requested>>,
    /// Demands that deployments were just given there, and that no Pod is known of yet.
    pub given: Vec<Arc<Demand>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_keeps_labels_that_are_asked_for_and_is_open_for_pods() {
        let node = |spec: Value, ready: &str| {
            let node = json!({
                "metadata": {"name": "a", "labels": {"gpu": "yes", "other": "no"}}, "spec": spec,
                "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"cpu": "1500m", "bad": "x"}},
            });
            Node::read(&node, |key| key == "gpu")
        };
        let open = node(json!({}), "True");
        assert!(open.open);
        assert_eq!(open.labels, BTreeMap::from([("gpu".to_owned(), "yes".to_owned())]));
        assert_eq!(open.allocatable, Amounts::from([("cpu".to_owned(), 1500)]));
        assert!(!node(json!({}), "False").open);
        assert!(!node(json!({"unschedulable": true}), "True").open);
        let taint = |effect: &str| json!({"taints": [{"key": "a", "effect": effect}]});
        assert!(!node(taint("NoSchedule"), "True").open && !node(taint("NoExecute"), "True").open);
        assert!(node(taint("PreferNoSchedule"), "True").open);
    }

    #[test]
    fn devices_whose_plugin_restarts_are_away_and_what_is_reserved_is_not() {
        let status =
            json!({"capacity": {"cpu": "4", "gpu/x": "2"}, "allocatable": {"cpu": "3", "gpu/x": "0"}});
        let node = Node::read(&json!({"status": status}), |_| true);
        assert_eq!(node.away, Amounts::from([("gpu/x".to_owned(), 2000)]));
    }
}
