//! Rolls out on four real API servers: one dies in the second wave, half of them stand still while the others go on, or they wait for an
//! approval. What of that is told to the one on call is bounded. `soak` has eight.

mod approvals;
mod back;
mod dies;
mod oncall;
mod soak;

use std::time::{Duration, Instant};

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

const EDGES: [&str; 4] = ["e0", "e1", "e2", "e3"];
const SHOP: &str = "shop";
const EVERYWHERE: &str = "allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]";
/// What is placed, before it is rolled out and by each revision.
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: WORD}\n";

struct Story<'a> {
    bed: &'a Bed,
    /// Project of the deployment, which is called `shop`.
    space: &'a str,
    edges: &'a [&'a str],
    who: String,
}

impl<'a> Story<'a> {
    /// Makes the project.
    async fn begin(bed: &'a Bed, space: &'a str, edges: &'a [&'a str]) -> Result<Self> {
        project(bed, space).await?;
        let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
        let who = bed.hub().kubectl().run(&whoami).await?;
        Ok(Self { bed, space, edges, who })
    }

    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.bed.hub().kubectl().run(args).await
    }

    /// Applies the deployment with this word.
    async fn deploy(&self, version: &str, word: &str, rollout: &str) -> Result<()> {
        let charts = [chart("note", version, &[("templates/note.yaml", &NOTE.replace("WORD", word))])?];
        chart_map(self.bed, self.space, "charts", &charts).await?;
        let spec = format!("placement: {{{EVERYWHERE}}}\nprogressDeadline: 10s\n{rollout}");
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
        for edge in self.edges.iter().filter(|edge| !without.contains(edge)) {
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

    /// The message of Ready while the rollout pauses.
    async fn paused(&self) -> Result<String> {
        wait(self.bed, self.space, SHOP, |dig: &DeploymentIntentGroup| {
            let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
            let found = ready.filter(|ready| ready.reason == "RolloutPaused" && ready.status == "False");
            found.map(|ready| ready.message.clone()).ok_or_else(|| format!("{ready:?}"))
        })
        .await
    }

    /// Kind, reason and message of each Event.
    async fn events(&self) -> Result<String> {
        let each = "jsonpath={range .items[*]}{.involvedObject.kind} {.reason} {.message}{\"\\n\"}{end}";
        self.kubectl(&["get", "events", "-n", self.space, "-o", each]).await
    }

    /// Waits until an Event tells each of these. It is written after the status that it is about.
    async fn told(&self, words: &[&str]) -> Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            let events = self.events().await?;
            let Some(wanted) = words.iter().find(|wanted| !events.contains(**wanted)) else { return Ok(()) };
            ensure!(Instant::now() < deadline, "no Event tells: {wanted}\n{events}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn has(edges: &[&str], word: &str) -> Vec<String> {
    edges.iter().map(|edge| format!("{edge}={word}")).collect()
}

/// They go on, and they keep connections open and answer nothing.
const GO_ON: [&str; 2] = ["e0", "e1"];
const STAND_STILL: [&str; 2] = ["e2", "e3"];
const HALF: &str = "half";

/// Waits until the edge has the word.
async fn has_word(bed: &Bed, edge: &str, word: &str) -> Result<()> {
    let says =
        |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("say")).is_some_and(|said| said == word);
    wait_for_object(bed.edge(edge).api::<ConfigMap>(HALF).await?, "note", SOON, says).await.map(drop)
}

async fn half_stands_still(bed: &Bed) -> Result<()> {
    let story = Story::begin(bed, HALF, &EDGES).await?;
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
