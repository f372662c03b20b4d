//! An operator that is killed around a push: there is no second commit, and nothing is lost.

use anyhow::{Context as _, Result, bail, ensure};
use emco_crds::GitTarget;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::git_server::At;
use emco_e2e::operator::{Operator, SOON, deployed, has_maps, program, says};
use emco_e2e::package::Package;
use tokio::time::timeout;

use super::fleet::Fleet;
use super::{deploy, said};

/// More requests than an update makes.
const REQUESTS: usize = 40;

/// Starts the operator again on a hub that has its kinds.
pub async fn again(bed: &Bed) -> Result<Operator> {
    Operator::start_as(bed, &program()?, bed.hub().kubeconfig_file()?, String::new()).await
}

/// Kills it before the repository has the push, and after that. `revisions`: what is deployed, its number, and what it says.
pub async fn around_a_push(
    fleet: &Fleet,
    space: &str,
    operator: &Operator,
    revisions: [(Package, i64, &str); 2],
) -> Result<Operator> {
    let mut running: Option<Operator> = None;
    for ((chart, revision, say), at) in revisions.into_iter().zip([At::Push, At::Pushed]) {
        fleet.published().await?;
        let before = fleet.commits().await?;
        let mut held = fleet.server.hold(at);
        deploy(fleet, space, chart).await?;
        timeout(SOON, held.arrived()).await.with_context(|| format!("{at:?}: nothing was pushed"))?;
        running.as_ref().unwrap_or(operator).kill().await?;
        drop(held);
        running = Some(again(fleet.bed).await?);
        deployed(fleet.bed, space, "shop", revision).await?;
        ensure!(said(fleet.bed, fleet.clusters[0], space, "web").await? == say);
        fleet.published().await?;
        let now = fleet.commits().await?;
        ensure!(now == before + 1, "{at:?}: {now} commits after {before}");
    }
    running.context("it was not started again")
}

/// Kills it, and somebody deletes all files meanwhile: when it begins it asks first, nothing leaves the clusters, and when the
/// repository is restored all is as before.
pub async fn while_all_goes(fleet: &Fleet, space: &str, operator: &Operator) -> Result<()> {
    let (bed, server, edge) = (fleet.bed, &fleet.server, fleet.clusters[0]);
    let tip = fleet.published().await?;
    operator.kill().await?;
    let files = server.files(&tip).await?;
    let gone: Vec<(&str, Option<&str>)> =
        files.iter().filter(|file| file.starts_with("hub/")).map(|file| (file.as_str(), None)).collect();
    server.push(&gone).await?;
    let _running = again(bed).await?;
    says::<GitTarget, _>(bed, &fleet.name, "fleet", types::READY, "FolderNotOurs").await?;
    has_maps(bed, edge, space, &["web"]).await?;
    let files = server.files("main").await?;
    ensure!(!files.iter().any(|file| file.starts_with("hub/clusters/")), "{files:?}");
    server.git(&["update-ref", "refs/heads/main", &tip]).await?;
    fleet.look("restored").await?;
    ensure!(fleet.published().await? == tip, "there is another commit than {tip}");
    has_maps(bed, edge, space, &["web"]).await
}

/// Kills it at the first request of an update, at the second one of the next, and so on, until an update makes no more; answers how often.
pub async fn at_each_request(
    fleet: &Fleet,
    space: &str,
    operator: &Operator,
    charts: &[Package; 2],
    runs: i64,
) -> Result<usize> {
    let mut running: Option<Operator> = None;
    let mut revision = runs;
    for (number, chart) in (0..REQUESTS).zip(charts.iter().cycle()) {
        fleet.published().await?;
        let before = fleet.commits().await?;
        let mut held = fleet.server.hold(At::Request(number));
        deploy(fleet, space, chart.clone()).await?;
        revision += 1;
        let came = tokio::select! {
            () = held.arrived() => true,
            done = deployed(fleet.bed, space, "shop", revision) => done.map(|_| false)?,
        };
        if came {
            running.as_ref().unwrap_or(operator).kill().await?;
            drop(held);
            running = Some(again(fleet.bed).await?);
            deployed(fleet.bed, space, "shop", revision).await?;
        }
        fleet.published().await?;
        let made = fleet.commits().await?.saturating_sub(before);
        ensure!((1..=fleet.clusters.len()).contains(&made), "request {number}: {made} commits");
        if !came {
            return Ok(number);
        }
    }
    bail!("an update makes more than {REQUESTS} requests")
}
