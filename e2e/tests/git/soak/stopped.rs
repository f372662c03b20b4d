//! An agent that stopped: the deployment goes on on the other cluster, waits for this one, and the Cluster says since when.

use std::time::Duration;

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::operator::{deployed, refused, says, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_some;
use kube::runtime::watcher::Config;

use super::{EDGES, Fleet, Flux, SPACE, deploy, said};

/// Three minutes, and the intervals of both sides twice.
const TOLD: Duration = Duration::from_mins(6);

/// Brings revision 2, which says `two`. `agent` is that of the first cluster.
pub async fn stopped(fleet: &Fleet, agent: &mut Flux, two: &Package) -> Result<()> {
    let (bed, name) = (fleet.bed, &fleet.name);
    agent.stop().await?;
    deploy(fleet, SPACE, two.clone()).await?;
    says::<DeploymentIntentGroup, _>(bed, SPACE, "shop", types::READY, "Progressing").await?;
    wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
        let clusters = dig.status.as_ref().and_then(|status| status.clusters.as_ref());
        let is_half = clusters.is_some_and(|clusters| (clusters.ready, clusters.total) == (1, 2));
        if is_half { Ok(()) } else { Err(format!("{clusters:?}")) }
    })
    .await?;
    ensure!(said(bed, EDGES[0], SPACE, "web").await? == "one");
    ensure!(said(bed, EDGES[1], SPACE, "web").await? == "two");

    let clusters = bed.hub().api::<Cluster>(name).await?;
    let config = Config::default().fields(&format!("metadata.name={}", EDGES[0]));
    let message = wait_for_some(clusters, config, TOLD, "the agent that stopped", |clusters| {
        let status = clusters.values().next().and_then(|cluster| cluster.status.as_ref());
        refused(status, types::READY, "AgentNotSyncing")
    })
    .await?;
    let tip = fleet.server.tip().await?;
    ensure!(message.contains(&format!("has not applied commit {} of ", &tip[..8])), "{message}");
    agent.go_on(bed).await?;
    deployed(bed, SPACE, "shop", 2).await.map(drop)
}
