//! The fit before a real scheduler: what it accepts is scheduled, and what it refuses of one consumer is not.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::random::Random;
use emco_e2e::wait::wait_for_some;
use emco_engine::hardware::{self, Demand, Needs, NodeFacts, Nodes, Read, Requested, Room, Verdict};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::runtime::watcher::Config;
use serde_json::{Value, json};

use super::{IN_TURN, SOON};

const SETS: u64 = 100;
const SEED: u64 = 20_261_129;
const GPU: &str = "example.com/gpu";

/// One set: nodes, and Pods in the order in which they are made.
struct Set {
    name: String,
    nodes: Vec<Value>,
    demands: Vec<Demand>,
}

/// One consumer asks for anything. Of several, the smaller ask for a part of what the larger ask for: then it does not matter which node of
/// several a scheduler takes.
fn set(number: u64, random: &mut Random) -> Set {
    let name = format!("s{number}");
    let one = number.is_multiple_of(2);
    let node = |at: u64, random: &mut Random| {
        let (cpu, gpus) = (1 + random.below(8), random.below(4));
        let zone = random.of(&["a", "b"]);
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("{name}-{at}"), "labels": {"set": name, "zone": zone},
                "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {
                "allocatable": {"cpu": cpu.to_string(), "memory": "32Gi", "pods": "110", GPU: gpus.to_string()},
                "capacity": {"cpu": cpu.to_string(), "memory": "32Gi", "pods": "110", GPU: gpus.to_string()},
            },
        })
    };
    let nodes = (0..=random.below(4)).map(|at| node(at, random)).collect();
    let demand = |at: usize, random: &mut Random| {
        let cpu = if one { 1 + random.below(5) } else { [4, 2, 1][at % 3] };
        let mut resources = BTreeMap::from([("cpu".to_owned(), i128::from(cpu) * 1000)]);
        let mut labels = BTreeMap::from([("set".to_owned(), name.clone())]);
        if one && random.below(2) == 0 {
            resources.insert(GPU.to_owned(), i128::from(1 + random.below(2)) * 1000);
        }
        if one && random.below(3) == 0 {
            labels.insert("zone".to_owned(), "a".to_owned());
        }
        let replicas = 1 + random.place(4);
        Demand {
            origin: format!("c{at}"),
            replicas,
            required: Needs { resources, labels },
            preferred: Vec::new(),
        }
    };
    let demands = (0..if one { 1 } else { 3 }).map(|at| demand(at, random)).collect();
    Set { name, nodes, demands }
}

impl Set {
    /// The fit's answer.
    fn fits(&self) -> bool {
        let ready = |node: &Value| {
            let mut node = node.clone();
            node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            (
                node["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                hardware::Node::read(&node, |_| true),
            )
        };
        let nodes: Nodes = self.nodes.iter().map(ready).collect();
        let facts = NodeFacts {
            nodes: Read::Done(Arc::new(nodes)),
            requested: Read::Done(Arc::new(Requested::new())),
            given: Vec::new(),
        };
        let all: Vec<&Demand> = self.demands.iter().collect();
        Room::new(Some(&facts), &["cpu", GPU]).takes(&all) == Verdict::Fits
    }

    fn pods(&self) -> Vec<Value> {
        let pods = |demand: &Demand| {
            let requests: BTreeMap<_, _> = demand
                .required
                .resources
                .iter()
                .map(|(name, milli)| (name.clone(), (milli / 1000).to_string()))
                .collect();
            let resources = json!({"requests": requests, "limits": requests});
            let spec = json!({
                "nodeSelector": demand.required.labels,
                "containers": [{"name": "c", "image": "example.com/c", "resources": resources}],
            });
            let pod = |at: usize| {
                json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
                    "name": format!("{}-{}-{at}", self.name, demand.origin), "namespace": "default", "labels": {"set": self.name}}})
            };
            (0..demand.replicas).map(pod).collect::<Vec<_>>()
        };
        self.demands.iter().flat_map(pods).collect()
    }
}

/// Whether the scheduler found a node for a Pod; `None` while it has not said.
fn scheduled(pod: &Pod) -> Option<bool> {
    let value = serde_json::to_value(pod).ok()?;
    if value["spec"]["nodeName"].is_string() {
        return Some(true);
    }
    let conditions = value["status"]["conditions"].as_array()?;
    let said = |one: &Value| one["type"] == "PodScheduled" && one["reason"] == "Unschedulable";
    conditions.iter().any(said).then_some(false)
}

/// Waits until the nodes of a set are ready, and untainted: only then the scheduler's answer is one about what they have.
async fn take_pods(bed: &Bed, set: &Set) -> Result<()> {
    let api: Api<Node> = Api::all(bed.edge("a").client().await?);
    let config = Config::default().labels(&format!("set={}", set.name));
    let takes = |node: &Node| {
        let Ok(value) = serde_json::to_value(node) else { return false };
        hardware::Node::read(&value, |_| false).open
    };
    wait_for_some(api, config, SOON, "nodes that take Pods", |nodes| {
        let open = nodes.values().filter(|node| takes(node)).count();
        if open == set.nodes.len() { Ok(()) } else { Err(format!("{open} of {} take Pods", set.nodes.len())) }
    })
    .await
}

async fn agrees(bed: &Bed, set: &Set) -> Result<()> {
    let kubectl = bed.edge("a").kubectl();
    for node in &set.nodes {
        kubectl.apply(&node.to_string()).await?;
    }
    take_pods(bed, set).await?;
    let mut all = true;
    for pod in set.pods() {
        kubectl.apply(&pod.to_string()).await?;
        let name = pod["metadata"]["name"].as_str().context("a Pod without name")?;
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let api = bed.edge("a").api::<Pod>("default").await?;
        let found = wait_for_some(api, config, SOON, name, |pods| {
            pods.values().next().and_then(scheduled).ok_or_else(|| "the scheduler has not said".to_owned())
        });
        all &= found.await?;
    }
    let (fits, one) = (set.fits(), set.demands.len() == 1);
    ensure!(!fits || all, "{}: accepted, and not scheduled: {:?} on {:?}", set.name, set.demands, set.nodes);
    ensure!(
        fits || !one || !all,
        "{}: refused, and scheduled: {:?} on {:?}",
        set.name,
        set.demands,
        set.nodes
    );
    let label = format!("set={}", set.name);
    kubectl.run(&["delete", "pods", "-l", &label, "--now"]).await?;
    kubectl.run(&["delete", "nodes", "-l", &label]).await.map(drop)
}

#[tokio::test]
async fn what_the_fit_accepts_is_scheduled_and_what_it_refuses_of_one_is_not() {
    let (bed, _turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        let mut random = Random(SEED);
        let (mut accepted, mut refused) = (0, 0);
        for number in 0..SETS {
            let set = set(number, &mut random);
            *(if set.fits() { &mut accepted } else { &mut refused }) += 1;
            agrees(bed, &set).await?;
        }
        ensure!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused: too much alike");
        Ok(())
    }))
    .await;
}
