//! Objects of a deployment in other namespaces and of the whole cluster.

use std::sync::Arc;

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{deployment, objects, packed};
use crate::api::ApiError;
use crate::memory::Fault;

/// One object of the whole cluster, one in the namespace of the logical cloud, and two in a namespace that the chart makes.
const AGENT: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tools}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watcher}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: here}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: tools}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: example.com/agent}]}
";

/// The agent on the clusters `a` and `b`, about to be deployed.
fn agent() -> Life {
    let all = objects();
    let life = Life::with(&all[..all.len() - 2]);
    life.put(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent", "namespace": "team-a"},
        "binaryData": {"agent.tgz": packed("agent", "1.0.0", &[("templates/agent.yaml", AGENT)])}}),
    );
    let chart = json!({"configMapRef": {"name": "agent", "key": "agent.tgz"}});
    life.put(&emco(
        "CompositeApp",
        Some("team-a"),
        "shop",
        &json!({"apps": [{"name": "agent", "chart": chart}]}),
    ));
    let mut dig = deployment("edge");
    let spec = dig["spec"].as_object_mut().unwrap();
    spec.remove("compositeProfileRef");
    spec["placement"].as_object_mut().unwrap().remove("apps");
    life.put(&dig);
    life
}

fn status(life: &Life) -> Value {
    life.dig()["status"].clone()
}

/// Defect 17 of the first EMCO, which found what was in one namespace alone.
#[tokio::test(start_paused = true)]
async fn objects_of_other_namespaces_and_of_the_cluster_are_in_the_status() {
    let mut life = agent();
    life.edges["a"].set_workloads_ready(false);
    life.settle().await;
    let said = status(&life);
    assert_eq!(
        (&said["summary"]["resources"], &said["ready"]["notReady"]),
        (&json!("7/8"), &json!(1)),
        "{said:#}"
    );
    let unready = &said["failing"][0]["message"];
    assert!(unready.to_string().contains("Deployment/tools/agent: "), "{unready}");
    life.edges["a"].set_workloads_ready(true);
    life.edges["a"].set_status("/apis/apps/v1/namespaces/tools/deployments/agent", &json!({})).unwrap();
    life.settle().await;
    let said = status(&life);
    assert_eq!(
        (&said["summary"]["resources"], &said["deployed"]["applied"]),
        (&json!("8/8"), &json!(8)),
        "{said:#}"
    );

    // The object of the whole cluster goes, and cannot be made again.
    life.edges["b"].faults(Some(Arc::new(|request, _| {
        let refused = || ApiError::Status {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: "clusterroles is forbidden".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        let is_role = request.path.as_str().ends_with("/clusterroles/watcher");
        (request.method != crate::api::Method::Get && is_role).then(|| Fault::Refuse(refused()))
    })));
    life.edges["b"].remove("/apis/rbac.authorization.k8s.io/v1/clusterroles/watcher");
    life.settle().await;
    let said = status(&life);
    assert_eq!(
        (&said["summary"]["resources"], &said["ready"]["notPresent"]),
        (&json!("7/8"), &json!(1)),
        "{said:#}"
    );
    let failing = &said["failing"][0];
    assert_eq!((&failing["cluster"], &failing["reason"]), (&json!("acme/b"), &json!("Forbidden")));
    assert!(failing["message"].to_string().contains("ClusterRole/watcher: "), "{failing}");
}
