//! Finds out on which clusters a deployment is, and under which owner label and namespace.

use std::collections::BTreeMap;

use anyhow::bail;
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
    hub.deployment(&namespace, &name).await?;
    let shards = hub.shards(&namespace, &name).await?;
    let said = format!("{namespace}/{name}");
    let Some(first) = shards.first() else { bail!("{said} has nothing on any cluster") };
    let hash = stored::owner_hash(first)?;
    let rows = shards.iter().flat_map(|shard| rows(&shard.spec, shard.status.as_ref()));
    let clusters: BTreeMap<ClusterId, Option<String>> =
        rows.filter(|row| row.target.is_some() || !row.complete).map(|row| (row.cluster, row.uid)).collect();
    if clusters.is_empty() {
        bail!("{said} has nothing on any cluster");
    }
    let contexts = past::contexts(hub, &namespace, &name).await?;
    let newest = contexts.into_iter().max_by_key(|context| context.spec.revision);
    let namespace = newest.and_then(|context| context.spec.namespace).unwrap_or(namespace);
    Ok(Placed { said, hash, namespace, clusters })
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
