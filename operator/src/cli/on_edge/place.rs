//! Finds out on which clusters a deployment is, and under which owner label and namespace.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use emco_engine::identity::ClusterId;
use emco_engine::shard::rows;

use crate::cli::args::deployments::NamedDeployment;
use crate::cli::diff::past;
use crate::cli::hub::Hub;
use crate::cli::orphans::some;
use crate::cli::stored;

/// Clusters that a message names.
const NAMED: usize = 5;

/// A deployment and where it is.
pub struct Placed {
    /// `shop/till`
    pub said: String,
    /// Its namespace and name on the hub.
    pub on_hub: (String, String),
    /// Value of the label of what is its.
    pub hash: String,
    /// Its namespace on clusters.
    pub namespace: String,
    /// Its clusters, with the identity that each is known to have.
    pub clusters: BTreeMap<ClusterId, Option<String>>,
}

/// Where a deployment is, or may still have something.
pub async fn find(hub: &Hub, named: &NamedDeployment) -> anyhow::Result<Placed> {
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    of(hub, namespace, name).await
}

/// The same of one whose namespace and name on the hub are known.
pub async fn of(hub: &Hub, namespace: String, name: String) -> anyhow::Result<Placed> {
    let said = format!("{namespace}/{name}");
    let placed = if_any(hub, namespace, name).await?;
    placed.with_context(|| format!("{said} has nothing on any cluster"))
}

/// The same; `None` where it has nothing on any cluster.
pub async fn if_any(hub: &Hub, namespace: String, name: String) -> anyhow::Result<Option<Placed>> {
    hub.deployment(&namespace, &name).await?;
    let shards = hub.shards(&namespace, &name).await?;
    let said = format!("{namespace}/{name}");
    let Some(first) = shards.first() else { return Ok(None) };
    let hash = stored::owner_hash(first)?;
    let rows = shards.iter().flat_map(|shard| rows(&shard.spec, shard.status.as_ref()));
    let clusters: BTreeMap<ClusterId, Option<String>> =
        rows.filter(|row| row.target.is_some() || !row.complete).map(|row| (row.cluster, row.uid)).collect();
    if clusters.is_empty() {
        return Ok(None);
    }
    let contexts = past::contexts(hub, &namespace, &name).await?;
    let newest = contexts.into_iter().max_by_key(|context| context.spec.revision);
    let there = newest.and_then(|context| context.spec.namespace).unwrap_or_else(|| namespace.clone());
    Ok(Some(Placed { said, on_hub: (namespace, name), hash, namespace: there, clusters }))
}

impl Placed {
    /// The cluster that is meant.
    pub fn one(&self, named: Option<&str>) -> anyhow::Result<(&ClusterId, Option<&str>)> {
        let names: Vec<String> = self.clusters.keys().map(ToString::to_string).collect();
        let found = match named {
            Some(named) => self.clusters.iter().find(|(id, _)| id.as_str() == named),
            None if self.clusters.len() == 1 => self.clusters.iter().next(),
            None => bail!(
                "{} is on {} clusters: name one with --cluster: {}",
                self.said,
                names.len(),
                some(&names, NAMED)
            ),
        };
        match found {
            Some((id, uid)) => Ok((id, uid.as_deref())),
            None => bail!(
                "{} has nothing on cluster {}: it is on {}",
                self.said,
                named.unwrap_or_default(),
                some(&names, NAMED)
            ),
        }
    }
}
