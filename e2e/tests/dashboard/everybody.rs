//! Pages that everybody can read and use: those who need contrast, a narrow window, a screen reader, or the keyboard alone.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::deployed;
use serde_json::Value;

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{ON_A, TILL, beside_others, deploy, edit, get, project, short, waits};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// Violations of all success criteria of WCAG 2.0, 2.1 and 2.2 at levels A and AA that a program can judge.
const JUDGE: &str = "const done = arguments[0];
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
    axe.run(document, {runOnly: {type: 'tag', values: tags}, preload: false}).then(
        found => done({passed: found.passes.length, violations: found.violations.map(one =>
            one.id + ': ' + one.help + ': ' + one.nodes.map(node => node.html + ' ' + node.failureSummary).join('; '))}),
        error => done({violations: [String(error)]}))";
/// Whether something is cut off at the side, or can only be read by scrolling there.
const TOO_WIDE: &str = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

/// Judges the page that is shown.
async fn judge(screen: &Screen, axe: &str, what: &str) -> Result<()> {
    screen.run(axe, Vec::new()).await.context("axe does not run")?;
    let found = screen.run_async(JUDGE, Vec::new()).await?;
    let violations = found["violations"].as_array().context("axe says nothing")?;
    let lines: Vec<&str> = violations.iter().filter_map(Value::as_str).collect();
    ensure!(violations.is_empty(), "{what}:\n{}", lines.join("\n"));
    ensure!(found["passed"].as_u64() > Some(5), "{what}: axe looked at nothing: {found}");
    Ok(())
}

/// A deployment that runs, and whose next plan waits.
async fn waiting(bed: &Bed, name: &str) -> Result<String> {
    project(bed, name, "Automatic").await?;
    deploy(bed, name, ON_A).await?;
    deployed(bed, name, TILL, 1).await?;
    let manual = r#"{"spec":{"approval":{"mode":"Manual","scope":"Plan"}}}"#;
    let kubectl = bed.hub().kubectl();
    kubectl.run(&["patch", "projects.emco.io", name, "--type=merge", "-p", manual]).await?;
    let seen = ["wait", &format!("projects.emco.io/{name}"), "--for=jsonpath={.status.observedGeneration}=2"];
    kubectl.run(&[&seen[..], &["--timeout=30s"]].concat()).await?;
    edit(bed, name, "two", "").await
}

#[tokio::test]
async fn every_page_keeps_to_wcag_22_aa_light_and_dark_narrow_and_wide() {
    let Some(browser) =
        browser("everybody::every_page_keeps_to_wcag_22_aa_light_and_dark_narrow_and_wide").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        let digest = waiting(bed, "open").await?;
        let administrator = Dashboard::of_administrator(bed, &["-A"]).await?;
        let approver = Dashboard::start(bed, "approver", &["-n", "open"]).await?;
        let screen = Screen::at(bed, browser, &approver.link).await?;
        screen.shows(&["open/till"]).await?;
        screen.follow("open/till").await?;
        screen.shows(&[short(&digest)]).await?;
        let deployment = screen.address().await?;
        let (clusters, wrong) =
            (format!("{}clusters", administrator.link), format!("{}?state=Fine", approver.link));
        let missing = deployment.replace(TILL, "nothing");
        for page in [administrator.link.as_str(), &clusters, &deployment, &wrong, &missing] {
            for (width, height) in [(320, 800), (1440, 900)] {
                for scheme in ["light", "dark"] {
                    screen.resize(width, height).await?;
                    screen.prefer(scheme).await?;
                    screen.go(page).await?;
                    let title = screen.run("return document.title", Vec::new()).await?;
                    let what = format!("{title}, {width} px, {scheme}");
                    judge(&screen, browser.axe(), &what).await?;
                    let too_wide = screen.run(TOO_WIDE, Vec::new()).await?;
                    ensure!(too_wide == false, "{what} is to be scrolled to the side");
                }
            }
        }
        screen.close().await
    }))
    .await;
}

/// The name of what has the focus, as it is read aloud, and whether it can be seen that it has it.
const FOCUS: &str = "const e = document.activeElement, style = getComputedStyle(e);
    const marked = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
    return [(e.innerText || e.getAttribute('aria-label') || e.name || '').trim(), e === document.body || marked]";

/// Presses Tab until this has the focus.
async fn tab_to(screen: &Screen, name: &str) -> Result<()> {
    let mut seen = Vec::new();
    for _ in 0..200 {
        screen.keys(TAB).await?;
        let (now, marked): (String, bool) = serde_json::from_value(screen.run(FOCUS, Vec::new()).await?)?;
        ensure!(marked, "nobody sees that {now:?} has the focus");
        if now == name {
            return Ok(());
        }
        seen.push(now);
    }
    anyhow::bail!("Tab leads to {seen:?}, never to {name}")
}

#[tokio::test]
async fn the_keyboard_alone_approves() {
    let Some(browser) = browser("everybody::the_keyboard_alone_approves").await else { return };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "keys", "Manual").await?;
        deploy(bed, "keys", ON_A).await?;
        let digest = waits(bed, "keys", "").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "keys"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.shows(&["keys/till"]).await?;
        tab_to(&screen, "keys/till").await?;
        screen.keys(ENTER).await?;
        screen.shows(&[short(&digest)]).await?;
        tab_to(&screen, "comment").await?;
        screen.keys("by hand").await?;
        tab_to(&screen, "Approve").await?;
        screen.keys(ENTER).await?;
        deployed(bed, "keys", TILL, 1).await?;
        screen.shows(&["Ready: True"]).await?;
        screen.close().await
    }))
    .await;
}
