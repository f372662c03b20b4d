//! A cluster that dies in the second wave of a rollout.

use anyhow::{Result, ensure};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{deployed, unless_ended};

use super::{EDGES, SHOP, STAGE, Story, has};

const SPACE: &str = "dies";
/// Dies when its wave is over and the gate after it is not open yet.
const DIES: &str = "e1";

fn rollout(failures: u32) -> String {
    let waves =
        "[{name: canary, clusters: [{provider: acme, cluster: e0}]}, {name: two, size: 1, approval: After}]";
    format!("rollout: {{waves: {waves}, maxFailures: {failures}}}")
}

async fn one_dies(bed: &Bed) -> Result<()> {
    let story = Story::begin(bed, SPACE, &EDGES).await?;
    story.deploy("1.0.0", "one", "").await?;
    deployed(bed, SPACE, SHOP, 1).await?;
    // Before the chart changes: the app's change alone would be a revision without waves, where it is seen first.
    story.deploy("1.0.0", "one", &rollout(0)).await?;
    deployed(bed, SPACE, SHOP, 2).await?;
    story.deploy("2.0.0", "two", &rollout(0)).await?;
    let second = story.gate(3, "two", 0).await?;
    ensure!((second.place, second.waves) == (2, 3), "{second:?}");
    let waits = has(&["e2", "e3"], "one");
    let notes = story.notes(&[]).await?;
    ensure!(notes == [has(&["e0", DIES], "two"), waits.clone()].concat(), "{notes:?}");

    // That is too much: no other cluster begins, also where the gate is opened.
    story.kill(DIES).await?;
    let paused = "1 cluster failed, and spec.rollout.maxFailures bears 0";
    story.says(3, paused, |rollout| rollout.waits_for.contains(paused)).await?;
    story.approve(&second).await?;
    let why = story.paused().await?;
    ensure!(why.contains(paused), "{why}");
    let notes = story.notes(&[DIES]).await?;
    ensure!(notes == [has(&["e0"], "two"), waits].concat(), "{notes:?}");

    // Somebody bears it, which is another revision of the same inputs: the gate is open, and all others get it.
    story.deploy("2.0.0", "two", &rollout(1)).await?;
    let over =
        story.says(4, "the end", |rollout| rollout.place > rollout.waves && rollout.failed == 1).await?;
    ensure!(over.waits_for.is_empty() && over.inputs_digest == second.inputs_digest, "{over:?}");
    let notes = story.notes(&[DIES]).await?;
    ensure!(notes == has(&["e0", "e2", "e3"], "two"), "{notes:?}");

    // Who was dead gets it when it is back.
    bed.edge(DIES).restart().await?;
    deployed(bed, SPACE, SHOP, 4).await?;
    let notes = story.notes(&[]).await?;
    ensure!(notes == has(&EDGES, "two"), "{notes:?}");
    let begun = "WaveBegan wave 2 of 3 (two) of revision 3";
    let waits =
        "AwaitingApproval wave 2 of 3 (two) of revision 3 waits for an approval before the next one begins";
    story.told(&[begun, waits, "RolloutDone revision", "RolloutPaused"]).await
}

#[tokio::test]
async fn a_rollout_that_pauses_for_a_dead_cluster_goes_on_and_reaches_it() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(unless_ended(operator.process(), one_dies(bed)))).await;
}
