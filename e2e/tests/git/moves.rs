//! Waves, each with a commit of its own, a move from one cluster to another, and an end that leaves folder and clusters empty.

use anyhow::{Result, ensure};
use emco_e2e::operator::{chart_map, deployed, deployment, has_maps, project, settled, wait};

use super::fleet::Fleet;
use super::{note, said};

/// On the first two clusters of a fleet.
pub async fn moves(fleet: &Fleet) -> Result<()> {
    let (bed, kubectl) = (fleet.bed, fleet.bed.hub().kubectl());
    let space = format!("{}-moves", fleet.name);
    let [one, other] = [fleet.clusters[0], fleet.clusters[1]];
    project(bed, &space).await?;
    let charts = |version: &str, say: &str| Ok::<_, anyhow::Error>([note("web", version, say)?]);
    let (first, second) = (charts("1.0.0", "one")?, charts("1.0.1", "two")?);
    chart_map(bed, &space, "charts", &[&first[..], &second[..]].concat()).await?;
    kubectl.apply(&deployment(&space, "shop", &first, &fleet.everywhere())).await?;
    deployed(bed, &space, "shop", 1).await?;

    let waves = format!(
        "{}\nrollout: {{waves: [{{name: first, clusters: [{{selector: {{matchLabels: {{edge: {one}}}}}}}]}}]}}",
        fleet.everywhere()
    );
    kubectl.apply(&deployment(&space, "shop", &second, &waves)).await?;
    deployed(bed, &space, "shop", 2).await?;
    let of_web = |edge: &str| format!("{}/{space}/dig-shop/web/", fleet.folder(edge));
    let (_, earlier) = fleet.touched(&of_web(one)).await?;
    let (_, later) = fleet.touched(&of_web(other)).await?;
    fleet.in_order(&earlier, &later).await?;

    for (there, gone) in [(one, other), (other, one)] {
        kubectl.apply(&deployment(&space, "shop", &second, &fleet.only(there))).await?;
        has_maps(bed, there, &space, &["web"]).await?;
        has_maps(bed, gone, &space, &[]).await?;
        wait(bed, &space, "shop", settled).await?;
        ensure!(said(bed, there, &space, "web").await? == "two");
        let files = fleet.server.files(&fleet.published().await?).await?;
        ensure!(!files.iter().any(|file| file.starts_with(&of_web(gone))), "{files:?}");
    }

    let terminated = format!("{}\ndesiredState: Terminated", fleet.only(other));
    kubectl.apply(&deployment(&space, "shop", &second, &terminated)).await?;
    for edge in [one, other] {
        has_maps(bed, edge, &space, &[]).await?;
    }
    kubectl.run(&["delete", "dig", "shop", "-n", &space, "--wait=false"]).await?;
    fleet.is_left_by(&space).await
}
