//! Restores that are followed for longer: others' changes before and after two edits, an etcd that is an hour old.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{Operator, SOON, Statuses, deployed, program};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::copies::{
    Follow, GROUPS, SILENCE, a_hub_made_of_copies, applied, deploy, edit, goes_on, marks, stop,
    waits_and_is_confirmed, written,
};
use super::{EDGES, planes};

/// On a bed of its own: all of them use the same project.
async fn followed(statuses: Statuses) {
    let _turn = serial().await;
    let bed = Bed::start(planes()).await.unwrap();
    bed.explain(Box::pin(async {
        let mut operator = Operator::start(&bed, &program()?).await?;
        Box::pin(a_hub_made_of_copies(&bed, &mut operator, statuses, Follow::All)).await
    }))
    .await;
}

#[tokio::test]
async fn a_hub_made_of_copies_deals_with_others_changes() {
    followed(Statuses::All).await;
}

#[tokio::test]
async fn a_hub_made_of_copies_without_statuses_deals_with_others_changes() {
    followed(Statuses::None).await;
}

/// How far the hub had come when it last worked on all edges.
async fn marked(bed: &Bed) -> Result<u64> {
    let mut least = u64::MAX;
    for edge in EDGES {
        let maps: Api<ConfigMap> = bed.edge(edge).api("emco-system").await?;
        let map = maps.get("hub").await?;
        let seen = map.data.as_ref().and_then(|data| data.get("seen")?.parse().ok());
        least = least.min(seen.unwrap_or(0));
    }
    Ok(least)
}

/// Edits of the till until the edges are marked later than this; the last revision.
async fn until_marked(bed: &Bed, version: u64) -> Result<i64> {
    let mut last = 3;
    while marked(bed).await? <= version {
        last += 1;
        ensure!(last < 60, "the edges are not marked");
        edit(bed, "till", &format!("till-{last}"), last).await?;
    }
    Ok(last)
}

#[tokio::test]
async fn a_hub_whose_etcd_is_an_hour_old_goes_on_from_what_is_applied_again() {
    let _turn = serial().await;
    let bed = Bed::start(planes()).await.unwrap();
    bed.explain(Box::pin(async {
        let mut operator = Operator::start(&bed, &program()?).await?;
        deploy(&bed).await?;
        edit(&bed, "early", "early-1", 1).await?;
        let backup = bed.hub().snapshot().await?;
        // In the lost hour one deployment comes and another goes.
        edit(&bed, "late", "late-1", 1).await?;
        bed.hub().kubectl().run(&["delete", "dig,capp", "early", "-n", "shop", "--timeout=90s"]).await?;
        bed.hub().others_write(300).await?;
        let last = until_marked(&bed, bed.hub().version().await?).await?;
        stop(&operator).await?;
        let marks = marks(&bed)?;
        bed.hub().restore_from(&backup).await?;
        operator.restart(&bed).await?;
        // As it stands in Git; the edges have it already.
        applied(&bed, "till", &format!("till-{last}")).await?;
        applied(&bed, "late", "late-1").await?;
        bed.hub().kubectl().run(&["delete", "dig,capp", "early", "-n", "shop", "--wait=false"]).await?;
        waits_and_is_confirmed(&bed, &marks).await?;
        deployed(&bed, "shop", "till", 4).await?;
        deployed(&bed, "shop", "late", 1).await?;
        let groups: Api<DeploymentIntentGroup> = bed.hub().api("shop").await?;
        wait_until_gone(groups, "early", SOON).await?;
        for (name, revision, _) in GROUPS {
            deployed(&bed, "shop", name, revision).await?;
        }
        tokio::time::sleep(SILENCE).await;
        let writes = written(&bed, &marks)?;
        ensure!(writes.is_empty(), "the edges had all of it: {writes:?}");
        bed.hub().kubectl().run(&["delete", "dig,capp", "late", "-n", "shop", "--timeout=90s"]).await?;
        goes_on(&bed, 4, &format!("till-{last}"), Follow::All).await
    }))
    .await;
}
