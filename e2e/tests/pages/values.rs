//! `values.md`.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, deployed, deployment};
use emco_e2e::wait::wait_until_gone;

use super::cli::web;
use super::page::Page;

pub async fn follow(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    // Its chart is in the ConfigMap of the page before.
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    kubectl.apply(&deployment("shop", "till", &[web()?], everywhere)).await?;
    deployed(bed, "shop", "till", 1).await?;
    let mut page = Page::read(bed, "values.md")?;
    page.run("kubectl patch dig till").await?;
    deployed(bed, "shop", "till", 2).await?;
    let said = page.run("kubectl emco manifests shop/till").await?;
    ensure!(said.contains("say: hello"), "{said}");
    page.run("kubectl patch dig till").await?;
    page.run("kubectl wait dig/till").await?;
    let sentence = "chart web of app web reads no value \"sya\" (did you mean \"say\"?)";
    ensure!(page.run("kubectl get dig till").await?.trim() == sentence);
    let said = page.run("kubectl emco status shop/till | grep note").await?;
    ensure!(said == format!("   note: {sentence}\n"), "{said}");
    page.end()?;
    deployed(bed, "shop", "till", 3).await?;
    let selector = "involvedObject.name=till,type=Warning,reason=RenderWarning";
    let events =
        kubectl.run(&["get", "events", "-n", "shop", "--field-selector", selector, "-o", "name"]).await?;
    ensure!(events.lines().count() == 1, "{events}");
    kubectl.run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await
}
