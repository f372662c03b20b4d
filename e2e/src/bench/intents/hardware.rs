//! Measures a plan of ten apps that need hardware, where ten thousand clusters have it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use emco_engine::apis::ApiList;
use emco_engine::hardware::{Node, NodeFacts, Read};
use emco_engine::plan::plan;
use emco_engine::snapshot::Snapshot;
use serde_json::{Value, json};

use super::{CLUSTERS, chart_of, object, resource, snapshot};

const APPS: usize = 10;
/// Nodes of each cluster, every one with so many GPUs.
const NODES: usize = 4;
const GPUS: usize = 4;
const GPU: &str = "example.com/gpu";
const LABEL: &str = "example.com/avx512";
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: \"{{ .Chart.Name }}\"}
spec:
  selector: {matchLabels: {app: \"{{ .Chart.Name }}\"}}
  template:
    metadata: {labels: {app: \"{{ .Chart.Name }}\"}}
    spec: {containers: [{name: main, image: example.com/main}]}
";

/// Seconds of a plan in which each app goes to one of the clusters, or to all.
pub fn planned(every: bool) -> Result<f64> {
    let snapshot = needing(every)?;
    let start = Instant::now();
    let plan = plan(&snapshot).map_err(|refusal| anyhow!("{refusal}"))?;
    let took = start.elapsed().as_secs_f64();
    let cells: usize = plan.assignment.values().map(BTreeMap::len).sum();
    let wanted = if every { APPS * CLUSTERS } else { APPS };
    ensure!(cells == wanted, "{cells} pairs of app and cluster instead of {wanted}");
    Ok(took)
}

fn needing(every: bool) -> Result<Snapshot> {
    let mut wanted = snapshot(CLUSTERS, "", None)?;
    let names: Vec<String> = (0..APPS).map(|number| format!("app{number}")).collect();
    let placement = if every {
        json!({"allOf": [{"selector": {}}]})
    } else {
        json!({"anyOf": [{"from": [{"selector": {}}]}]})
    };
    let spec = json!({
        "compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "edge"}, "placement": placement,
        "intents": [{"kind": "HardwareIntent", "name": "gpu"}],
    });
    wanted.dig = object("DeploymentIntentGroup", "shop", &spec)?;
    let apps: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "chart": {"configMapRef": {"name": name}}})).collect();
    wanted.composite_app = Some(object("CompositeApp", "shop", &json!({"apps": apps}))?);
    wanted.charts = names
        .iter()
        .map(|name| Ok((name.clone(), chart_of(name, DEPLOYMENT)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    wanted.intents.clear();
    let consumers: Vec<Value> = names.iter().map(|name| consumer(name)).collect();
    let intent = object("HardwareIntent", "gpu", &json!({"consumers": consumers}))?;
    wanted.hardware.insert("gpu".to_owned(), intent);
    let apis = Arc::new(ApiList { resources: vec![resource("apps", "Deployment", "deployments")] });
    for facts in wanted.clusters.values_mut() {
        facts.apis = Some(Arc::clone(&apis));
        // Of each its own, as it is read.
        facts.nodes = Some(Arc::new(nodes()));
    }
    Ok(wanted)
}

fn consumer(app: &str) -> Value {
    json!({
        "name": app, "app": app, "container": "main",
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
        "requirements": [
            {"name": "gpu", "resource": {"name": GPU, "request": 1}},
            {"name": "memory", "resource": {"name": "memory", "request": "1Gi", "limit": "2Gi"}},
            {"name": "avx", "nodeSelector": {"matchLabels": {LABEL: "true"}}},
        ],
    })
}

fn nodes() -> NodeFacts {
    let node = json!({
        "metadata": {"labels": {LABEL: "true"}}, "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: GPUS.to_string()},
        },
    });
    let name = |number: usize| format!("node{number}");
    let all = (0..NODES).map(|number| (name(number), Node::read(&node, |key| key == LABEL))).collect();
    let used = BTreeMap::from([("memory".to_owned(), 1_000), ("cpu".to_owned(), 500)]);
    let requested = (0..NODES).map(|number| (name(number), used.clone())).collect();
    NodeFacts {
        nodes: Read::Done(Arc::new(all)),
        requested: Read::Done(Arc::new(requested)),
        given: Vec::new(),
    }
}
