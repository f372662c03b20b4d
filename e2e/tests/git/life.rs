//! An update, a rollback and the end of a deployment.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Conditioned as _, GitTarget};
use emco_e2e::operator::{chart_map, deployed, deployment, has_maps, project, wait};

use super::fleet::Fleet;
use super::{note, said};

/// On all clusters of a fleet, of which the first is looked at.
pub async fn life(fleet: &Fleet) -> Result<()> {
    let (bed, kubectl) = (fleet.bed, fleet.bed.hub().kubectl());
    let (space, edge) = (format!("{}-life", fleet.name), fleet.clusters[0]);
    project(bed, &space).await?;
    let first = [note("web", "1.0.0", "one")?, note("db", "1.0.0", "one")?];
    chart_map(bed, &space, "charts", &first).await?;
    kubectl.apply(&deployment(&space, "shop", &first, &fleet.everywhere())).await?;
    deployed(bed, &space, "shop", 1).await?;
    let second = [note("web", "1.0.1", "two")?];
    chart_map(bed, &space, "charts", &[&first[..], &second[..]].concat()).await?;
    kubectl.apply(&deployment(&space, "shop", &second, &fleet.everywhere())).await?;
    deployed(bed, &space, "shop", 2).await?;
    has_maps(bed, edge, &space, &["web"]).await?;
    ensure!(said(bed, edge, &space, "web").await? == "two");
    let back = ["patch", "dig", "shop", "-n", &space, "--type=merge", "-p", "{\"spec\": {\"revision\": 1}}"];
    kubectl.run(&back).await?;
    has_maps(bed, edge, &space, &["db", "web"]).await?;
    // Its agent goes through the folders one after the other.
    fleet
        .until("the note says one", async || said(bed, edge, &space, "web").await.is_ok_and(|it| it == "one"))
        .await?;

    kubectl.run(&["delete", "dig", "shop", "-n", &space, "--wait=false"]).await?;
    for edge in fleet.clusters {
        has_maps(bed, edge, &space, &[]).await?;
    }
    fleet.is_left_by(&space).await
}

/// A target stays while clusters are written to through it.
pub async fn holds(fleet: &Fleet) -> Result<()> {
    let holder = format!("Cluster/{}/{}", fleet.name, fleet.clusters[0]);
    let delete = ["delete", "gitt", "fleet", "-n", &fleet.name, "--wait=false"];
    fleet.bed.hub().kubectl().run(&delete).await?;
    wait(fleet.bed, &fleet.name, "fleet", |target: &GitTarget| {
        let held = target.status.as_ref().and_then(|status| status.condition(types::IN_USE));
        let message = held.map(|held| held.message.clone()).unwrap_or_default();
        if message.contains(&holder) { Ok(()) } else { Err(message) }
    })
    .await
}
