//! In: an edge that another one answers for, another hub claims, or that went back in time. Out: what is done there, and what is said.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec, Snapshot, serial};
use emco_e2e::operator::{
    EVERYWHERE, SharedOperator, chart, chart_map, deployed, deployment, do_as_told, failing, has_maps, is,
    note, noted, ours, project, saying, says, wait,
};
use emco_e2e::package::Package;
use serde_json::Value;

/// Nothing runs on these edges: what is deployed here is ready when it is there.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let plane = |name| PlaneSpec::light(name, &[]).audit(Audit::Writes);
        BedSpec::default().with(plane("hub")).with(plane("a").own_etcd().proxied()).with(plane("b"))
    },
    &["a", "b"],
);

async fn start(name: &str) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    noted(bed, name).await?;
    Ok(bed)
}

async fn here(bed: &Bed, plane: &str, namespace: &str) -> Result<Vec<String>> {
    ours(bed, plane, "configmaps", Some(namespace)).await
}

#[tokio::test]
async fn an_edge_made_anew_gets_nothing_until_somebody_confirms_it_and_then_everything() {
    let _turn = serial().await;
    let bed = start("anew").await.unwrap();
    bed.explain(async {
        let before = here(bed, "a", "anew").await?;
        ensure!(before == ["ConfigMap/anew/note"], "{before:?}");
        bed.edge("a").wipe().await?;
        let message = says::<Cluster, _>(bed, "acme", "a", types::READY, "ClusterReplaced").await?;
        let written = bed.edge("a").audit_mark()?;
        bed.hub().kubectl().apply(&deployment("anew", "shop", &[note()?], &saying("two"))).await?;
        failing(bed, "anew", "shop", "acme/a", "ClusterReplaced").await?;
        ensure!(here(bed, "b", "anew").await?.len() == 1, "the other edge goes on");
        let by_emco: Vec<_> =
            bed.edge("a").audit_since(written)?.into_iter().filter(|e| e.user == "emco").collect();
        ensure!(by_emco.is_empty(), "{by_emco:?}");
        do_as_told(bed, &message).await?;
        wait(bed, "acme", "a", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
        deployed(bed, "anew", "shop", 2).await?;
        let now = here(bed, "a", "anew").await?;
        ensure!(now == ["ConfigMap/anew/note"], "{now:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_edge_says_whose_it_is_and_another_hubs_edge_is_left_alone_until_it_is_moved() {
    let _turn = serial().await;
    let bed = start("claims").await.unwrap();
    bed.explain(async {
        let get = ["get", "cm", "hub", "-n", "emco-system", "-o", "json"];
        let claim: Value = serde_json::from_str(&bed.edge("b").kubectl().run(&get).await?)?;
        let ours = claim["data"]["installation"].as_str().unwrap_or_default().to_owned();
        ensure!(!ours.is_empty(), "{claim}");
        let patch = r#"{"data":{"installation":"somebody-else"}}"#;
        bed.edge("b")
            .kubectl()
            .run(&["patch", "cm", "hub", "-n", "emco-system", "--type=merge", "-p", patch])
            .await?;
        let again = ["annotate", "ecl", "b", "-n", "acme", "--overwrite", "emco.io/requestedAt=now"];
        bed.hub().kubectl().run(&again).await?;
        let message = says::<Cluster, _>(bed, "acme", "b", types::READY, "ClaimedByAnotherHub").await?;
        let written = bed.edge("b").audit_mark()?;
        bed.hub().kubectl().apply(&deployment("claims", "shop", &[note()?], &saying("two"))).await?;
        failing(bed, "claims", "shop", "acme/b", "ClaimedByAnotherHub").await?;
        let by_emco: Vec<_> =
            bed.edge("b").audit_since(written)?.into_iter().filter(|e| e.user == "emco").collect();
        ensure!(by_emco.is_empty(), "{by_emco:?}");
        do_as_told(bed, &message).await?;
        deployed(bed, "claims", "shop", 2).await?;
        let claim: Value = serde_json::from_str(&bed.edge("b").kubectl().run(&get).await?)?;
        ensure!(claim["data"]["installation"] == ours.as_str(), "{claim}");
        Ok(())
    })
    .await;
}

/// A ConfigMap whose name its values say.
fn named() -> Result<Package> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.say }}}\n";
    chart("web", "1.0.0", &[("values.yaml", "say: first\n"), ("templates/note.yaml", template)])
}

/// Restores edge `a` from a backup that is a revision old, by `restore`, and waits until it is as the present revision says.
async fn restored(project_name: &str, restore: impl AsyncFnOnce(&Bed, Snapshot) -> Result<()>) {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, project_name).await?;
        chart_map(bed, project_name, "charts", &[named()?]).await?;
        bed.hub().kubectl().apply(&deployment(project_name, "shop", &[named()?], EVERYWHERE)).await?;
        deployed(bed, project_name, "shop", 1).await?;
        let backup = bed.edge("a").snapshot().await?;
        let newer = deployment(project_name, "shop", &[named()?], &saying("second"));
        bed.hub().kubectl().apply(&newer).await?;
        deployed(bed, project_name, "shop", 2).await?;
        ensure!(here(bed, "a", project_name).await? == [format!("ConfigMap/{project_name}/second")]);

        restore(bed, backup).await?;
        has_maps(bed, "a", project_name, &["second"]).await?;
        wait(bed, "acme", "a", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
        // Told as what it looks like from here: somebody changed what was placed.
        wait(bed, project_name, "shop", |dig: &DeploymentIntentGroup| {
            let drift = dig.status.as_ref().and_then(|status| status.drift.as_ref());
            if drift.is_some_and(|drift| drift.corrected > 0) {
                Ok(())
            } else {
                Err(format!("nothing was corrected: {drift:?}"))
            }
        })
        .await?;
        deployed(bed, project_name, "shop", 2).await?;
        ensure!(here(bed, "b", project_name).await? == [format!("ConfigMap/{project_name}/second")]);
        Ok(())
    })
    .await;
}

/// The plainer one: the store of the edge is behind what was seen of it.
mod soak {
    use emco_e2e::bed::serial;

    use super::restored;

    #[tokio::test]
    async fn an_edge_restored_from_a_backup_is_brought_to_where_it_should_be_today() {
        let _turn = serial().await;
        restored("older", async |bed, backup| {
            bed.edge("a").others_write(500).await?;
            bed.edge("a").restore_from(&backup).await
        })
        .await;
    }
}

#[tokio::test]
async fn an_edge_restored_from_a_backup_is_found_out_though_its_store_is_further_than_it_ever_was() {
    let _turn = serial().await;
    restored("further", async |bed, backup| {
        let edge = bed.edge("a");
        let seen = edge.version().await?;
        edge.refuse().await?;
        edge.restore_from(&backup).await?;
        let behind = usize::try_from(seen.saturating_sub(edge.version().await?))?;
        edge.others_write(behind + 50).await?;
        edge.restore().await
    })
    .await;
}
