//! Approving and rejecting what the page shows, and nothing else.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, field};

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{ON_A, TILL, approvals, beside_others, deploy, edit, get, project, short, waits};

/// What the note on the edge says.
async fn note(bed: &Bed, project: &str) -> Result<String> {
    field(bed, "a", project, "configmap/till-note", "{.data.key}").await
}

/// A deployment in a Manual project whose first plan waits: the digest of that.
async fn waiting(bed: &Bed, name: &str) -> Result<String> {
    project(bed, name, "Manual").await?;
    deploy(bed, name, ON_A).await?;
    waits(bed, name, "").await
}

#[tokio::test]
async fn the_approver_approves_the_shown_digest_and_its_revision_runs() {
    let Some(browser) =
        browser("approving::the_approver_approves_the_shown_digest_and_its_revision_runs").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        let first = waiting(bed, "votes").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "votes"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.shows(&["votes/till", "revision 1"]).await?;
        screen.follow("votes/till").await?;
        screen.shows(&[short(&first), "note", "gate", "acme/a"]).await?;
        screen.write("comment", "change 4711").await?;
        screen.press("Approve").await?;
        screen.has("#said[data-outcome=done]").await?;
        screen.shows(&[&format!("votes/till: digest {} is approved by approver", short(&first))]).await?;
        deployed(bed, "votes", TILL, 1).await?;
        ensure!(note(bed, "votes").await? == "one", "another revision runs");
        screen.shows(&["Ready: True"]).await?;
        let given = approvals(bed, "votes").await?;
        ensure!(given == [format!("{} Approved change 4711", short(&first))], "{given:?}");

        // The page that was left offers nothing that is done already, and sends nothing again.
        screen.back().await?;
        screen.shows(&["votes/till"]).await?;
        screen.lacks("#decide").await?;
        let buttons = screen.buttons().await?;
        ensure!(!buttons.contains(&"Approve".to_owned()), "{buttons:?}");
        ensure!(approvals(bed, "votes").await? == given, "it was approved once more");

        let second = edit(bed, "votes", "two", &first).await?;
        screen.go(&dashboard.link).await?;
        screen.follow("votes/till").await?;
        screen.shows(&[short(&second)]).await?;
        screen.write("comment", "not today").await?;
        screen.press("Reject").await?;
        screen.shows(&["is rejected by approver", "Rejected"]).await?;
        let given = approvals(bed, "votes").await?;
        ensure!(given.contains(&format!("{} Rejected not today", short(&second))), "{given:?}");
        ensure!(note(bed, "votes").await? == "one", "a rejected plan was carried out");
        screen.close().await
    }))
    .await;
}

#[tokio::test]
async fn a_plan_that_another_one_replaced_is_refused_with_a_sentence() {
    let Some(browser) =
        browser("approving::a_plan_that_another_one_replaced_is_refused_with_a_sentence").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        let first = waiting(bed, "haste").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "haste"]).await?;
        // Without scripts the page stays as it was loaded.
        let screen = Screen::open(bed, browser).await?;
        screen.without_scripts().await?;
        screen.go(&dashboard.link).await?;
        screen.follow("haste/till").await?;
        screen.shows(&[short(&first), "Reload"]).await?;
        let live = Screen::at(bed, browser, &screen.address().await?).await?;
        live.shows(&[short(&first)]).await?;
        live.mark().await?;
        let second = edit(bed, "haste", "two", &first).await?;
        let shown = screen.text().await?;
        ensure!(shown.contains(short(&first)), "it changed without a script: {shown}");
        screen.press("Approve").await?;
        screen.has("#said[data-outcome=refused]").await?;
        screen.shows(&[short(&second), short(&first), "look at it again"]).await?;
        ensure!(approvals(bed, "haste").await?.is_empty(), "something was approved");

        // With scripts nothing can be pressed that is not the plan any more.
        live.shows(&["Another plan came meanwhile"]).await?;
        ensure!(live.is_marked().await?, "the page was loaded anew");
        let buttons = live.buttons().await?;
        ensure!(!buttons.contains(&"Approve".to_owned()), "{buttons:?}");
        live.follow("Look at it again").await?;
        live.shows(&[short(&second)]).await?;
        live.close().await?;

        // What is seen then can be approved, without scripts as well.
        screen.go(&dashboard.link).await?;
        screen.follow("haste/till").await?;
        screen.shows(&[short(&second)]).await?;
        screen.press("Approve").await?;
        deployed(bed, "haste", TILL, 1).await?;
        ensure!(note(bed, "haste").await.context("the note")? == "two", "another revision runs");
        screen.close().await
    }))
    .await;
}
