//! What is wrong, told to who looks at the overview.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, wait};
use serde_json::{Value, json};

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{EVERYWHERE, TILL, beside_others, deploy, get, project};

/// Patches the deployment's values.
async fn values(bed: &Bed, values: Value) -> Result<()> {
    let patch = json!({"spec": {"overrideValues": values}}).to_string();
    let args = ["patch", "dig", TILL, "-n", "frost", "--type=merge", "-p", &patch];
    bed.hub().kubectl().run(&args).await.map(drop)
}

/// Where the first cure with these words leads.
async fn leads(screen: &Screen, words: &str) -> Result<String> {
    const LINK: &str =
        "const a = [...document.querySelectorAll('a.cure')].find(a => a.innerText.includes(arguments[0]));
        return a ? a.href : ''";
    Ok(screen.run(LINK, vec![words.into()]).await?.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_frozen_edge_and_a_failing_chart_are_told_in_two_clicks() {
    let Some(browser) = browser("failing::a_frozen_edge_and_a_failing_chart_are_told_in_two_clicks").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "frost", "Automatic").await?;
        deploy(bed, "frost", EVERYWHERE).await?;
        deployed(bed, "frost", TILL, 1).await?;
        let dashboard = Dashboard::start(bed, "viewer", &["-n", "frost"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.shows(&["frost/till", "2/2"]).await?;
        screen.mark().await?;

        // Connections stay open, and nothing answers.
        bed.edge("b").cut_off().await?;
        let wrong = json!([
            {"app": "note", "values": {"key": "two"}},
            {"app": "gate", "clusters": [{"provider": "acme", "cluster": "a"}], "values": {"port": 99_999}},
        ]);
        values(bed, wrong).await?;
        // Who, and what is wrong there.
        screen.has("tr[data-deployment='frost/till'][data-ready=False] .failure a").await?;
        screen.shows(&["frost/till", "gate on acme/a", "Invalid"]).await?;
        ensure!(screen.is_marked().await?, "the overview was loaded anew");
        screen.follow("frost/till").await?;
        let shown = screen
            .shows(&["acme/a", "Failed", "Invalid", "must be between 1 and 65535", "acme/b", "Unreachable"])
            .await?;
        screen.shows(&["What to do: Correct values or chart."]).await?;
        ensure!(!shown.contains("99999"), "a value is shown: {shown}");
        for (cluster, state) in [("acme/a", "Failed"), ("acme/b", "Unreachable")] {
            let row = format!("tr[data-cluster='{cluster}'][data-state='{state}']");
            screen.has(&format!("{row} .since time[datetime]")).await?;
        }
        // The second click is for the cure.
        let to = leads(&screen, "Invalid").await?;
        ensure!(to.ends_with("/reasons/DeploymentIntentGroup#Invalid"), "the reason leads to {to:?}");

        screen.mark().await?;
        bed.edge("b").restore().await?;
        values(bed, Value::Null).await?;
        wait(bed, "frost", TILL, |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map_or(1, |status| status.failing.len());
            if failing == 0 { Ok(()) } else { Err(format!("{failing} clusters fail")) }
        })
        .await?;
        screen.lacks("tr[data-state=Unreachable], tr[data-state=Failed], [data-reason]").await?;
        screen.shows(&["Ready: True"]).await?;
        ensure!(screen.is_marked().await?, "the page was loaded anew");
        screen.close().await
    }))
    .await;
}
