//! A rollout that fails and goes back by itself: wherever people look, the deployment is ready on the revision that came back.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{deployed, project, wait};

use super::approvals::{deploy_chart, note};
use super::oncall::emco;
use super::{EDGES, EVERYWHERE, STAGE};

const ROLLOUT: &str =
    "rollout: {onFailure: Rollback, waves: [{name: canary, clusters: [{provider: acme, cluster: e0}]}]}";
const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: good}\n";
/// Every API server refuses the second object.
const BAD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: bad}
---
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {selector: {app: note}, ports: [{port: 99999}]}
";

/// Waits until a revision was taken back, and what came back is there.
async fn came_back(bed: &Bed) -> Result<()> {
    wait(bed, "back", "shop", |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status")?;
        let over = status.rollout.as_ref().is_some_and(|rollout| rollout.taken_back);
        let is_it = over && status.revision == Some(1) && status.is_true(types::READY);
        if is_it { Ok(()) } else { Err(format!("{:?}: {:?}", status.rollout, status.conditions())) }
    })
    .await
}

#[tokio::test]
async fn after_a_rollback_it_is_ready_on_the_revision_that_came_back() {
    let _turn = serial().await;
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "back").await?;
        deploy_chart(bed, "back", ("1.0.0", GOOD), EVERYWHERE, ROLLOUT).await?;
        deployed(bed, "back", "shop", 1).await?;
        deploy_chart(bed, "back", ("2.0.0", BAD), EVERYWHERE, ROLLOUT).await?;
        came_back(bed).await?;
        for edge in EDGES {
            ensure!(note(bed, edge, "back").await? == "good", "{edge} has something else");
        }
        let table = bed.hub().kubectl().run(&["get", "dig", "shop", "-n", "back", "-o", "wide"]).await?;
        let row = table.lines().nth(1).context("the table has no row")?;
        let columns: Vec<&str> = row.split_whitespace().take(6).collect();
        ensure!(columns == ["shop", "Updated", "True", "Ready", "4/4", "1"], "{table}");
        ensure!(row.contains("too many clusters failed, and revision 1 came back"), "{table}");
        let said = emco(bed, "kubectl emco status back/shop").await?;
        let first = said.lines().next().context("nothing is printed")?;
        for words in ["ready: True", "revision: 1", "clusters: 4/4"] {
            ensure!(first.contains(words), "{words}: {said}");
        }
        Ok(())
    }))
    .await;
}
