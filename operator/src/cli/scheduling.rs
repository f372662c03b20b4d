//! Says whether a cluster takes work: cordon, uncordon and drain.

use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_crds::names::manager;
use emco_crds::{Cluster, ClusterProvider};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::args::{DrainArgs, NamedCluster};
use super::hub::{self, Hub};
use super::{Outcome, print, watched};

/// The Clusters of a provider, and the name of one of them.
pub struct HubCluster {
    pub api: Api<Cluster>,
    pub namespace: String,
    pub name: String,
}

/// The namespace of a provider's Clusters; `None` where there is no such provider.
async fn namespace_of(hub: &Hub, provider: &str) -> kube::Result<Option<String>> {
    let found = Api::<ClusterProvider>::all(hub.client.clone()).get_opt(provider).await?;
    Ok(found.map(|found| found.spec.namespace.unwrap_or_else(|| provider.to_owned())))
}

/// Finds where a cluster is that is named PROVIDER/CLUSTER.
pub async fn locate(hub: &Hub, id: &str) -> anyhow::Result<HubCluster> {
    let (provider, name) = id.split_once('/').context("write PROVIDER/CLUSTER, such as acme/berlin")?;
    let namespace = match namespace_of(hub, provider).await {
        Err(error) if !hub::is_forbidden(&error) => {
            return Err(hub.sentence(&error, "read cluster provider", provider));
        }
        // By default the namespace has the provider's name.
        found => found.ok().flatten().unwrap_or_else(|| provider.to_owned()),
    };
    let api = Api::namespaced(hub.client.clone(), &namespace);
    Ok(HubCluster { api, namespace, name: name.to_owned() })
}

/// The Cluster, or a sentence that there is none.
pub async fn read(hub: &Hub, place: &HubCluster, id: &str) -> anyhow::Result<Cluster> {
    match place.api.get_opt(&place.name).await {
        Ok(Some(cluster)) => Ok(cluster),
        Ok(None) => bail!("there is no Cluster {id} on the hub {}", hub.url),
        Err(error) => Err(hub.sentence(&error, "read cluster", id)),
    }
}

/// Who needs a cluster, as its status says.
pub fn holder(cluster: &Cluster) -> Option<String> {
    let used = cluster.status.as_ref()?.in_use.as_ref()?;
    Some(used.example.clone().unwrap_or_else(|| "a deployment".to_owned()))
}

async fn set(hub: &Hub, id: &str, scheduling: &str) -> anyhow::Result<HubCluster> {
    let place = locate(hub, id).await?;
    read(hub, &place, id).await?;
    let patch = Patch::Merge(json!({"spec": {"scheduling": scheduling}}));
    let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
    place
        .api
        .patch(&place.name, &params, &patch)
        .await
        .map_err(|error| hub.sentence(&error, "change cluster", id))?;
    Ok(place)
}

/// `kubectl emco cluster cordon`.
pub async fn cordon(args: NamedCluster) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    set(&hub, &args.cluster, "Cordoned").await?;
    print(&format!("{} takes nothing new; what it has stays\n", args.cluster))?;
    Ok(Outcome::AsWanted)
}

/// `kubectl emco cluster uncordon`.
pub async fn uncordon(args: NamedCluster) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    set(&hub, &args.cluster, "Enabled").await?;
    print(&format!("{} takes work\n", args.cluster))?;
    Ok(Outcome::AsWanted)
}

/// `kubectl emco cluster drain`.
pub async fn drain(args: DrainArgs) -> anyhow::Result<Outcome> {
    let DrainArgs { named: NamedCluster { hub, cluster: id }, timeout } = args;
    let hub = hub::connect(&hub).await?;
    let place = set(&hub, &id, "Drained").await?;
    if timeout.is_zero() {
        print(&format!("{id} is being drained\n"))?;
        return Ok(Outcome::AsWanted);
    }
    match until_unused(&place, timeout).await? {
        None => {
            print(&format!("{id} is drained: no deployment has anything there\n"))?;
            Ok(Outcome::AsWanted)
        }
        Some(holder) => {
            eprintln!(
                "warning: {id} is not drained after {timeout:?}: {holder} still has something there, for want of another cluster \
                 that its placement allows, because its plan is held (suspended, pinned, Planned, or waiting for an approval), \
                 or because the cluster does not answer"
            );
            Ok(Outcome::NotAsWanted)
        }
    }
}

/// Waits until no deployment has anything on a cluster; who still has, when that takes too long.
async fn until_unused(place: &HubCluster, limit: Duration) -> anyhow::Result<Option<String>> {
    let judge = |cluster: Option<&Cluster>| {
        let Some(cluster) = cluster else { return Ok(()) };
        // What was said of an older spec says nothing of this one.
        let seen = cluster.status.as_ref().and_then(|status| status.observed_generation);
        match holder(cluster) {
            None if seen == cluster.metadata.generation => Ok(()),
            holder => Err(holder.unwrap_or_else(|| UNKNOWN.to_owned())),
        }
    };
    let waited = watched::until(place.api.clone(), &place.name, limit, UNKNOWN, judge).await?;
    Ok(waited.err())
}

/// Who holds a cluster of which no operator has said so yet.
const UNKNOWN: &str = "an unknown deployment";
