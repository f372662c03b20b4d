//! What a tenant of level Standard may not do is refused by the cluster, and told in Flux's words.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, has_maps, is, project, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;

use super::{EDGES, Fleet, said};

/// The namespace on the clusters.
const THERE: &str = "flux-there";
/// More than `ClusterRole` admin has: no cluster lets the account give it.
const GREEDY: &str = "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: greedy}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [escalate]}]
";
const SMUGGLED: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: smuggled}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
";

fn saying(version: &str, say: &str, more: &str) -> Result<Package> {
    let note =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{say: {say}}}\n{more}");
    chart("web", version, &[("templates/note.yaml", &note)])
}

/// Deploys in a logical cloud of level Standard.
pub async fn refused(fleet: &Fleet) -> Result<()> {
    let (bed, kubectl) = (fleet.bed, fleet.bed.hub().kubectl());
    let space = format!("{}-tenant", fleet.name);
    project(bed, &space).await?;
    let cloud = format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: tenant, namespace: {space}}}, \
         spec: {{level: Standard, namespace: {THERE}}}}}"
    );
    kubectl.apply(&cloud).await?;
    wait(bed, &space, "tenant", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
        .await?;
    let charts =
        [saying("1.0.0", "one", "")?, saying("1.0.1", "two", GREEDY)?, saying("1.0.2", "three", "")?];
    chart_map(bed, &space, "charts", &charts).await?;
    let spec = format!("{}\nlogicalCloudRef: {{name: tenant}}", fleet.only(EDGES[0]));
    let [one, two, three] = charts.map(|chart| deployment(&space, "shop", &[chart], &spec));
    kubectl.apply(&one).await?;
    deployed(bed, &space, "shop", 1).await?;

    kubectl.apply(&two).await?;
    wait(bed, &space, "shop", |dig: &DeploymentIntentGroup| {
        let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
        let told = rows.iter().any(|row| {
            row.reason == "AgentFailed" && row.message.contains("Flux: ") && row.message.contains("greedy")
        });
        if told { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await?;
    ensure!(said(bed, EDGES[0], THERE, "web").await? == "one", "a part of it was applied");
    kubectl.apply(&three).await?;
    deployed(bed, &space, "shop", 3).await?;
    smuggled(fleet, &space).await?;

    kubectl.run(&["delete", "dig", "shop", "-n", &space, "--wait=false"]).await?;
    has_maps(bed, EDGES[0], THERE, &[]).await?;
    kubectl.run(&["delete", "lc", "tenant", "-n", &space, "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<LogicalCloud>(&space).await?, "tenant", SOON).await?;
    fleet.is_left_by(&space).await
}

/// Somebody who may push adds a `ClusterRole` to the tenant's folder: the cluster refuses it, for as long as the hub does not undo it.
async fn smuggled(fleet: &Fleet, space: &str) -> Result<()> {
    fleet.published().await?;
    let folder = format!("{}/{space}/dig-shop/web", fleet.folder(EDGES[0]));
    let list = fleet.server.text(&format!("{folder}/kustomization.yaml")).await?;
    let file = format!("{folder}/smuggled.yaml");
    let listed = format!("{list}- smuggled.yaml\n");
    fleet
        .server
        .push(&[(&file, Some(SMUGGLED)), (&format!("{folder}/kustomization.yaml"), Some(&listed))])
        .await?;
    fleet.look("smuggled").await?;
    let is_gone = async || fleet.server.text(&file).await.is_err();
    fleet.until("the file of others is gone", is_gone).await?;
    let roles = fleet.bed.edge(EDGES[0]).kubectl().run(&["get", "clusterroles", "-o", "name"]).await?;
    ensure!(!roles.contains("smuggled"), "{roles}");
    Ok(())
}
