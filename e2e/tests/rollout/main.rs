//! In: eight real API servers, two of them dead, one that dies in the second wave, one that joins in the fourth. Out: a rollout that pauses,
//! goes on, begins again with a newer revision, and ends everywhere. And four, of which half stand still while the others go on, or wait
//! for an approval.

mod approvals;

use anyhow::{Result, ensure};
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::rollout::RolloutStatus;
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec, serial};
use emco_e2e::operator::{
    SOON, SharedOperator, chart, chart_map, deployed, deployment, is, project, unless_ended, wait,
};
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::core::v1::ConfigMap;

/// Nothing runs on these edges: what is deployed there is ready when it is there. Each test gives them back as they were.
static STAGE: SharedOperator = SharedOperator::new(
    || EDGES.iter().fold(BedSpec::bare_hub(), |spec, edge| spec.with(PlaneSpec::new(edge, Parts::ApiServer))),
    &EDGES,
);

const EDGES: [&str; 8] = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"];
/// Dead before the rollout begins: one of its second wave, one of its fourth.
const DEAD: [&str; 2] = ["e3", "e6"];
/// Dies when the second wave is over and its gate is not open yet.
const DIES: &str = "e2";
/// Joins while the fourth wave waits for its approval.
const JOINS: &str = "e7";
const SHOP: &str = "shop";
const EVERYWHERE: &str = "allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]";
/// What is placed, before it is rolled out and by each revision.
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: WORD}\n";

struct Story<'a> {
    bed: &'a Bed,
    /// Project of the deployment, which is called `shop`.
    space: &'a str,
    placement: &'a str,
    who: String,
}

impl Story<'_> {
    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.bed.hub().kubectl().run(args).await
    }

    /// Applies the deployment with this word.
    async fn deploy(&self, version: &str, word: &str, rollout: &str) -> Result<()> {
        let charts = [chart("note", version, &[("templates/note.yaml", &NOTE.replace("WORD", word))])?];
        chart_map(self.bed, self.space, "charts", &charts).await?;
        let spec = format!("placement: {{{}}}\nprogressDeadline: 10s\n{rollout}", self.placement);
        self.bed.hub().kubectl().apply(&deployment(self.space, SHOP, &charts, &spec)).await.map(drop)
    }

    /// Waits until the rollout of this revision says so.
    async fn says(
        &self,
        revision: i64,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        wait(self.bed, self.space, SHOP, |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref();
            let rollout = status.and_then(|status| status.rollout.as_ref());
            let is_of = status.and_then(|status| status.revision) == Some(revision);
            let found = rollout.filter(|rollout| is_of && check(rollout));
            let runs = status.and_then(|status| status.revision);
            found
                .cloned()
                .ok_or_else(|| format!("waiting for revision {revision}, {what}: {runs:?}: {rollout:?}"))
        })
        .await
    }

    /// Waits until the rollout waits for the gate of this wave, and so many clusters failed: a slow one has failed until it is there.
    async fn gate(&self, revision: i64, wave: &str, failed: i64) -> Result<RolloutStatus> {
        let command = format!("kubectl emco approve dig/{SHOP} -n {} --wave {wave}", self.space);
        let is_it =
            |rollout: &RolloutStatus| rollout.waits_for.ends_with(&command) && rollout.failed == failed;
        self.says(revision, &format!("{command}, where {failed} failed"), is_it).await
    }

    /// Opens the gate that a rollout waits for, and waits until that was seen.
    async fn approve(&self, rollout: &RolloutStatus) -> Result<()> {
        let RolloutStatus { wave, inputs_digest, .. } = rollout;
        let name = format!("{wave}-{}", &inputs_digest["sha256:".len()..][..8]);
        let (space, who) = (self.space, &self.who);
        let approval = format!(
            "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {{name: {name}, namespace: {space}}}
spec: {{deploymentIntentGroupRef: {{name: {SHOP}}}, digest: \"{inputs_digest}\", wave: {wave}, approvedBy: \"{who}\"}}
"
        );
        self.bed.hub().kubectl().apply(&approval).await?;
        let state = "--for=jsonpath={.status.state}=InEffect";
        self.kubectl(&["wait", "deploymentapprovals.emco.io", &name, "-n", space, state, "--timeout=60s"])
            .await
            .map(drop)
    }

    /// What each edge that answers has, as `e0=one`.
    async fn notes(&self, without: &[&str]) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for edge in EDGES.into_iter().filter(|edge| !without.contains(edge)) {
            let note = self.bed.edge(edge).api::<ConfigMap>(self.space).await?.get_opt("note").await?;
            let said = note.and_then(|note| note.data?.remove("say")).unwrap_or_default();
            notes.push(format!("{edge}={said}"));
        }
        Ok(notes)
    }

    async fn kill(&self, edge: &str) -> Result<()> {
        self.bed.edge(edge).kill().await?;
        wait::<Cluster, _>(self.bed, "acme", edge, |cluster| {
            is(cluster.status.as_ref(), types::READY, "False")
        })
        .await
    }

    async fn label(&self, edge: &str, tier: &str) -> Result<()> {
        let label = format!("tier={tier}");
        self.kubectl(&["label", "ecl", edge, "-n", "acme", "--overwrite", &label]).await.map(drop)
    }
}

fn has(edges: &[&str], word: &str) -> Vec<String> {
    edges.iter().map(|edge| format!("{edge}={word}")).collect()
}

fn rollout(failures: u32) -> String {
    let waves = "[{name: canary, clusters: [{provider: acme, cluster: e0}]}, {name: two, size: 3, approval: After}, {name: three, size: 1}, {name: four, size: 2, approval: Before}]";
    format!("rollout: {{waves: {waves}, maxFailures: {failures}}}")
}

async fn eight_clusters(bed: &Bed) -> Result<()> {
    project(bed, SHOP).await?;
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    let who = bed.hub().kubectl().run(&whoami).await?;
    let story = Story { bed, space: SHOP, placement: EVERYWHERE, who };
    story.label(JOINS, "spare").await?;
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
    let why = wait(bed, SHOP, SHOP, |dig: &DeploymentIntentGroup| {
        let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
        let found = ready.filter(|ready| ready.reason == "RolloutPaused" && ready.status == "False");
        found.map(|ready| ready.message.clone()).ok_or_else(|| format!("{ready:?}"))
    })
    .await?;
    ensure!(why.contains(paused), "{why}");
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
    story.label(JOINS, "edge").await?;
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
    let events =
        ["get", "events", "-n", SHOP, "-o", "jsonpath={range .items[*]}{.reason} {.message}{\"\\n\"}{end}"];
    let events = story.kubectl(&events).await?;
    for wanted in ["WaveBegan wave 2 of 5 (two) of revision 3", "RolloutDone revision", "RolloutPaused"] {
        ensure!(events.contains(wanted), "no Event tells: {wanted}\n{events}");
    }
    Ok(())
}

#[tokio::test]
async fn eight_clusters_of_which_some_die_and_one_joins_all_get_the_revision() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(unless_ended(operator.process(), eight_clusters(bed)))).await;
}

/// Of four clusters: they go on, and they keep connections open and answer nothing.
const GO_ON: [&str; 2] = ["e0", "e1"];
const STAND_STILL: [&str; 2] = ["e2", "e3"];
const HALF: &str = "half";
const ON_FOUR: &str = "allOf: [{provider: acme, selector: {matchExpressions: [{key: edge, operator: In, values: [e0, e1, e2, e3]}]}}]";

/// Waits until the edge has the word.
async fn has_word(bed: &Bed, edge: &str, word: &str) -> Result<()> {
    let says =
        |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("say")).is_some_and(|said| said == word);
    wait_for_object(bed.edge(edge).api::<ConfigMap>(HALF).await?, "note", SOON, says).await.map(drop)
}

async fn half_stands_still(bed: &Bed) -> Result<()> {
    project(bed, HALF).await?;
    let story = Story { bed, space: HALF, placement: ON_FOUR, who: String::new() };
    story.deploy("1.0.0", "one", "").await?;
    deployed(bed, HALF, SHOP, 1).await?;
    for edge in STAND_STILL {
        bed.edge(edge).freeze().await?;
    }

    // Also the next change comes while requests of the one before hang.
    for (revision, word) in [(2, "two"), (3, "three")] {
        story.deploy(&format!("{revision}.0.0"), word, "").await?;
        for edge in GO_ON {
            has_word(bed, edge, word).await?;
        }
        wait(bed, HALF, SHOP, |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().filter(|status| status.revision == Some(revision));
            let clusters = status.and_then(|status| status.clusters.as_ref());
            let is_half = clusters.is_some_and(|clusters| (clusters.ready, clusters.total) == (2, 4));
            if is_half { is(status, types::READY, "False") } else { Err(format!("{clusters:?}")) }
        })
        .await?;
    }
    for edge in STAND_STILL {
        bed.edge(edge).thaw().await?;
    }
    deployed(bed, HALF, SHOP, 3).await?;
    for edge in [GO_ON, STAND_STILL].concat() {
        has_word(bed, edge, "three").await?;
    }
    story.kubectl(&["delete", "dig", SHOP, "-n", HALF, "--timeout=90s"]).await.map(drop)
}

#[tokio::test]
async fn half_of_a_fleet_that_stands_still_holds_up_no_other_cluster() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(unless_ended(operator.process(), half_stands_still(bed)))).await;
}
