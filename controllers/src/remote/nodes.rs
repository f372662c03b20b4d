//! Counts and sums what the nodes of a cluster offer. Of each node only that is kept.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use serde_json::Value;

use super::quantity::Sum;
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
pub struct Nodes(BTreeMap<String, Facts>);

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
    /// Lists, then watches from there. A list counts though no watch follows it.
    pub async fn follow(
        server: &dyn ApiServer,
    ) -> ApiResult<(Self, ApiResult<BoxStream<'static, ApiResult<WatchEvent>>>)> {
        let mut nodes = Self::default();
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
        let watch = Request::new(Method::Get, "/api/v1/nodes").query("resourceVersion", version);
        Ok((nodes, server.watch(watch).await))
    }

    /// Takes one event in.
    pub fn event(&mut self, event: &WatchEvent) {
        match event {
            WatchEvent::Applied(node) => self.put(node),
            WatchEvent::Deleted(node) => {
                self.0.remove(at(node, "/metadata/name").as_str().unwrap_or_default());
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
        self.0.insert(name, Facts { ready, allocatable });
    }

    /// Counts, and sums over ready nodes.
    pub fn summary(&self) -> Summary {
        let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
        for (name, amount) in self.0.values().filter(|node| node.ready).flat_map(|node| &node.allocatable) {
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
            ready: count(self.0.values().filter(|node| node.ready).count()),
            total: count(self.0.len()),
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
}
