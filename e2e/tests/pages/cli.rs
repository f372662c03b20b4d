//! `cli.md`.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart_map};
use emco_e2e::wait::wait_until_gone;

use super::backup::{note, say};
use super::page::{Page, folder};

pub async fn follow(bed: &Bed) -> Result<()> {
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    say(bed, 1).await?;
    say(bed, 2).await?;
    let mut page = Page::read(bed, "cli.md")?;
    let said = page.run("kubectl emco status shop/till || echo").await?;
    ensure!(!said.contains("not yet"), "{said}");
    let said = page.run("kubectl emco status shop/till").await?;
    ensure!(said.starts_with("shop/till  ") && said.contains("└─ web  1/1 clusters ready"), "{said}");
    page.run("kubectl emco status -A --state Failed --state Unreachable").await?;
    page.run_until("kubectl emco status shop/till --watch", "shop/till  ").await?;
    let said = page.run("kubectl emco diff shop/till --cluster acme/berlin").await?;
    ensure!(said.contains("acme/berlin, revision 2: no difference"), "{said}");
    // 3: something is not as asked for.
    let said = page.run_to("hub", "kubectl emco diff shop/till --revision 1", 3).await?;
    ensure!(said.contains("data.say: \"word-2\" -> \"word-1\""), "{said}");
    std::fs::create_dir_all(folder(bed)?.join(".local/bin"))?;
    page.run("kubectl emco completion kubectl").await?;
    page.run("chmod +x").await?;
    page.end()?;
    bed.hub().kubectl().run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await
}
