//! The hub's own folder: Flux beside the hub applies the example of docs/gitops.md, heals what somebody changes, and prunes what left.

use anyhow::{Context as _, Result, ensure};
use emco_crds::{CompositeApp, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{Operator, SOON, chart_map, deployed, ours, program, root, secret, unless_ended};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde::Deserialize as _;
use serde_json::Value;

use crate::flux::{Flux, built};

const CLUSTERS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: acme, labels: {emco.io/provider: acme}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: acme}
spec: {grants: [{name: shop, projects: [shop], maxLevel: Admin}]}
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: a, namespace: acme, labels: {tier: edge}}
spec: {access: {kubeconfigSecretRef: {name: a-kubeconfig}}}
";
/// The Kustomization of the page.
const TENANT: &str = "kustomizations.kustomize.toolkit.fluxcd.io/tenant-shop";

/// The first block of a kind on the page.
fn block<'a>(page: &'a str, kind: &str) -> Result<&'a str> {
    let (_, rest) = page.split_once(&format!("```{kind}\n")).context("the page has no such example")?;
    Ok(rest.split_once("```").context("the example has no end")?.0)
}

/// The example of the page and clusters for it, each object in a file of its own.
fn tenant(page: &str) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for text in [block(page, "yaml")?, CLUSTERS] {
        for document in serde_yaml::Deserializer::from_str(text) {
            let object = Value::deserialize(document)?;
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let name = format!("tenant/{}-{}.yaml", text("/kind").to_lowercase(), text("/metadata/name"));
            files.push((name, object.to_string()));
        }
    }
    ensure!(files.len() == 8, "there are {} objects", files.len());
    Ok(files)
}

#[tokio::test]
async fn flux_applies_heals_and_prunes_the_folder_of_the_page_on_the_hub() {
    built().await.unwrap();
    let bed = Bed::start(BedSpec::hub().edges(&["a"])).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(&bed, &program()?).await?;
        unless_ended(operator.process(), Box::pin(follows(&bed))).await
    }))
    .await;
}

async fn follows(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let _flux = Flux::start(bed, "hub").await?;
    let page = std::fs::read_to_string(root().join("docs/gitops.md"))?;
    let server = GitServer::bare(None).await?;
    let files = tenant(&page)?;
    let all: Vec<(&str, Option<&str>)> =
        files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    server.push(&all).await?;
    let source = format!(
        "
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: fleet, namespace: flux-system}}
spec: {{interval: 5s, url: '{}', ref: {{branch: main}}}}
",
        server.url()
    );
    // The example of Flux comes first.
    let example = block(&page, "yml")?.replace("interval: 10m", "interval: 10s");
    kubectl.apply(&format!("{source}---\n{example}")).await?;

    // What a secret store and a build bring.
    for namespace in ["acme", "shop"] {
        let namespaces: Api<Namespace> = Api::all(bed.hub().client().await?);
        wait_for_object(namespaces, namespace, SOON, |_| true).await?;
    }
    secret(bed, "acme", "a", &bed.edge("a").kubeconfig()?).await?;
    let chart = Package::of_folder(&root().join("config/samples/charts/storefront"))?;
    chart_map(bed, "shop", "shop-charts", std::slice::from_ref(&chart)).await?;
    deployed(bed, "shop", "shop", 1).await?;
    kubectl.run(&["wait", TENANT, "-n", "flux-system", "--for=condition=Ready", "--timeout=180s"]).await?;

    let seven = r#"{"spec":{"quotas":[{"name":"all","hard":{"pods":"7"}}]}}"#;
    kubectl.run(&["patch", "lc", "edge", "-n", "shop", "--type=merge", "-p", seven]).await?;
    let healed = "--for=jsonpath={.spec.quotas[0].hard.pods}=50";
    kubectl.run(&["wait", "lc/edge", "-n", "shop", healed, "--timeout=120s"]).await?;

    let leaves = ["deploymentintentgroup-", "compositeapp-", "logicalcloud-"];
    let gone: Vec<(&str, Option<&str>)> = files
        .iter()
        .filter(|(path, _)| leaves.iter().any(|kind| path.contains(kind)))
        .map(|(path, _)| (path.as_str(), None))
        .collect();
    ensure!(gone.len() == leaves.len(), "{gone:?}");
    server.push(&gone).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "shop", SOON).await?;
    wait_until_gone(bed.hub().api::<CompositeApp>("shop").await?, "shop", SOON).await?;
    wait_until_gone(bed.hub().api::<LogicalCloud>("shop").await?, "edge", SOON).await?;
    let left = ours(bed, "a", "deployments,services,configmaps", None).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
