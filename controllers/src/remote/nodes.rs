//! Counts and sums what the nodes of a cluster offer. Of each node only that is kept, and what somebody asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::hardware::quantity::Sum;
use emco_engine::hardware::{self, Node};
use futures::stream::BoxStream;
use serde_json::Value;

use super::wire::at;
use crate::api::{ApiResult, ApiServer, Method, Request, WatchEvent};

/// Nodes per page, and pages.
const PAGE: &str = "250";
const PAGES: usize = 200;
/// Resources reported; the first four always are.
const RESOURCES: usize = 16;
/// Resources beyond those that are named.
const OTHERS: usize = 64;
const FIRST: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];
/// Resources kept of one node.
const PER_NODE: usize = 64;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    ready: bool,
    allocatable: BTreeMap<String, String>,
}

/// All nodes of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    all: BTreeMap<String, Facts>,
    detailed: Option<DetailedNodes>,
}

/// Nodes as far as hardware is concerned, with the labels of some keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailedNodes {
    /// The keys.
    pub keys: Arc<BTreeSet<String>>,
    /// The nodes.
    pub nodes: Arc<hardware::Nodes>,
}

/// What is told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub ready: u32,
    pub total: u32,
    pub allocatable: BTreeMap<String, String>,
    /// Resources beyond those, by name only.
    pub others: Vec<String>,
}

impl Nodes {
    /// Lists, then watches from there. A list counts though no watch follows it. With `keys`, somebody asks for details.
    pub async fn follow(
        server: &dyn ApiServer,
        keys: Option<Arc<BTreeSet<String>>>,
    ) -> ApiResult<(Self, ApiResult<BoxStream<'static, ApiResult<WatchEvent>>>)> {
        let (nodes, version) = Self::list(server, keys).await?;
        let watch = Request::new(Method::Get, "/api/v1/nodes").query("resourceVersion", version);
        Ok((nodes, server.watch(watch).await))
    }

    /// Lists; answers the version that a watch begins with, too.
    pub async fn list(
        server: &dyn ApiServer,
        keys: Option<Arc<BTreeSet<String>>>,
    ) -> ApiResult<(Self, String)> {
        let detailed = keys.map(|keys| DetailedNodes { keys, nodes: Arc::default() });
        let mut nodes = Self { all: BTreeMap::new(), detailed };
        let mut next = String::new();
        let mut version = String::new();
        for _ in 0..PAGES {
            let mut request = Request::new(Method::Get, "/api/v1/nodes").query("limit", PAGE);
            if !next.is_empty() {
                request = request.query("continue", next);
            }
            let mut page = server.send(request).await?;
            if let Some(items) = at(&page, "/items").as_array() {
                for node in items {
                    nodes.put(node);
                }
            }
            next = at(&page, "/metadata/continue").as_str().map(str::to_owned).unwrap_or_default();
            if let Some(Value::String(read)) = page.pointer_mut("/metadata/resourceVersion").map(Value::take)
            {
                version = read;
            }
            if next.is_empty() {
                break;
            }
        }
        Ok((nodes, version))
    }

    /// Takes one event in.
    pub fn event(&mut self, event: &WatchEvent) {
        match event {
            WatchEvent::Applied(node) => self.put(node),
            WatchEvent::Deleted(node) => {
                let name = at(node, "/metadata/name").as_str().unwrap_or_default();
                self.all.remove(name);
                if let Some(detailed) = &mut self.detailed {
                    Arc::make_mut(&mut detailed.nodes).remove(name);
                }
            }
            WatchEvent::Bookmark(_) => {}
        }
    }

    fn put(&mut self, node: &Value) {
        let name = at(node, "/metadata/name").as_str().unwrap_or_default().to_owned();
        let conditions = at(node, "/status/conditions").as_array().map(Vec::as_slice).unwrap_or_default();
        let ready = conditions.iter().any(|c| at(c, "/type") == "Ready" && at(c, "/status") == "True");
        let offered = at(node, "/status/allocatable").as_object().into_iter().flatten();
        let allocatable = offered
            .filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.to_owned())))
            .filter(|(name, amount)| name.len() <= 128 && amount.len() <= 40)
            .take(PER_NODE)
            .collect();
        if let Some(DetailedNodes { keys, nodes }) = &mut self.detailed {
            let fresh = Node::read(node, |key| keys.contains(key));
            // Kubelets write often, and most often the same.
            if nodes.get(&name) != Some(&fresh) {
                Arc::make_mut(nodes).insert(name.clone(), fresh);
            }
        }
        self.all.insert(name, Facts { ready, allocatable });
    }

    /// Nodes for who asks for details.
    pub const fn detailed(&self) -> Option<&DetailedNodes> {
        self.detailed.as_ref()
    }

    /// Counts, and sums over ready nodes.
    pub fn summary(&self) -> Summary {
        let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
        for (name, amount) in self.all.values().filter(|node| node.ready).flat_map(|node| &node.allocatable) {
            sums.entry(name).or_default().add(amount);
        }
        let first = FIRST.iter().filter_map(|name| sums.get_key_value(name));
        let rest = sums.iter().filter(|(name, _)| !FIRST.contains(*name));
        let all: Vec<_> = first.chain(rest).collect();
        let allocatable =
            all.iter().take(RESOURCES).map(|(name, sum)| ((**name).to_owned(), sum.text())).collect();
        let others = all.iter().skip(RESOURCES).take(OTHERS).map(|(name, _)| (**name).to_owned()).collect();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Summary {
            ready: count(self.all.values().filter(|node| node.ready).count()),
            total: count(self.all.len()),
            allocatable,
            others,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ready_nodes_offer_is_summed_and_beyond_sixteen_resources_named() {
        let node = |name: &str, ready: &str| {
            let mut offers = json!({"cpu": "2", "memory": "1Gi", "pods": "110", "ephemeral-storage": "1Gi"});
            for number in 10..30 {
                offers[format!("example.com/r{number}")] = json!("1");
            }
            json!({
                "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": offers},
            })
        };
        let mut nodes = Nodes::default();
        assert!(nodes.detailed().is_none(), "nobody asks");
        for (name, ready) in [("a", "True"), ("b", "True"), ("c", "False")] {
            nodes.put(&node(name, ready));
        }
        let summary = nodes.summary();
        assert_eq!((summary.ready, summary.total, summary.allocatable.len()), (2, 3, 16));
        assert_eq!(
            (summary.allocatable["cpu"].as_str(), summary.allocatable["example.com/r21"].as_str()),
            ("4", "2")
        );
        let beyond: Vec<String> = (22..30).map(|number| format!("example.com/r{number}")).collect();
        assert_eq!(summary.others, beyond);
    }

    #[test]
    fn a_label_that_a_node_loses_counts_no_more_and_others_are_not_kept() {
        let node = |labels: Value| {
            json!({"metadata": {"name": "a", "labels": labels},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "2"}}})
        };
        let keys = Arc::new(BTreeSet::from(["gpu".to_owned()]));
        let detailed = Some(DetailedNodes { keys, nodes: Arc::default() });
        let mut nodes = Nodes { all: BTreeMap::new(), detailed };
        let seen = |nodes: &Nodes| Arc::clone(&nodes.detailed().unwrap().nodes);
        nodes.event(&WatchEvent::Applied(node(json!({"gpu": "yes", "zone": "a"}))));
        let first = seen(&nodes);
        assert_eq!(first["a"].labels, BTreeMap::from([("gpu".to_owned(), "yes".to_owned())]));
        nodes.event(&WatchEvent::Applied(node(json!({"gpu": "yes", "zone": "b"}))));
        assert!(Arc::ptr_eq(&first, &seen(&nodes)), "nothing that is kept changed");
        nodes.event(&WatchEvent::Applied(node(json!({"zone": "b"}))));
        assert!(seen(&nodes)["a"].labels.is_empty());
        nodes.event(&WatchEvent::Deleted(node(json!({}))));
        assert!(seen(&nodes).is_empty() && first.len() == 1);
    }
}
