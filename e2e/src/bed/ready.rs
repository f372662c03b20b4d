//! Waits until tests may use a plane whose programs were started.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, PersistentVolume, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, Client};

use super::bootstrap::VOLUMES;
use super::plane::Plane;
use super::spec::Parts;
use crate::programs::Program;
use crate::wait::{wait_for, wait_for_object};

const PATIENCE: Duration = Duration::from_mins(3);
/// A server that does not listen yet can only be asked again.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Waits until the API server answers, and has the namespaces that it makes itself.
pub(super) async fn api_server(plane: &Plane, client: &Client) -> Result<()> {
    let process = plane.process(Program::ApiServer).await?;
    let answers = async {
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).context("not a request")?;
            if client.request_text(request).await.is_ok() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    tokio::select! {
        how = process.ended() => bail!("{} ended ({how}):\n{}", process.name(), process.log_tail(30)),
        answer = tokio::time::timeout(PATIENCE, answers) => {
            answer.with_context(|| format!("{} does not answer:\n{}", process.name(), process.log_tail(30)))??;
        }
    }
    // It says that it is ready before these are there.
    for name in ["default", "kube-system"] {
        wait_for_object(Api::<Namespace>::all(client.clone()), name, PATIENCE, |_| true).await?;
    }
    Ok(())
}

/// Waits for what the other programs make and do.
pub(super) async fn everything(plane: &Plane, client: &Client) -> Result<()> {
    if plane.spec.parts >= Parts::Controllers {
        controllers(client).await?;
    }
    if plane.spec.parts == Parts::Full {
        nodes_and_volumes(plane, client).await?;
    }
    Ok(())
}

async fn controllers(client: &Client) -> Result<()> {
    // Empty until it is aggregated: whoever is bound to it gets 403 until then.
    let has_rules = |role: &ClusterRole| role.rules.as_ref().is_some_and(|rules| rules.len() > 5);
    default_account(client, "default").await?;
    for role in ["view", "edit", "admin"] {
        wait_for_object(Api::<ClusterRole>::all(client.clone()), role, PATIENCE, has_rules).await?;
    }
    Ok(())
}

/// Waits for what every Pod of a namespace needs.
pub(super) async fn default_account(client: &Client, namespace: &str) -> Result<()> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let certificates = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    wait_for_object(accounts, "default", PATIENCE, |_| true).await?;
    wait_for_object(certificates, "kube-root-ca.crt", PATIENCE, |_| true).await?;
    Ok(())
}

async fn nodes_and_volumes(plane: &Plane, client: &Client) -> Result<()> {
    let wanted = plane.spec.nodes.len();
    wait_for(Api::<Node>::all(client.clone()), PATIENCE, "nodes that are Ready and untainted", |nodes| {
        let ready = nodes.values().filter(|node| is_ready(node)).count();
        if ready == wanted { Ok(()) } else { Err(format!("{ready} of {wanted} nodes")) }
    })
    .await?;
    wait_for(
        Api::<PersistentVolume>::all(client.clone()),
        PATIENCE,
        "volumes that are Available",
        |volumes| {
            let phase =
                |volume: &PersistentVolume| volume.status.as_ref().and_then(|status| status.phase.clone());
            let settled =
                volumes.values().filter(|volume| phase(volume).is_some_and(|phase| phase != "Pending"));
            let settled = settled.count();
            if settled == VOLUMES { Ok(()) } else { Err(format!("{settled} of {VOLUMES} volumes")) }
        },
    )
    .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    ready && taints.is_none_or(Vec::is_empty)
}
