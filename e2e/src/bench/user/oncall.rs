//! Measures what the one on call reads: how soon a plan that waits is told, how much is logged and told as Events, and that nothing is
//! written at rest while plans wait.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::audit::AuditEvent;
use emco_e2e::operator::{self, SOON, deployed, says};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams};

use super::log::LogMark;
use super::stage::{EDGES, EVERYWHERE, PAUSE, PROVIDER, Stage, since};
use super::{HOW, chart};
use crate::bench::record::Entry;
use crate::bench::spine::count;
use crate::bench::spine::quiet::{Marks, by_resource};

/// Projects with one deployment each, which is called as its project.
const WAITS: &str = "waits";
const RESTLESS: &str = "restless";
const CHANGED: &str = "changed";
const TENANTS: usize = 5;
/// Plans that wait for an approval, one after the other.
const PLANS: usize = 15;
/// Changes that are refused and taken back.
const REFUSALS: usize = 20;
const REST: Duration = Duration::from_mins(1);
/// Within it, lines of one sort are counted.
const MINUTE: Duration = Duration::from_secs(62);

/// Measures on the stage.
pub async fn measure(stage: &Stage) -> Result<Vec<Entry>> {
    let warnings = tenants_begin(stage).await?;
    let told = plans_wait(stage).await?;
    let events = is_restless(stage).await?;
    let lines = others_change(stage).await?;
    let (written, logged) = rests(stage).await?;
    end(stage).await?;
    let one = |name: &str, unit: &str, value: usize| Entry::one(name, unit, count(value), HOW);
    let told =
        Entry::quantile("approval_told_s_p99", "s", told, 0.99, HOW).context("nothing was measured")?;
    Ok(vec![
        told.at_most(1.0),
        one("tenant_start_warnings", "lines", warnings).at_most(0.0),
        one("events_of_a_restless_deployment", "events", events).at_most(25.0),
        one("log_lines_of_94_changed_objects", "lines", lines).at_most(11.0),
        one("writes_at_rest", "writes", written).at_most(0.0),
        one("log_lines_at_rest", "lines", logged).at_most(0.0),
    ])
}

/// A project with everything of it in one file, what needs something else before it.
async fn tenant(stage: &Stage, name: &str, (app, spec): (&str, &str), of_project: &str) -> Result<()> {
    let kubectl = stage.bed.hub().kubectl();
    let space = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{emco.io/project: {name}}}}}}}"
    );
    kubectl.apply(&space).await?;
    let package = if app == chart::LARGE { chart::large()? } else { chart::web()? };
    operator::chart_map(&stage.bed, name, "charts", std::slice::from_ref(&package)).await?;
    let wanted = operator::deployment(name, name, &[package], spec);
    let (app, group) = wanted.split_once("\n---\n").context("a deployment has an app")?;
    let project = format!(
        "{{apiVersion: emco.io/v1alpha1, kind: Project, metadata: {{name: {name}}}, spec: {{logicalCloud: {{level: Admin}}{of_project}}}}}"
    );
    kubectl.apply(&[group, app, &project].join("\n---\n")).await.map(drop)
}

fn tenants() -> impl Iterator<Item = String> {
    (1..=TENANTS).map(|number| format!("tenant-{number}"))
}

/// The number of warnings in the log while tenants begin.
async fn tenants_begin(stage: &Stage) -> Result<usize> {
    let log = LogMark::now(stage.operator.process())?;
    for name in tenants() {
        tenant(stage, &name, (chart::WEB, EVERYWHERE), "").await?;
        deployed(&stage.bed, &name, &name, 1).await?;
    }
    let warnings: Vec<String> = log.since()?.into_iter().filter(|line| line.contains("WARN")).collect();
    for line in &warnings {
        println!("a tenant's start logged: {line}");
    }
    Ok(warnings.len())
}

/// Changes values of a deployment of one of these projects.
async fn edit(stage: &Stage, name: &str, values: &str) -> Result<()> {
    let patch = format!("spec: {{overrideValues: [{{app: {}, values: {{{values}}}}}]}}", chart::WEB);
    let args = ["patch", "dig", name, "-n", name, "--type=merge", "-p", &patch];
    stage.bed.hub().kubectl().run(&args).await.map(drop)
}

/// Events about a deployment, with this reason if one is named.
async fn events(stage: &Stage, name: &str, reason: Option<&str>) -> Result<usize> {
    let about = format!("involvedObject.kind=DeploymentIntentGroup,involvedObject.name={name}");
    let fields = reason.map_or_else(|| about.clone(), |reason| format!("{about},reason={reason}"));
    let all = stage.bed.hub().api::<Event>(name).await?.list(&ListParams::default().fields(&fields)).await?;
    Ok(all.items.len())
}

/// Seconds from an edit of a project whose plans wait until an Event tells it, and a line of the log. The last one waits on.
async fn plans_wait(stage: &Stage) -> Result<Vec<f64>> {
    tenant(stage, WAITS, (chart::WEB, EVERYWHERE), ", approval: {mode: Manual}").await?;
    let awaits = "AwaitingApproval";
    says::<DeploymentIntentGroup, _>(&stage.bed, WAITS, WAITS, types::APPROVED, awaits).await?;
    let mut samples = Vec::new();
    for number in 1..=PLANS {
        // There are only so many in an hour.
        let log = LogMark::now(stage.operator.process())?;
        let before = events(stage, WAITS, Some(awaits)).await?;
        let start = Instant::now();
        edit(stage, WAITS, &format!("version: \"plan {number}\"")).await?;
        while events(stage, WAITS, Some(awaits)).await? == before {
            ensure!(start.elapsed() < SOON, "no Event tells of plan {number}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        log.until("a person is waited for").await?;
        samples.push(since(start));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(samples)
}

/// The number of Events about a deployment whose changes are refused and taken back all the time.
async fn is_restless(stage: &Stage) -> Result<usize> {
    tenant(stage, RESTLESS, (chart::WEB, EVERYWHERE), "").await?;
    deployed(&stage.bed, RESTLESS, RESTLESS, 1).await?;
    for number in 1..=REFUSALS {
        edit(stage, RESTLESS, &format!("replicaCount: \"two-{number}\"")).await?;
        let reason = "SchemaViolation";
        says::<DeploymentIntentGroup, _>(&stage.bed, RESTLESS, RESTLESS, types::READY, reason).await?;
        edit(stage, RESTLESS, &format!("version: \"after {number}\"")).await?;
        operator::wait(&stage.bed, RESTLESS, RESTLESS, operator::settled).await?;
    }
    events(stage, RESTLESS, None).await
}

/// The number of lines about as many objects as the large chart has, which others changed at once.
async fn others_change(stage: &Stage) -> Result<usize> {
    let on_one = format!("placement: {{allOf: [{{provider: {PROVIDER}, cluster: {}}}]}}", EDGES[0]);
    tenant(stage, CHANGED, (chart::LARGE, &on_one), "").await?;
    deployed(&stage.bed, CHANGED, CHANGED, 1).await?;
    let log = LogMark::now(stage.operator.process())?;
    let kinds = "services,configmaps,deployments.apps";
    let args =
        ["annotate", kinds, "-n", CHANGED, "-l", "emco.io/owner", "emco.io/manifest=other", "--overwrite"];
    stage.bed.edge(EDGES[0]).kubectl().run(&args).await?;
    operator::wait(&stage.bed, CHANGED, CHANGED, |dig: &DeploymentIntentGroup| {
        let drift = dig.status.as_ref().and_then(|status| status.drift.as_ref());
        let corrected = drift.map_or(0, |drift| drift.corrected);
        if corrected == chart::LARGE_NUMBER { Ok(()) } else { Err(format!("{corrected} were put right")) }
    })
    .await?;
    tokio::time::sleep(MINUTE).await;
    let of_it = format!("project=\"{CHANGED}\"");
    let told = |line: &&String| line.contains("by others") || line.contains("others changed");
    Ok(log.since()?.iter().filter(|line| line.contains(&of_it)).filter(told).count())
}

/// Writes and lines within a minute in which nothing changes, and a plan waits. Packs that were left a quarter of an hour before are
/// deleted whenever that is: what earlier parts did is no part of it.
async fn rests(stage: &Stage) -> Result<(usize, usize)> {
    let planes: Vec<&str> = EDGES.into_iter().chain(["hub"]).collect();
    Marks::now(&stage.bed, &planes)?.until_quiet().await?;
    let (marks, log) = (Marks::now(&stage.bed, &planes)?, LogMark::now(stage.operator.process())?);
    tokio::time::sleep(REST).await;
    let is_left = |write: &AuditEvent| write.verb == "delete" && write.name.starts_with("emco-pack-");
    let (left, written): (Vec<_>, Vec<_>) = marks.writes()?.into_iter().partition(is_left);
    let logged = log.since()?;
    println!(
        "in {} s at rest the operator wrote {}, and deleted what was left before: {}",
        REST.as_secs(),
        by_resource(&written),
        by_resource(&left)
    );
    for line in &logged {
        println!("logged at rest: {line}");
    }
    Ok((written.len(), logged.len()))
}

/// Ends all these deployments: the next part is measured without them.
async fn end(stage: &Stage) -> Result<()> {
    for name in tenants().chain([WAITS, RESTLESS, CHANGED].map(str::to_owned)) {
        let digs = stage.bed.hub().api::<DeploymentIntentGroup>(&name).await?;
        digs.delete(&name, &DeleteParams::default()).await?;
        wait_until_gone(digs, &name, SOON).await?;
    }
    Ok(())
}
