//! `actions.md`.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, deployed, deployment, root};
use emco_e2e::wait::wait_until_gone;

use super::cli::web;
use super::page::{Page, folder, yaml};

/// The ConfigMap that the page adds, on the edge.
async fn maps(bed: &Bed) -> Result<String> {
    let args = ["get", "configmaps", "-n", "shop", "-o", "jsonpath={.items[*].data}"];
    bed.edge("berlin").kubectl().run(&args).await
}

/// The part about objects of no chart.
async fn close(bed: &Bed, page: &mut Page<'_>, text: &str) -> Result<()> {
    let closed = yaml(text).into_iter().find(|text| text.contains("\n  name: closed\n"));
    let closed = closed.context("the page has no intent closed")?;
    std::fs::write(folder(bed)?.join("closed.yaml"), closed)?;
    page.run("kubectl apply -f closed.yaml").await?;
    page.run("kubectl patch dig till").await?;
    deployed(bed, "shop", "till", 5).await?;
    let policies = async || {
        let args = ["get", "networkpolicies", "-n", "shop", "-o", "name"];
        bed.edge("berlin").kubectl().run(&args).await
    };
    ensure!(policies().await?.contains("networkpolicy.networking.k8s.io/closed"));
    let said = page.run("kubectl emco manifests shop/till").await?;
    ensure!(!said.is_empty() && text.contains(said.trim()), "{said}");
    page.run("kubectl patch dig till").await?;
    page.run("kubectl delete gai closed").await?;
    deployed(bed, "shop", "till", 6).await?;
    ensure!(policies().await?.is_empty());
    Ok(())
}

pub async fn follow(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    // Its chart is in the ConfigMap of a page before.
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    kubectl.apply(&deployment("shop", "till", &[web()?], everywhere)).await?;
    deployed(bed, "shop", "till", 1).await?;
    let text = std::fs::read_to_string(root().join("docs/actions.md"))?;
    let banner = *yaml(&text).first().context("the page has no intent")?;
    std::fs::write(folder(bed)?.join("banner.yaml"), banner)?;
    let mut page = Page::read(bed, "actions.md")?;
    page.run("kubectl apply -f banner.yaml").await?;
    page.run("kubectl wait gai/banner").await?;
    page.run("kubectl patch dig till").await?;
    deployed(bed, "shop", "till", 2).await?;
    let said = page.run("kubectl emco manifests shop/till").await?;
    for line in said.lines().chain(["# changed by GenericActionIntent banner, spec.actions[words]"]) {
        ensure!(text.contains(line) && said.contains(line), "{line}: {said}");
    }
    let said = page.run("kubectl emco manifests shop/till --edits").await?;
    for part in ["(added)", "/data/say", "GenericActionIntent banner, spec.actions[words]"] {
        ensure!(text.contains(part) && said.contains(part), "{part}: {said}");
    }
    let said = page.run("kubectl get dig till").await?;
    ensure!(said.contains(r#""kind":"GenericActionIntent","name":"banner","objects":"#), "{said}");
    let there = maps(bed).await?;
    ensure!(there.contains("served from berlin") && there.contains("changed"), "{there}");
    page.run("sed ").await?;
    let said = page.run("kubectl emco plan -f again.yaml").await?;
    ensure!(said.contains("say: again"), "{said}");
    page.run("kubectl apply -f again.yaml").await?;
    deployed(bed, "shop", "till", 3).await?;
    page.run("kubectl patch dig till").await?;
    page.run("kubectl delete gai banner").await?;
    deployed(bed, "shop", "till", 4).await?;
    let there = maps(bed).await?;
    ensure!(!there.contains("served from berlin") && !there.contains("again"), "{there}");
    close(bed, &mut page, &text).await?;
    page.end()?;
    kubectl.run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await
}
