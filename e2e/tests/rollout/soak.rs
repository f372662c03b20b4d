//! Eight clusters, two of them dead, one that dies in the second wave, one that joins in the fourth: a rollout that pauses, goes on, begins
//! again with a newer revision, and ends everywhere.

use anyhow::{Result, ensure};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{SharedOperator, deployed, unless_ended};

use super::{SHOP, Story, has};

const EDGES: [&str; 8] = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"];
/// Dead before the rollout begins: one of its second wave, one of its fourth.
const DEAD: [&str; 2] = ["e3", "e6"];
/// Dies when the second wave is over and its gate is not open yet.
const DIES: &str = "e2";
/// Joins while the fourth wave waits for its approval.
const JOINS: &str = "e7";

static STAGE: SharedOperator = SharedOperator::new(
    || EDGES.iter().fold(BedSpec::bare_hub(), |spec, edge| spec.with(PlaneSpec::new(edge, Parts::ApiServer))),
    &EDGES,
);

fn rollout(failures: u32) -> String {
    let waves = "[{name: canary, clusters: [{provider: acme, cluster: e0}]}, {name: two, size: 3, approval: After}, {name: three, size: 1}, {name: four, size: 2, approval: Before}]";
    format!("rollout: {{waves: {waves}, maxFailures: {failures}}}")
}

async fn label(story: &Story<'_>, edge: &str, tier: &str) -> Result<()> {
    let label = format!("tier={tier}");
    story.kubectl(&["label", "ecl", edge, "-n", "acme", "--overwrite", &label]).await.map(drop)
}

async fn eight_clusters(bed: &Bed) -> Result<()> {
    let story = Story::begin(bed, SHOP, &EDGES).await?;
    label(&story, JOINS, "spare").await?;
    story.deploy("1.0.0", "one", "").await?;
    deployed(bed, SHOP, SHOP, 1).await?;
    // Before the chart changes: the app's change alone would be a revision without waves, where it is seen first.
    story.deploy("1.0.0", "one", &rollout(1)).await?;
    deployed(bed, SHOP, SHOP, 2).await?;
    for edge in DEAD {
        story.kill(edge).await?;
    }

    // One of the second wave is dead, which is borne; the third one waits behind the gate.
    story.deploy("2.0.0", "two", &rollout(1)).await?;
    let second = story.gate(3, "two", 1).await?;
    ensure!((second.place, second.waves) == (2, 5), "{second:?}");
    let waits = has(&["e4", "e5"], "one");
    let notes = story.notes(&[DEAD[0], DEAD[1], JOINS]).await?;
    ensure!(notes == [has(&["e0", "e1", "e2"], "two"), waits.clone()].concat(), "{notes:?}");

    // Another one dies: that is too much, and no other cluster begins, also where the gate is opened.
    story.kill(DIES).await?;
    let paused = "2 clusters failed, and spec.rollout.maxFailures bears 1";
    story.says(3, paused, |rollout| rollout.waits_for.contains(paused)).await?;
    story.approve(&second).await?;
    let why = story.paused().await?;
    ensure!(why.contains(paused), "{why}");
    let wave = "WaveBegan wave 2 of 5 (two) of revision 3";
    story.told(&[wave, "AwaitingApproval wave 2 of 5 (two)", "RolloutPaused"]).await?;
    let notes = story.notes(&[DEAD[0], DEAD[1], DIES, JOINS]).await?;
    ensure!(notes == [has(&["e0", "e1"], "two"), waits].concat(), "{notes:?}");

    // Somebody bears it, which is another revision of the same inputs: the rollout goes on through the third wave, to the gate of the fourth.
    story.deploy("2.0.0", "two", &rollout(3)).await?;
    let fourth = story.gate(4, "four", 2).await?;
    ensure!((fourth.place, fourth.wave.as_str()) == (4, "four"), "{fourth:?}");
    let notes = story.notes(&[DEAD[0], DEAD[1], DIES, JOINS]).await?;
    let waits = has(&["e5"], "one");
    ensure!(notes == [has(&["e0", "e1", "e4"], "two"), waits.clone()].concat(), "{notes:?}");

    // A newer revision begins again at the first wave, and opens no gate with the approvals of the one before.
    story.deploy("3.0.0", "three", &rollout(3)).await?;
    let second = story.gate(5, "two", 2).await?;
    let notes = story.notes(&[DEAD[0], DEAD[1], DIES, JOINS]).await?;
    let waited = [has(&["e4"], "two"), waits.clone()].concat();
    ensure!(notes == [has(&["e0", "e1"], "three"), waited].concat(), "{notes:?}");
    story.approve(&second).await?;
    story.gate(5, "four", 2).await?;

    // Who joins meanwhile begins nothing anew, and comes after all others.
    label(&story, JOINS, "edge").await?;
    let fourth = story.gate(6, "four", 2).await?;
    ensure!(fourth.inputs_digest == second.inputs_digest, "{fourth:?}");
    let notes = story.notes(&[DEAD[0], DEAD[1], DIES]).await?;
    let answers = has(&["e0", "e1", "e4"], "three");
    ensure!(notes == [answers, waits, has(&[JOINS], "")].concat(), "{notes:?}");
    story.approve(&fourth).await?;
    let over =
        story.says(6, "the end", |rollout| rollout.place > rollout.waves && rollout.failed == 3).await?;
    ensure!(over.waits_for.is_empty(), "{over:?}");
    let notes = story.notes(&[DEAD[0], DEAD[1], DIES]).await?;
    ensure!(notes == has(&["e0", "e1", "e4", "e5", JOINS], "three"), "{notes:?}");

    // Who was dead gets it when it is back.
    for edge in [DEAD[0], DEAD[1], DIES] {
        bed.edge(edge).restart().await?;
    }
    deployed(bed, SHOP, SHOP, 6).await?;
    let notes = story.notes(&[]).await?;
    ensure!(notes == has(&EDGES, "three"), "{notes:?}");
    let events = story.events().await?;
    let of_it = events.lines().filter(|event| event.starts_with("DeploymentIntentGroup ")).count();
    ensure!(of_it <= 25, "{of_it} Events within the hour: {events}");
    Ok(())
}

#[tokio::test]
async fn eight_clusters_of_which_some_die_and_one_joins_all_get_the_revision() {
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(unless_ended(operator.process(), eight_clusters(bed)))).await;
}
