//! A server that refuses, answers that are lost, others who commit in between, a branch that goes back, and an operator that is killed.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, GitTarget};
use emco_e2e::operator::{chart_map, deployed, deployment, has_maps, project, says};
use emco_e2e::package::Package;

use super::fleet::Fleet;
use super::{AT_WORK, STAGE, deploy, killed, lost, note, people, said};

const SPACE: &str = "faulty-shop";

/// One version of the chart for each word.
fn saying(say: &str) -> Result<Package> {
    note("web", &format!("1.0.{}", say.len()), say)
}

#[tokio::test]
async fn what_goes_wrong_with_a_push_costs_no_object_and_is_told() {
    let fleet = {
        let _working = AT_WORK.read().await;
        let fleet = Fleet::start("faulty", &["e"], Some("swordfish-of-the-first-day")).await.unwrap();
        let going_wrong = async {
            Box::pin(faults(&fleet)).await?;
            Box::pin(goes_back(&fleet)).await?;
            let next = deployment(SPACE, "shop", &[saying("bb")?], &fleet.everywhere());
            Box::pin(lost::login_ends(&fleet, SPACE, "swordfish-of-the-second-day", (&next, 5))).await?;
            Box::pin(lost::content_goes(&fleet, SPACE)).await
        };
        fleet.bed.explain(Box::pin(going_wrong)).await;
        fleet
    };
    // Nobody else is at work now.
    let _alone = AT_WORK.write().await;
    let killing = async {
        let (_, operator) = STAGE.get().await?;
        let revisions = [(saying("ccc")?, 6, "ccc"), (saying("a")?, 7, "a")];
        let operator = Box::pin(killed::around_a_push(&fleet, SPACE, operator, revisions)).await?;
        Box::pin(killed::while_all_goes(&fleet, SPACE, &operator)).await
    };
    fleet.bed.explain(Box::pin(killing)).await;
}

async fn faults(fleet: &Fleet) -> Result<()> {
    let (bed, server) = (fleet.bed, &fleet.server);
    project(bed, SPACE).await?;
    chart_map(bed, SPACE, "charts", &[saying("a")?, saying("bb")?, saying("ccc")?]).await?;
    deploy(fleet, SPACE, saying("a")?).await?;
    deployed(bed, SPACE, "shop", 1).await?;
    people::edit(fleet, "faulty-shop/dig-shop/web/").await?;

    // The push arrives and its answer does not: there is no second commit.
    let before = fleet.commits().await?;
    server.lose_an_answer();
    deploy(fleet, SPACE, saying("bb")?).await?;
    deployed(bed, SPACE, "shop", 2).await?;
    ensure!(said(bed, "e", SPACE, "web").await? == "bb");
    fleet.published().await?;
    ensure!(fleet.commits().await? == before + 1, "{} commits after {before}", fleet.commits().await?);

    // Somebody else commits right before: both are there.
    server.race("elsewhere/note.txt", "theirs");
    deploy(fleet, SPACE, saying("ccc")?).await?;
    deployed(bed, SPACE, "shop", 3).await?;
    ensure!(server.text("elsewhere/note.txt").await? == "theirs");

    // The server refuses: nothing is lost, the target says so in its words, its cluster, too, and others go on.
    server.refuse(Some("only on weekdays"))?;
    deploy(fleet, SPACE, saying("a")?).await?;
    let message = says::<GitTarget, _>(bed, "faulty", "fleet", types::READY, "PushRefused").await?;
    ensure!(message.contains("only on weekdays"), "{message}");
    let message = says::<Cluster, _>(bed, "faulty", "e", types::READY, "TargetNotReady").await?;
    ensure!(message.contains("GitTarget fleet: PushRefused"), "{message}");
    ensure!(said(bed, "e", SPACE, "web").await? == "ccc", "what ran goes on");
    let on_c = "placement: {allOf: [{provider: acme, cluster: c}]}";
    bed.hub().kubectl().apply(&deployment(SPACE, "direct", &[saying("a")?], on_c)).await?;
    deployed(bed, SPACE, "direct", 1).await?;
    server.refuse(None)?;
    deployed(bed, SPACE, "shop", 4).await.map(drop)
}

/// The branch goes back: nothing leaves the cluster, and ours is published again.
async fn goes_back(fleet: &Fleet) -> Result<()> {
    let tip = fleet.published().await?;
    let wanted = saved(fleet).await?;
    fleet.server.git(&["update-ref", "refs/heads/main", &format!("{tip}~2")]).await?;
    fleet.look("back").await?;
    let is_saved = async || saved(fleet).await.is_ok_and(|now| now == wanted);
    fleet.until("it is as it was before it went back", is_saved).await?;
    fleet.published().await?;
    fleet.followed().await?;
    has_maps(fleet.bed, "e", SPACE, &["web"]).await
}

/// What the branch has of the deployment, by the name of its tree.
async fn saved(fleet: &Fleet) -> Result<String> {
    let tree = format!("main:{}/{SPACE}/dig-shop", fleet.folder("e"));
    fleet.server.git(&["rev-parse", &tree]).await
}
