//! Applies the same objects to every edge with a client that does nothing else: what throughput is compared with.
//!
//! It applies as the operator does (same identity, field manager of its own, force, four requests at a time for each edge) and
//! keeps watches on the same kinds open meanwhile.

use std::time::Instant;

use anyhow::{Context as _, Result};
use emco_e2e::bed::Bed;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use super::arrivals::Arrivals;

/// The namespace of what it applies.
pub const NAMESPACE: &str = "bare";
/// Requests at a time for each edge, as the operator has by default.
const IN_FLIGHT: usize = 4;
const KINDS: [(&str, &str, &str); 3] =
    [("", "v1", "ConfigMap"), ("", "v1", "Service"), ("apps", "v1", "Deployment")];

/// A client for each edge, with the kubeconfig that the operator has.
pub struct Bare {
    clients: Vec<Client>,
}

impl Bare {
    /// Connects, and makes the namespace.
    pub async fn new(bed: &Bed, edges: &[&str]) -> Result<Self> {
        let mut clients = Vec::new();
        for edge in edges {
            let config = kube::config::Kubeconfig::from_yaml(&bed.edge(edge).kubeconfig()?)?;
            let config =
                Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
            clients.push(Client::try_from(config).context("no client for an edge")?);
            bed.edge(edge).namespace(NAMESPACE).await?;
        }
        Ok(Self { clients })
    }

    /// Applies the objects on every edge. Answers when it began and when the last was seen to have come.
    pub async fn apply(
        &self,
        bed: &Bed,
        edges: &[&str],
        objects: &[Value],
        seen: &mut Arrivals,
    ) -> Result<f64> {
        let own_watches = Arrivals::watch(bed, edges).await?;
        let start = Instant::now();
        let sent = futures::future::try_join_all(self.clients.iter().map(|client| apply(client, objects)));
        let names: Vec<&str> =
            objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
        let came = seen.until(objects.len() * edges.len(), |name| names.contains(&name));
        let (_, last) = futures::future::try_join(sent, came).await?;
        drop(own_watches);
        Ok(last.duration_since(start).as_secs_f64())
    }

    /// Removes them again.
    pub async fn remove(&self) -> Result<()> {
        for client in &self.clients {
            for (group, version, kind) in KINDS {
                let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
                let api = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &resource);
                api.delete_collection(
                    &DeleteParams::default(),
                    &ListParams::default().labels("emco.io/owner"),
                )
                .await?;
            }
        }
        Ok(())
    }
}

async fn apply(client: &Client, objects: &[Value]) -> Result<()> {
    let params = PatchParams::apply("emco-bare").force();
    stream::iter(objects)
        .map(|object| {
            let (client, params) = (client.clone(), params.clone());
            async move {
                let object: DynamicObject = serde_json::from_value(marked(object))?;
                let types = object.types.clone().context("an object has no kind")?;
                let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
                let name = object.metadata.name.clone().context("an object has no name")?;
                let api = Api::<DynamicObject>::namespaced_with(client, NAMESPACE, &resource);
                api.patch(&name, &params, &Patch::Apply(&object))
                    .await
                    .with_context(|| format!("cannot apply {name}"))
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// With the marks of an operator, so that the edges have as much to store.
fn marked(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["labels"]["emco.io/owner"] = json!("00000000000000000000000000000000");
    object["metadata"]["annotations"] =
        json!({"emco.io/manifest": "00000000000000000000000000000000", "emco.io/placed-by": "bare/bare"});
    object
}
