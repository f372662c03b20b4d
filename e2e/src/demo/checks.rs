//! Waits until exactly what should run is seen on the edges themselves, whatever the hub says.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context as _, Result};
use emco_e2e::wait::{Objects, wait_for};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::stage::Stage;
use super::{SOON, sample};

/// The workloads of one edge: `Deployments`, `StatefulSets` and `DaemonSets` by name, each with how many Pods are to be ready.
pub struct Edge {
    name: &'static str,
    deployments: &'static [(&'static str, i32)],
    stateful_sets: &'static [(&'static str, i32)],
    daemon_sets: &'static [(&'static str, i32)],
}

/// After the first deployment.
pub const BEFORE: [Edge; 3] = [
    Edge {
        name: "berlin",
        deployments: &[("shop-cache", 1), ("shop-storefront", 2)],
        stateful_sets: &[("shop-stock", 1)],
        daemon_sets: &[("shop-telemetry", 3)],
    },
    Edge { name: "oslo", deployments: &[], stateful_sets: &[], daemon_sets: &[("shop-telemetry", 2)] },
    PORTO,
];

/// After the stock moved.
pub const AFTER: [Edge; 3] = [
    Edge {
        name: "berlin",
        deployments: &[("shop-cache", 1), ("shop-storefront", 2)],
        stateful_sets: &[],
        daemon_sets: &[("shop-telemetry", 3)],
    },
    Edge {
        name: "oslo",
        deployments: &[],
        stateful_sets: &[("shop-stock", 1)],
        daemon_sets: &[("shop-telemetry", 2)],
    },
    PORTO,
];

/// One storefront only: its label says that it is small.
const PORTO: Edge = Edge {
    name: "porto",
    deployments: &[("shop-cache", 1), ("shop-storefront", 1)],
    stateful_sets: &[],
    daemon_sets: &[("shop-telemetry", 1)],
};

/// Waits until each edge runs exactly these workloads.
pub async fn runs(stage: &Stage, edges: &[Edge]) -> Result<()> {
    for edge in edges {
        let Edge { name, deployments, stateful_sets, daemon_sets } = edge;
        exactly(stage, name, deployments, |object: &Deployment| object.status.as_ref()?.ready_replicas)
            .await?;
        exactly(stage, name, stateful_sets, |object: &StatefulSet| object.status.as_ref()?.ready_replicas)
            .await?;
        exactly(stage, name, daemon_sets, |object: &DaemonSet| Some(object.status.as_ref()?.number_ready))
            .await?;
    }
    Ok(())
}

async fn exactly<K>(
    stage: &Stage,
    edge: &str,
    wanted: &[(&str, i32)],
    ready: impl Fn(&K) -> Option<i32>,
) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let wanted: BTreeMap<String, i32> =
        wanted.iter().map(|(name, ready)| (format!("{}/{name}", sample::PROJECT), *ready)).collect();
    let api: Api<K> = stage.bed.edge(edge).api(sample::PROJECT).await?;
    let what = format!("the {}s of {edge}", K::kind(&()));
    let check = |objects: &Objects<K>| {
        let found: BTreeMap<String, i32> =
            objects.iter().map(|(name, object)| (name.clone(), ready(object).unwrap_or(0))).collect();
        if found == wanted { Ok(()) } else { Err(format!("ready are {found:?} instead of {wanted:?}")) }
    };
    wait_for(api, SOON, &what, check).await.context("an edge does not run what the hub says")
}

/// Waits until an edge runs no workload of the project.
pub async fn empty(stage: &Stage, edge: &str) -> Result<()> {
    exactly::<Deployment>(stage, edge, &[], |_| None).await?;
    exactly::<StatefulSet>(stage, edge, &[], |_| None).await?;
    exactly::<DaemonSet>(stage, edge, &[], |_| None).await
}
