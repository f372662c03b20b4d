//! One deployment on clusters of both kinds: the same objects, in one commit, and an app that waits for another one.

use anyhow::{Result, ensure};
use emco_e2e::operator::{chart_map, deployed, deployment, failing, has_maps, project, written};
use emco_e2e::package::Package;

use super::fleet::Fleet;
use super::{READER, note, said};

/// Two apps that say the same.
fn charts(version: &str, say: &str) -> Result<[Package; 2]> {
    Ok([note("db", version, say)?, note("web", version, say)?])
}

/// Two charts on all clusters of a fleet and on the direct one.
pub async fn same(fleet: &Fleet) -> Result<()> {
    let (bed, name) = (fleet.bed, &fleet.name);
    let space = format!("{name}-shop");
    let mut marks = Vec::new();
    for edge in fleet.clusters {
        marks.push((edge, bed.edge(edge).audit_mark()?));
    }
    project(bed, &space).await?;
    let charts = charts("1.0.0", "one")?;
    chart_map(bed, &space, "charts", &charts).await?;
    let spec = format!(
        "placement: {{allOf: [{{provider: {name}, selector: {{}}}}, {{provider: acme, cluster: c}}]}}"
    );
    bed.hub().kubectl().apply(&deployment(&space, "shop", &charts, &spec)).await?;
    deployed(bed, &space, "shop", 1).await?;
    for plane in fleet.clusters.iter().chain(&["c"]) {
        has_maps(bed, plane, &space, &["db", "web"]).await?;
    }
    let tip = fleet.published().await?;
    let files = fleet.server.files(&tip).await?;
    for edge in fleet.clusters {
        let of_web = format!("{}/{space}/dig-shop/web/", fleet.folder(edge));
        ensure!(files.iter().any(|file| file.starts_with(&of_web)), "{files:?}");
    }
    in_one_commit(fleet, &space, &spec).await?;
    for (edge, mark) in marks {
        let wrote = written(bed, edge, mark, READER)?;
        ensure!(wrote.is_empty(), "the hub wrote on {edge}: {wrote:?}");
    }
    bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", &space, "--wait=false"]).await?;
    for plane in fleet.clusters.iter().chain(&["c"]) {
        has_maps(bed, plane, &space, &[]).await?;
    }
    waits(fleet, &space).await
}

/// While the branch takes no pushes all clusters hand over what they are to get: then it is one commit.
async fn in_one_commit(fleet: &Fleet, space: &str, spec: &str) -> Result<()> {
    let (bed, name) = (fleet.bed, &fleet.name);
    let (first, second) = (charts("1.0.0", "one")?, charts("1.0.1", "two")?);
    chart_map(bed, space, "charts", &[&first[..], &second[..]].concat()).await?;
    let before = fleet.commits().await?;
    fleet.server.refuse(Some("not yet"))?;
    bed.hub().kubectl().apply(&deployment(space, "shop", &second, spec)).await?;
    for edge in fleet.clusters {
        failing(bed, space, "shop", &format!("{name}/{edge}"), "TargetNotReady").await?;
    }
    fleet.server.refuse(None)?;
    deployed(bed, space, "shop", 2).await?;
    let tip = fleet.published().await?;
    ensure!(fleet.commits().await? == before + 1, "{} after {before}", fleet.commits().await?);
    let trailers = fleet.server.git(&["log", "-1", "--format=%B", &tip]).await?;
    ensure!(trailers.contains("EMCO-Owner: ") && trailers.contains(" on 2 clusters"), "{trailers}");
    for edge in fleet.clusters.iter().chain(&["c"]) {
        ensure!(said(bed, edge, space, "web").await? == "two", "{edge} has the first one");
    }
    Ok(())
}

/// An app that waits comes to the branch after the other one was ready.
async fn waits(fleet: &Fleet, space: &str) -> Result<()> {
    let bed = fleet.bed;
    let charts = charts("1.0.0", "one")?;
    let edge = fleet.clusters[0];
    let later = deployment(space, "later", &charts, &format!("{}\nrelease: later", fleet.only(edge)));
    let web = "key: web-1.0.0.tgz}}}";
    ensure!(later.contains(web), "{later}");
    let later = later.replace(web, "key: web-1.0.0.tgz}}, dependsOn: [{app: db}]}");
    bed.hub().kubectl().apply(&later).await?;
    deployed(bed, space, "later", 1).await?;
    let (db, _) = fleet.touched("*dig-later/db/*").await?;
    let (web, _) = fleet.touched("*dig-later/web/*").await?;
    fleet.in_order(&db, &web).await?;
    bed.hub().kubectl().run(&["delete", "dig", "later", "-n", space, "--wait=false"]).await?;
    has_maps(bed, edge, space, &[]).await
}
