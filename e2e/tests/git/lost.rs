//! A login that ends, and a repository that loses what it had: nothing leaves the cluster. A fleet has the note `web` there, by the
//! deployment `shop`.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, GitTarget};
use emco_e2e::operator::{deployed, has_maps, says};
use k8s_openapi::api::core::v1::ConfigMap;

use super::fleet::Fleet;
use super::said;

/// Which object the note is on the first cluster.
async fn uid(fleet: &Fleet, space: &str) -> Result<Option<String>> {
    let maps = fleet.bed.edge(fleet.clusters[0]).api::<ConfigMap>(space).await?;
    Ok(maps.get("web").await?.metadata.uid)
}

/// The login ends: the statuses say so, what runs goes on, and with another password all goes on. `next`: a change that has to be
/// published, and the number of its revision.
pub async fn login_ends(fleet: &Fleet, space: &str, password: &str, next: (&str, i64)) -> Result<()> {
    let (bed, edge, (next, revision)) = (fleet.bed, fleet.clusters[0], next);
    let before = said(bed, edge, space, "web").await?;
    fleet.change_password(password);
    bed.hub().kubectl().apply(next).await?;
    says::<GitTarget, _>(bed, &fleet.name, "fleet", types::READY, "Unauthorized").await?;
    let message = says::<Cluster, _>(bed, &fleet.name, edge, types::READY, "TargetNotReady").await?;
    ensure!(message.contains("GitTarget fleet: Unauthorized"), "{message}");
    ensure!(said(bed, edge, space, "web").await? == before);
    fleet.log_in(password).await?;
    deployed(bed, space, "shop", revision).await.map(drop)
}

/// Somebody deletes all files, and somebody replaces the repository: ours is published again.
pub async fn content_goes(fleet: &Fleet, space: &str) -> Result<()> {
    let (edge, server) = (fleet.clusters[0], &fleet.server);
    let (before, words) = (uid(fleet, space).await?, said(fleet.bed, edge, space, "web").await?);
    let of_web = format!("{space}/dig-shop/web/");
    let files = server.files(&fleet.published().await?).await?;
    let gone: Vec<(&str, Option<&str>)> =
        files.iter().filter(|file| file.starts_with("hub/")).map(|file| (file.as_str(), None)).collect();
    server.push(&gone).await?;
    fleet.look("emptied").await?;
    fleet.has_again(&of_web).await?;

    server.renew().await?;
    server.push(&[("README.md", Some("another repository"))]).await?;
    fleet.look("replaced").await?;
    fleet.has_again(&of_web).await?;
    ensure!(server.text("README.md").await? == "another repository");
    fleet.published().await?;
    has_maps(fleet.bed, edge, space, &["web"]).await?;
    ensure!(uid(fleet, space).await? == before, "it was deleted and made anew");
    ensure!(said(fleet.bed, edge, space, "web").await? == words);
    Ok(())
}
