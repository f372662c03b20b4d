//! An object that was taken over, and is replaced without any mark while no operator runs.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::{Conditioned as _, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    SOON, chart, chart_map, deployed, deployment, is, project, register, unless_ended, wait,
};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{EDGES, IN_TURN};

const SPACE: &str = "taken";
const ADOPTED: &str = "emco.io/adopted";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: theirs}
";

async fn deploy(bed: &Bed, note: &Package, conflicts: &str) -> Result<()> {
    let spec =
        format!("placement: {{allOf: [{{provider: acme, cluster: a}}]}}\nsync: {{conflicts: {conflicts}}}");
    bed.hub().kubectl().apply(&deployment(SPACE, "shop", std::slice::from_ref(note), &spec)).await.map(drop)
}

fn is_marked(map: &ConfigMap) -> bool {
    map.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ADOPTED))
}

#[tokio::test]
async fn what_was_taken_over_and_replaced_without_marks_is_not_deleted() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let life = async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &EDGES).await?;
        project(bed, SPACE).await?;
        wait(bed, SPACE, "default", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
            .await?;
        let edge = bed.edge("a").kubectl();
        edge.apply_to(SPACE, NOTE).await?;
        let note = chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?;
        chart_map(bed, SPACE, "charts", std::slice::from_ref(&note)).await?;
        deploy(bed, &note, "AdoptIfSame").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        // As the guide to moving in says.
        deploy(bed, &note, "Fail").await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().ok_or("it has no status")?;
            let seen = status.observed_generation() == dig.metadata.generation;
            if seen { is(Some(status), types::READY, "True") } else { Err(format!("{status:?}")) }
        })
        .await?;
        let maps = bed.edge("a").api::<ConfigMap>(SPACE).await?;
        let before = maps.get("note").await?;
        ensure!(is_marked(&before), "{:?}", before.metadata);
        operator.kill().await?;
        edge.run_with(&["replace", "-n", SPACE, "-f", "-"], NOTE).await?;
        let bare = maps.get("note").await?;
        ensure!(!is_marked(&bare) && bare.metadata.labels.is_none(), "{:?}", bare.metadata);
        operator.restart(bed).await?;
        unless_ended(operator.process(), wait_for_object(maps.clone(), "note", SOON, is_marked)).await?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", SPACE, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(SPACE).await?, "shop", SOON).await?;
        let after = maps.get_opt("note").await?.context("what was there before was deleted")?;
        ensure!(after.metadata.uid == before.metadata.uid && !is_marked(&after), "{:?}", after.metadata);
        Ok(())
    };
    bed.explain(Box::pin(life)).await;
}
