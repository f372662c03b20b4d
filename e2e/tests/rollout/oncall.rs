//! What the one on call reads: a plan that waits is told in the log, by an Event and in the metrics; lines of the log and Events are bounded.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{Operator, SOON, chart, chart_map, deployed, deployment, program, project, wait};
use serde_json::Value;
use tokio::process::Command;

use super::STAGE;
use super::approvals::{ON_ONE, deploy, says};

/// Nothing tells of a page of metrics or of the growth of a log.
const LOOK_EVERY: Duration = Duration::from_millis(200);

async fn metric(bed: &Bed, name: &str) -> Result<f64> {
    let page = bed.metrics().await?;
    let found = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.with_context(|| format!("no {name}: {page}"))?.parse().with_context(|| name.to_owned())
}

async fn until_metric(bed: &Bed, name: &str, is_it: impl Fn(f64) -> bool) -> Result<()> {
    let deadline = Instant::now() + SOON;
    loop {
        let value = metric(bed, name).await?;
        if is_it(value) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{name} stays at {value}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Lines about a project that the operator logged with these words.
fn lines(operator: &Operator, tenant: &str, words: &str) -> Result<Vec<String>> {
    let log = std::fs::read(operator.process().log())?;
    let (log, of) = (String::from_utf8_lossy(&log).into_owned(), format!("project=\"{tenant}\""));
    let found = log.lines().filter(|line| line.contains(words) && line.contains(&of));
    Ok(found.map(str::to_owned).collect())
}

/// Type, reason and message of the Events about the deployment `shop`.
async fn events(bed: &Bed, tenant: &str) -> Result<Vec<[String; 3]>> {
    let about = "involvedObject.name=shop,involvedObject.kind=DeploymentIntentGroup";
    let args = ["get", "events", "-n", tenant, "--field-selector", about, "-o", "json"];
    let all: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
    let items = all["items"].as_array().cloned().unwrap_or_default();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    Ok(items.iter().map(|event| ["type", "reason", "message"].map(|key| text(event, key))).collect())
}

/// Waits for an Event about the deployment with a reason: it follows the status.
async fn until_told(bed: &Bed, tenant: &str, reason: &str) -> Result<()> {
    let deadline = Instant::now() + SOON;
    loop {
        let told = events(bed, tenant).await?;
        if told.iter().any(|event| event[1] == reason) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "no Event says {reason}: {told:#?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Runs a command of the plug-in on the hub, as a message names it; answers what it printed.
pub async fn emco(bed: &Bed, command: &str) -> Result<String> {
    let words = command.strip_prefix("kubectl emco ").with_context(|| command.to_owned())?;
    let mut emco = Command::new(program()?.with_file_name("kubectl-emco"));
    emco.args(words.split(' ')).env("KUBECONFIG", bed.hub().kubectl().kubeconfig());
    let output = bed.hear(emco.stdin(Stdio::null()).kill_on_drop(true)).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn a_plan_that_begins_to_wait_is_a_line_an_event_and_a_metric() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let number = "emco_deployments_awaiting_approval";
        let before = metric(bed, number).await?;
        project(bed, "oncall").await?;
        let kubectl = bed.hub().kubectl();
        let manual = r#"{"spec":{"approval":{"mode":"Manual"}}}"#;
        kubectl.run(&["patch", "eproj", "oncall", "--type=merge", "-p", manual]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/oncall", seen, "--timeout=30s"]).await?;
        deploy(bed, "oncall", ON_ONE).await?;
        let held = says(bed, "oncall", types::APPROVED, "AwaitingApproval").await?;
        let pending = held.status.and_then(|status| status.pending).context("nothing is pending")?;
        let command = "kubectl emco approve dig/shop -n oncall";
        let said = format!("revision 1 waits: approve digest {}: {command}", pending.short_digest);
        until_metric(bed, number, |now| now >= before + 1.0).await?;
        until_metric(bed, "emco_approval_waiting_longest_seconds", |longest| longest >= 1.0).await?;
        let told = lines(operator, "oncall", "a person is waited for")?;
        ensure!(told.len() == 1 && told[0].contains("INFO") && told[0].contains(&said), "{told:?}");
        ensure!(told[0].contains("deployment=\"shop\"") && told[0].contains("reason=\"AwaitingApproval\""));
        let told = events(bed, "oncall").await?.into_iter().filter(|event| event[2].contains("waits"));
        let told: Vec<_> = told.collect();
        ensure!(told == [["Normal".to_owned(), "AwaitingApproval".to_owned(), said]], "{told:?}");
        emco(bed, command).await?;
        deployed(bed, "oncall", "shop", 1).await?;
        until_metric(bed, number, |now| now < before + 1.0).await?;
        ensure!(lines(operator, "oncall", "a person is waited for")?.len() == 1);
        ensure!(lines(operator, "oncall", "WARN")?.is_empty(), "a plan that waits is no fault");
        Ok(())
    }))
    .await;
}

/// Refused and taken back, each time in other words: those that are the same within a second are one Event.
const TURNS: usize = 25;

#[tokio::test]
async fn what_changes_to_and_fro_has_few_events_and_hides_nothing_new() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "restless").await?;
        deploy(bed, "restless", ON_ONE).await?;
        deployed(bed, "restless", "shop", 1).await?;
        for turn in 0..TURNS {
            let nowhere =
                format!("allOf: [{{provider: acme, selector: {{matchLabels: {{tier: nowhere-{turn}}}}}}}]");
            for (placement, reason) in [(nowhere.as_str(), "NoClusterMatches"), (ON_ONE, "Ready")] {
                let patch = format!("spec: {{placement: {{{placement}}}}}");
                let args = ["patch", "dig", "shop", "-n", "restless", "--type=merge", "-p", &patch];
                bed.hub().kubectl().run(&args).await?;
                says(bed, "restless", types::READY, reason).await?;
            }
        }
        let told = events(bed, "restless").await?;
        ensure!(told.len() == 20, "{} Events: {told:#?}", told.len());
        let last = told.iter().filter(|event| event[2].ends_with("its status and the log go on"));
        ensure!(last.count() == 1, "{told:#?}");
        // What failed often enough hides no other failure.
        let nothing = r#"{"spec":{"overrideValues":[{"app":"nothing","values":{"a":1}}]}}"#;
        let args = ["patch", "dig", "shop", "-n", "restless", "--type=merge", "-p", nothing];
        bed.hub().kubectl().run(&args).await?;
        says(bed, "restless", types::READY, "AppNotFound").await?;
        until_told(bed, "restless", "AppNotFound").await?;
        let refused = lines(operator, "restless", "change refused")?;
        ensure!(refused.len() == TURNS + 1, "{} lines: {refused:#?}", refused.len());
        Ok(())
    }))
    .await;
}

/// Objects of the chart.
const MAPS: usize = 30;

/// Deploys them, has somebody change all of them at once, and waits until they are as they were.
async fn others_change(bed: &Bed, tenant: &str) -> Result<()> {
    project(bed, tenant).await?;
    let template = format!(
        "{{{{- range until {MAPS} }}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{{{{ . }}}}, labels: {{app: maps}}}}\n\
         data: {{say: one}}\n{{{{- end }}}}\n"
    );
    let charts = [chart("maps", "1.0.0", &[("templates/maps.yaml", &template)])?];
    chart_map(bed, tenant, "charts", &charts).await?;
    let placement = format!("placement: {{{ON_ONE}}}");
    bed.hub().kubectl().apply(&deployment(tenant, "shop", &charts, &placement)).await?;
    deployed(bed, tenant, "shop", 1).await?;
    let change = ["label", "configmaps", "-n", tenant, "-l", "emco.io/owner", "app=other"];
    bed.edge("e0").kubectl().run(&[&change[..], &["--overwrite"]].concat()).await?;
    wait(bed, tenant, "shop", |dig: &DeploymentIntentGroup| {
        let drift = dig.status.as_ref().and_then(|status| status.drift.as_ref());
        let corrected = drift.map_or(0, |drift| drift.corrected);
        let all = usize::try_from(corrected).is_ok_and(|corrected| corrected == MAPS);
        if all { Ok(()) } else { Err(format!("{corrected} were put right")) }
    })
    .await
}

fn ten_have_a_line(operator: &Operator, tenant: &str) -> Result<()> {
    let told = lines(operator, tenant, "changed by others")?;
    ensure!(told.len() == 10, "{} lines: {told:#?}", told.len());
    Ok(())
}

#[tokio::test]
async fn of_many_objects_that_others_change_ten_have_a_line_in_the_log() {
    let _turn = serial().await;
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        others_change(bed, "many").await?;
        ten_have_a_line(operator, "many")
    }))
    .await;
}

/// The number of the others is logged when the minute is over.
mod soak {
    use std::time::Instant;

    use anyhow::ensure;
    use emco_e2e::bed::serial;
    use emco_e2e::operator::SOON;

    use super::{LOOK_EVERY, MAPS, STAGE, lines, others_change, ten_have_a_line};

    #[tokio::test]
    async fn the_other_objects_are_counted_in_one_line() {
        let turn = serial().await;
        let (bed, operator) = STAGE.get().await.unwrap();
        bed.explain(Box::pin(async {
            others_change(bed, "counted").await?;
            drop(turn);
            let deadline = Instant::now() + SOON;
            let left_out = loop {
                let found = lines(operator, "counted", "left out within a minute")?;
                if !found.is_empty() {
                    break found;
                }
                ensure!(Instant::now() < deadline, "the others are not counted");
                tokio::time::sleep(LOOK_EVERY).await;
            };
            let said = format!("{} lines left out within a minute: objects that others changed", MAPS - 10);
            ensure!(left_out.len() == 1 && left_out[0].contains(&said), "{left_out:?}");
            ten_have_a_line(operator, "counted")
        }))
        .await;
    }
}
