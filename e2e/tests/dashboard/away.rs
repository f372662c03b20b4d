//! Parts that go while a page is open: the hub, the operator, the deployment.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::deployed;
use emco_e2e::supervisor::{Line, Proxy};

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{ON_A, TILL, alone, beside_others, deploy, edit, get, project, short, waits};

/// The hub for one user alone, behind a line of its own; with the kubeconfig that leads there.
async fn line(bed: &Bed, user: &str) -> Result<(Proxy, std::path::PathBuf)> {
    let port = bed.hub().url().rsplit(':').next().and_then(|port| port.parse().ok());
    let port: u16 = port.context("the hub has no port")?;
    let proxy = bed.supervisor().proxy(port).await?;
    let text = bed.hub().kubeconfig_as(user, None)?;
    let file = bed.dir().join(format!("{user}-{}.kubeconfig", proxy.port()));
    let address = |port: u16| format!("https://127.0.0.1:{port}\n");
    tokio::fs::write(&file, text.replace(&address(port), &address(proxy.port()))).await?;
    Ok((proxy, file))
}

#[tokio::test]
async fn a_hub_that_goes_is_said_and_its_return_is_shown() {
    let Some(browser) = browser("away::a_hub_that_goes_is_said_and_its_return_is_shown").await else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "gone", "Manual").await?;
        deploy(bed, "gone", ON_A).await?;
        let first = waits(bed, "gone", "").await?;
        let (line, kubeconfig) = line(bed, "viewer").await?;
        let dashboard = Dashboard::start_with(bed, &kubeconfig, &["-n", "gone"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.follow("gone/till").await?;
        screen.shows(&[short(&first)]).await?;
        screen.mark().await?;
        line.set(Line::Refusing).await?;
        screen.shows(&["The hub does not answer"]).await?;
        let second = edit(bed, "gone", "two", &first).await?;
        line.set(Line::Good).await?;
        ensure!(second != first, "it is the same plan");
        screen.shows(&["Another plan came meanwhile"]).await?;
        screen.hides("The hub does not answer").await?;
        ensure!(screen.is_marked().await?, "the page was loaded anew");

        // The program itself ends: the page cannot be right any more, and says so.
        ensure!(dashboard.interrupt().await? == Some(0), "Ctrl-C is an error");
        screen.shows(&["The connection is lost"]).await?;
        screen.close().await
    }))
    .await;
}

#[tokio::test]
async fn a_deleted_deployment_is_said_on_its_open_page() {
    let Some(browser) = browser("away::a_deleted_deployment_is_said_on_its_open_page").await else { return };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "over", "Automatic").await?;
        deploy(bed, "over", ON_A).await?;
        deployed(bed, "over", TILL, 1).await?;
        let dashboard = Dashboard::start(bed, "viewer", &["-n", "over"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.follow("over/till").await?;
        screen.shows(&["Ready: True"]).await?;
        screen.mark().await?;
        bed.hub().kubectl().run(&["delete", "dig", TILL, "-n", "over", "--timeout=60s"]).await?;
        screen.shows(&["there is no deployment over/till"]).await?;
        ensure!(screen.is_marked().await?, "the page was loaded anew");
        screen.go(&dashboard.link).await?;
        screen.has("#none").await?;
        screen.close().await
    }))
    .await;
}

#[tokio::test]
async fn a_stopped_operator_leaves_a_banner_and_everything_unknown() {
    let Some(browser) = browser("away::a_stopped_operator_leaves_a_banner_and_everything_unknown").await
    else {
        return;
    };
    let (bed, operator) = get().await.unwrap();
    let _alone = alone().await;
    bed.explain(Box::pin(async {
        project(bed, "quiet", "Automatic").await?;
        deploy(bed, "quiet", ON_A).await?;
        deployed(bed, "quiet", TILL, 1).await?;
        let dashboard = Dashboard::start(bed, "viewer", &["-n", "quiet"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.has("tr[data-deployment='quiet/till'][data-ready=True]").await?;
        let mut operator = operator.lock().await;
        operator.process().terminate().await?;
        screen.shows(&["no operator has worked since"]).await?;
        screen.has("tr[data-deployment='quiet/till'][data-ready=Unknown]").await?;
        screen.follow("quiet/till").await?;
        screen.shows(&["no operator has worked since", "Ready: Unknown"]).await?;
        screen.has("tr[data-cluster='acme/a'][data-state=Unknown]").await?;
        operator.restart(bed).await?;
        screen.hides("no operator has worked since").await?;
        screen.shows(&["Ready: True"]).await?;
        screen.close().await
    }))
    .await;
}
