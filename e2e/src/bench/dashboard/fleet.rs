//! Stores clusters, projects and deployments with statuses as an operator leaves them.

use anyhow::{Context as _, Result};
use emco_e2e::bed::Bed;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};

use super::is_ready;

pub const CLUSTERS: usize = 10_000;
pub const DEPLOYMENTS: usize = 500;
pub const PROJECTS: usize = 50;
/// Of each deployment.
const ROWS: usize = CLUSTERS / DEPLOYMENTS;
const PROVIDERS: usize = 10;
const IN_FLIGHT: usize = 32;
const API: &str = "/apis/emco.io/v1alpha1";

pub fn project(number: usize) -> String {
    format!("project-{number:02}")
}

pub fn deployment(number: usize) -> String {
    format!("shop-{number:03}")
}

fn provider(number: usize) -> String {
    format!("provider-{}", number % PROVIDERS)
}

fn cluster(number: usize) -> String {
    format!("edge-{number:05}")
}

/// An object of EMCO's, where it is made, and its status.
struct Made {
    path: String,
    object: Value,
    status: Value,
}

impl Made {
    fn new(kind: &str, plural: &str, namespace: &str, name: &str, spec: &Value, status: Value) -> Self {
        let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        Self { path: format!("{API}/namespaces/{namespace}/{plural}"), object, status }
    }

    async fn make(self, client: Client) -> Result<()> {
        let body = serde_json::to_vec(&self.object)?;
        let request =
            http::Request::post(&self.path).header("content-type", "application/json").body(body)?;
        client.request::<Value>(request).await.with_context(|| self.path.clone())?;
        let name = self.object["metadata"]["name"].as_str().unwrap_or_default();
        patch(&client, &format!("{}/{name}/status", self.path), &json!({"status": self.status})).await
    }
}

async fn patch(client: &Client, path: &str, patch: &Value) -> Result<()> {
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(patch)?)?;
    client.request::<Value>(request).await.map(drop).with_context(|| path.to_owned())
}

fn ready(status: &str, reason: &str, message: &str) -> Value {
    json!([{"type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-21T07:00:00Z", "observedGeneration": 1}])
}

fn clusters() -> impl Iterator<Item = Made> {
    (0..CLUSTERS).map(|number| {
        let (provider, name) = (provider(number), cluster(number));
        let status = json!({"observedGeneration": 1, "provider": provider, "id": format!("{provider}/{name}"),
            "kubernetesVersion": "v1.36.3", "conditions": ready("True", "Reachable", "")});
        let spec = json!({"access": {"kubeconfigSecretRef": {"name": "none"}}});
        Made::new("Cluster", "clusters", &provider, &name, &spec, status)
    })
}

fn deployments() -> impl Iterator<Item = Made> {
    (0..DEPLOYMENTS).flat_map(|number| {
        let (namespace, name) = (project(number % PROJECTS), deployment(number));
        let well = is_ready(number % PROJECTS);
        let conditions = if well {
            ready("True", "Ready", "")
        } else {
            ready(
                "False",
                "Invalid",
                "1 of 20 clusters failed: Service/till-gate: the port must be between 1 and 65535",
            )
        };
        let state = if well { "Instantiated" } else { "InstantiateFailed" };
        let group = Made::new(
            "DeploymentIntentGroup",
            "deploymentintentgroups",
            &namespace,
            &name,
            &json!({"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}}),
            json!({"observedGeneration": 1, "state": state, "revision": 1, "conditions": conditions}),
        );
        [group, shard(&namespace, &name, number)]
    })
}

fn shard(namespace: &str, deployment: &str, number: usize) -> Made {
    let rows: Vec<Value> = (1..=ROWS)
        .map(|id| {
            let at = number * ROWS + id - 1;
            json!({"id": id, "cluster": format!("{}/{}", provider(at), cluster(at)), "target": "t1"})
        })
        .collect();
    let owner = json!({"kind": "DeploymentIntentGroup", "name": deployment, "uid": "u"});
    let spec = json!({"format": 1, "owner": owner, "slot": 0, "bits": 0, "epoch": 1, "nextId": ROWS + 1,
        "combinations": [{"name": "t1", "revision": 1, "apps": [{"app": "web", "set": "s1"}, {"app": "db", "set": "s2"}]}],
        "clusters": rows});
    let status = json!({"observedGeneration": 1,
        "asWanted": [{"ids": format!("1-{ROWS}"), "applied": "t1", "generation": 1, "ready": 2, "total": 2}]});
    let mut made =
        Made::new("SyncShard", "syncshards", namespace, &format!("dig-{deployment}-1"), &spec, status);
    made.object["metadata"]["labels"] = json!({"emco.io/owner": "aa",
        "emco.io/owner-kind": "DeploymentIntentGroup", "emco.io/owner-name": deployment});
    made
}

/// Stores everything, with a Lease that lasts as long as the measurement.
pub async fn make(bed: &Bed) -> Result<()> {
    let namespace =
        |name: &str| format!("---\n{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n");
    let mut first = namespace("emco-system");
    first.extend((0..PROVIDERS).map(|number| namespace(&provider(number))));
    first.extend((0..PROJECTS).map(|number| namespace(&project(number))));
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ");
    first.push_str(&format!(
        "---\n{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: emco-operator, namespace: emco-system}}, \
         spec: {{holderIdentity: a, leaseDurationSeconds: 7200, renewTime: \"{now}\"}}}}\n"
    ));
    bed.hub().kubectl().apply(&first).await?;
    let client = bed.hub().client().await?;
    stream::iter(clusters().chain(deployments()))
        .map(|made| made.make(client.clone()))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}

/// Has a deployment say something else, as an operator does.
pub async fn say(bed: &Bed, namespace: &str, name: &str, message: &str) -> Result<()> {
    let client = bed.hub().client().await?;
    let path = format!("{API}/namespaces/{namespace}/deploymentintentgroups/{name}/status");
    let conditions = ready("False", "Invalid", message);
    patch(&client, &path, &json!({"status": {"conditions": conditions}})).await
}
