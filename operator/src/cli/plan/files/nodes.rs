//! Asks clusters what their nodes have and what Pods request there: only the operator's memory has that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_controllers::api::{ApiError, ApiServer};
use emco_controllers::driver::hub::HubApi;
use emco_controllers::reconcile::context::Context;
use emco_controllers::remote::{DetailedNodes, Nodes, requested};
use emco_crds::Cluster;
use emco_engine::hardware::{Read, Requested};
use emco_engine::identity::ClusterId;
use futures::StreamExt as _;

use super::clusters::Recorded;
use crate::cli::diff::edge;
use crate::cli::hub::Hub;

/// Clusters that are asked.
const MOST: usize = 32;
/// For one cluster.
const LIMIT: Duration = Duration::from_mins(1);

/// All that was read of one cluster.
type Found = (Read<DetailedNodes>, Option<Read<Arc<Requested>>>);

/// Asks all of these; the error says why there can be no plan.
pub async fn ask(
    hub: &Hub,
    recorded: &Recorded,
    ctx: &Context,
    clusters: &BTreeSet<ClusterId>,
) -> anyhow::Result<()> {
    if clusters.len() > MOST {
        bail!(
            "{} clusters would have to be asked what their nodes have, which a HardwareIntent depends on, and at most {MOST} are",
            clusters.len()
        );
    }
    let mut asked = Vec::new();
    for id in clusters {
        let (cluster, answers) = recorded.of(id).with_context(|| format!("there is no Cluster {id}"))?;
        if !answers {
            bail!(
                "{id} does not answer, and what its nodes have, which a HardwareIntent depends on, is in the operator's memory alone"
            );
        }
        asked.push(async move {
            let (keys, pods) = ctx.hardware.asks(id);
            let found = tokio::time::timeout(LIMIT, read(hub, &cluster, keys, pods)).await;
            let found = found.with_context(|| format!("it did not answer within {} s", LIMIT.as_secs()));
            let found = found.flatten();
            anyhow::Ok((id, found.with_context(|| format!("{id} cannot be asked what its nodes have"))?))
        });
    }
    let found: Vec<_> = futures::stream::iter(asked).buffered(4).collect().await;
    for found in found {
        let (id, (nodes, pods)): (&ClusterId, Found) = found?;
        recorded.note_nodes(id, nodes);
        if let Some(pods) = pods {
            ctx.hardware.set_pods(id, pods, 0);
        }
    }
    Ok(())
}

async fn read(hub: &Hub, cluster: &Cluster, keys: BTreeSet<String>, pods: bool) -> anyhow::Result<Found> {
    let uid = cluster.status.as_ref().and_then(|status| status.uid.as_deref());
    let (client, _) = edge::open(hub, cluster, uid).await?;
    let server = HubApi::new(client);
    let server: &dyn ApiServer = &server;
    let nodes = match Nodes::list(server, Some(Arc::new(keys))).await {
        Ok((nodes, _)) => nodes.detailed().cloned().map_or(Read::Not, Read::Done),
        Err(error) => refused(error)?,
    };
    if !pods {
        return Ok((nodes, None));
    }
    let pods = match requested(server).await {
        Ok(requested) => Read::Done(Arc::new(requested)),
        Err(error) => refused(error)?,
    };
    Ok((nodes, Some(pods)))
}

/// Nodes and Pods that may not be read are unknown to the operator, too.
fn refused<T>(error: ApiError) -> anyhow::Result<Read<T>> {
    if error.code() == 403 { Ok(Read::Forbidden) } else { Err(error.into()) }
}
