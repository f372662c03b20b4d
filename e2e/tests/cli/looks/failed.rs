//! Deployments that fail: filters find them, waits end, and the history says what became of each revision.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, is, project, says, wait};
use serde_json::Value;

use super::EVERYWHERE;
use crate::past::became_good;
use crate::rig::{STAGE, run};

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
";
/// Nothing runs its Pods here: it is ready without any.
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

/// An app that is always ready, and one that is ready with no replicas alone.
async fn apply(bed: &Bed, tenant: &str, replicas: u8, more: &str) -> Result<()> {
    let charts = [
        chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?,
        chart("web", "1.0.0", &[("values.yaml", "replicas: 1\n"), ("templates/web.yaml", WEB)])?,
    ];
    chart_map(bed, tenant, "charts", &charts).await?;
    let values = format!("overrideValues: [{{app: web, values: {{replicas: {replicas}}}}}]");
    let objects = deployment(tenant, "till", &charts, &format!("{EVERYWHERE}\n{values}\n{more}"));
    bed.hub().kubectl().apply(&objects).await.map(drop)
}

/// Revisions of a deployment, the newest first, each with its state and what became of it.
async fn history(bed: &Bed, deployment: &str) -> Result<Vec<(i64, String, String)>> {
    let said = run(bed, &["history", deployment, "-o", "json"]).await?;
    said.is(0, &[]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = said.json().as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    Ok(all.iter().map(|one| (number(&one["revision"]), text(&one["state"]), text(&one["became"]))).collect())
}

async fn filters(bed: &Bed) -> Result<()> {
    let failed = run(bed, &["status", "-n", "late", "--state", "Failed"]).await?;
    failed.is(
        3,
        &["late/till  InstantiateFailed", "└─ web", "acme/a  Failed", "acme/b  Failed", "shown: 2 of 4 apps"],
    );
    ensure!(!failed.out.contains("note"), "{}", failed.out);
    let all = run(bed, &["status", "-A", "--state", "Failed", "-o", "json"]).await?;
    all.is(3, &[]);
    let json = all.json();
    let mut groups = json["groups"].as_array().into_iter().flatten();
    let late = groups.find(|group| group["namespace"] == "late");
    ensure!(late.is_some_and(|group| group["verdict"] == "Failed"), "{json:#}");
    // Only what is asked about decides the code.
    for (words, code) in [
        (&["status", "late/till"][..], 3),
        (&["status", "late/till", "--app", "web"], 3),
        (&["status", "late/till", "--app", "note"], 0),
        (&["status", "-n", "late", "--state", "Ready"], 0),
        (&["status", "-n", "late", "--state", "Unreachable"], 0),
        (&["status", "-n", "late", "--not-ready"], 3),
        (&["get", "late/till", "--app", "note"], 0),
        (&["get", "late/till", "--state", "Ready"], 0),
        (&["get", "late/till", "--kind", "ConfigMap"], 0),
    ] {
        run(bed, words).await?.is(code, &[]);
    }
    let objects = run(bed, &["get", "late/till", "--state", "Failed"]).await?;
    objects.is(3, &["acme/a  Failed", "apps/Deployment/late/web"]);
    ensure!(!objects.out.contains("ConfigMap"), "{}", objects.out);
    run(bed, &["get", "late/till", "--state", "Removing"])
        .await?
        .is(0, &["late/till has no object that these filters select"]);
    run(bed, &["get", "late/till", "--state", "Fine"]).await?.is(2, &["Unreachable"]);
    Ok(())
}

#[tokio::test]
async fn what_fails_is_found_ends_a_wait_and_stays_failed_in_the_history() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "late").await?;
        apply(bed, "late", 1, "progressDeadline: 15s").await?;
        // Nobody waits for the ten minutes that are the default.
        let said = run(bed, &["wait", "late/till", "--for=ready"]).await?;
        said.is(1, &["late/till is not ready, and will not be before something is changed: ", "15 seconds"]);
        filters(bed).await?;
        apply(bed, "late", 0, "progressDeadline: 15s").await?;
        deployed(bed, "late", "till", 2).await?;
        became_good(bed, "late", 2).await?;
        let of = |revision: i64, state: &str, became: &str| (revision, state.to_owned(), became.to_owned());
        let seen = history(bed, "late/till").await?;
        ensure!(seen == [of(2, "Running", "Good"), of(1, "Replaced", "Failed")], "{seen:?}");
        let none = run(bed, &["status", "-n", "late", "--state", "Failed"]).await?;
        none.is(0, &["no deployment intent groups"]);

        // One that is replaced before it was ready was never good; the pinned one takes its place.
        apply(bed, "late", 1, "progressDeadline: 10m").await?;
        wait(bed, "late", "till", |dig: &DeploymentIntentGroup| {
            let now = dig.status.as_ref().and_then(|status| status.revision);
            if now != Some(3) {
                return Err(format!("it runs {now:?}"));
            }
            is(dig.status.as_ref(), types::DEPLOYED, "True")
        })
        .await?;
        run(bed, &["rollback", "late/till", "2"]).await?.is(0, &[]);
        deployed(bed, "late", "till", 2).await?;
        let seen = history(bed, "late/till").await?;
        let replaced = of(3, "Replaced", "ReplacedWhileProgressing");
        ensure!(seen.starts_with(&[replaced, of(2, "Running", "Good")]), "{seen:?}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn what_a_rollout_takes_back_ends_a_wait_and_is_said_in_the_history() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "fickle").await?;
        let rollout = "progressDeadline: 15s
rollout: {onFailure: Rollback, waves: [{name: all, clusters: [{provider: acme, cluster: a}]}]}";
        apply(bed, "fickle", 0, rollout).await?;
        deployed(bed, "fickle", "till", 1).await?;
        became_good(bed, "fickle", 1).await?;
        apply(bed, "fickle", 1, rollout).await?;
        let said = run(bed, &["wait", "fickle/till", "--for=applied"]).await?;
        said.is(1, &["fickle/till is not applied, and will not be before something is changed: "]);
        let of = |revision: i64, state: &str, became: &str| (revision, state.to_owned(), became.to_owned());
        let seen = history(bed, "fickle/till").await?;
        ensure!(seen == [of(2, "TakenBack", "TakenBack"), of(1, "Running", "Good")], "{seen:?}");
        // It explains the one that came back.
        let said = run(bed, &["explain", "fickle/till"]).await?;
        said.is(0, &["fickle/till, revision 1", "the last change failed on too many clusters"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_refused_deployment_of_which_nothing_runs_is_found_as_failed() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "nowhere").await?;
        let charts = [chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?];
        chart_map(bed, "nowhere", "charts", &charts).await?;
        let spec = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: nowhere}}}]}";
        bed.hub().kubectl().apply(&deployment("nowhere", "till", &charts, spec)).await?;
        says::<DeploymentIntentGroup, _>(bed, "nowhere", "till", types::PLACED, "NoClusterMatches").await?;
        let head = ["nowhere/till", "ready: False (NoClusterMatches)"];
        run(bed, &["status", "-n", "nowhere", "--state", "Failed"]).await?.is(3, &head);
        run(bed, &["status", "-n", "nowhere", "--not-ready"]).await?.is(3, &head);
        let none = run(bed, &["status", "-n", "nowhere", "--state", "Ready"]).await?;
        none.is(0, &["no deployment intent groups"]);
        let said = run(bed, &["wait", "nowhere/till", "--for=applied"]).await?;
        let never = "nowhere/till is not applied, and will not be before something is changed: ";
        said.is(1, &[never, "tier=nowhere"]);
        Ok(())
    })
    .await;
}
