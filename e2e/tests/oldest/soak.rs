//! Installs, deploys, changes and removes with the oldest version of Kubernetes that the book allows, as hub and as edge.

use anyhow::{Result, ensure};
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, as_account, chart, chart_map, deployed, deployment, has_maps, program, project, register,
    root, unless_ended, wait,
};
use emco_e2e::package::Package;
use emco_e2e::programs::Program;
use emco_e2e::wait::wait_until_gone;

const EDGES: [&str; 2] = ["old", "new"];
/// An object of others.
const THEIRS: &str = "theirs";

fn note(maps: &[&str]) -> Result<Package> {
    let files: Vec<(String, String)> = maps
        .iter()
        .map(|name| {
            let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
            (format!("templates/{name}.yaml"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    chart("note", &format!("{}.0.0", maps.len()), &files)
}

/// Installs, deploys, changes and removes.
async fn works(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let config = root().join("config/default").display().to_string();
    kubectl.run(&["apply", "--server-side", "-k", &config]).await?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
    let operator = Operator::start_as(bed, &program()?, as_account(bed).await?, String::new()).await?;
    let working = async {
        register(bed, "acme", &EDGES).await?;
        project(bed, "shop").await?;
        let version = bed.hub().api::<Cluster>("acme").await?.get("old").await?;
        let version = version.status.and_then(|status| status.kubernetes_version).unwrap_or_default();
        ensure!(version == Program::OldestApiServer.version(), "the cluster has version {version}");
        let (one, two) = (note(&["kept", "gone"])?, note(&["kept", "new", "newer"])?);
        let more = note(&["kept", "new", "newer", THEIRS])?;
        chart_map(bed, "shop", "charts", &[one.clone(), two.clone(), more.clone()]).await?;
        let spec = "placement: {allOf: [{selector: {}}]}";
        for (revision, package, maps) in
            [(1, one, &["gone", "kept"][..]), (2, two.clone(), &["kept", "new", "newer"][..])]
        {
            kubectl.apply(&deployment("shop", "till", &[package], spec)).await?;
            deployed(bed, "shop", "till", revision).await?;
            for edge in EDGES {
                has_maps(bed, edge, "shop", maps).await?;
            }
        }
        is_left_to_others(bed, &deployment("shop", "till", &[more], spec)).await?;
        kubectl.apply(&deployment("shop", "till", &[two], spec)).await?;
        deployed(bed, "shop", "till", 4).await?;
        // Rules of the kinds and policies are those of the newest version.
        let bad = root().join("config/samples/invalid/chart-version-range.yaml").display().to_string();
        let refused = kubectl.run(&["create", "-f", &bad]).await.unwrap_err();
        ensure!(format!("{refused:#}").contains("is invalid"), "{refused:#}");
        kubectl.run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await?;
        for edge in EDGES {
            has_maps(bed, edge, "shop", &[]).await?;
        }
        Ok(())
    };
    unless_ended(operator.process(), working).await
}

/// An object of others is named and not changed, also where it says the same as ours would.
async fn is_left_to_others(bed: &Bed, deployment: &str) -> Result<()> {
    let version = async |edge: &str| {
        let path = "jsonpath={.metadata.resourceVersion}";
        bed.edge(edge).kubectl().run(&["get", "configmap", THEIRS, "-n", "shop", "-o", path]).await
    };
    let mut before = Vec::new();
    for edge in EDGES {
        bed.edge(edge).kubectl().run(&["create", "configmap", THEIRS, "-n", "shop"]).await?;
        before.push(version(edge).await?);
    }
    bed.hub().kubectl().apply(deployment).await?;
    wait(bed, "shop", "till", |dig: &DeploymentIntentGroup| {
        let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
        let named = failing.iter().filter(|row| row.reason == "NotOurs").count();
        if named == EDGES.len() { Ok(()) } else { Err(format!("{failing:?}")) }
    })
    .await?;
    for (edge, before) in EDGES.iter().zip(before) {
        ensure!(version(edge).await? == before, "{edge}: it was changed");
    }
    Ok(())
}

#[tokio::test]
async fn the_oldest_version_of_the_book_holds_a_hub_and_edges() {
    let spec = BedSpec::default()
        .with(PlaneSpec::new("hub", Parts::ApiServer).oldest())
        .with(PlaneSpec::new("old", Parts::ApiServer).oldest())
        .with(PlaneSpec::new("new", Parts::ApiServer));
    let bed = Bed::start(spec).await.unwrap();
    bed.explain(Box::pin(works(&bed))).await;
}
