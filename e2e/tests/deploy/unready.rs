//! Workloads that do not become ready: who is to blame is said on the hub.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::state::State;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, is, program, project, refused, wait};
use emco_e2e::wait::{Objects, wait_for_some};
use k8s_openapi::api::core::v1::Event;
use kube::runtime::watcher;
use tokio::process::Command;

use super::{AT_WORK, EVERYWHERE, STAGE};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      nodeSelector: {disk: {{ .Values.disk | quote }}}
      containers: [{name: web, image: example.com/web}]
";
const HOOK: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations: {helm.sh/hook: "pre-install"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: prepare, image: example.com/prepare}]
"#;
const NO_PODS: &str = "
apiVersion: v1
kind: ResourceQuota
metadata: {name: none}
spec: {hard: {pods: \"0\"}}
";

async fn deploy(bed: &Bed, tenant: &str, files: &[(&str, &str)], spec: &str) -> Result<()> {
    let charts = [chart("web", "1.0.0", files)?];
    chart_map(bed, tenant, "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment(tenant, "shop", &charts, spec)).await.map(drop)
}

/// What the status says of the cluster.
async fn failing(bed: &Bed, tenant: &str, words: &str) -> Result<String> {
    wait(bed, tenant, "shop", |dig: &DeploymentIntentGroup| {
        let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
        let found = failing.iter().find(|one| one.message.contains(words)).map(|one| one.message.clone());
        found.ok_or_else(|| format!("{failing:?}"))
    })
    .await
}

/// Waits for the Events that follow a status: one for both clusters where they fail at once, else one for each; none is told twice.
async fn told_once(bed: &Bed) -> Result<()> {
    let selector = "involvedObject.name=shop,type=Warning,reason=ProgressDeadlineExceeded";
    let config = watcher::Config::default().fields(selector);
    let events = bed.hub().api::<Event>("unfit").await?;
    let told = wait_for_some(events, config, SOON, "an Event of the deadline", |events: &Objects<Event>| {
        let said = |cluster: &str| {
            let words = events.values().filter_map(|event| event.message.as_deref());
            words.filter(|words| words.contains(cluster)).count()
        };
        let told = (said("acme/a"), said("acme/b"));
        if told == (0, 0) { Err("there is none".to_owned()) } else { Ok(told) }
    })
    .await?;
    ensure!(told.0 <= 1 && told.1 <= 1, "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_fits_no_node_is_named_then_fails_the_deployment() {
    let (bed, _) = STAGE.get().await.unwrap();
    let _at_work = AT_WORK.read().await;
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        project(bed, "unfit").await?;
        let files = [("values.yaml", "disk: nvme\n"), ("templates/web.yaml", WEB)];
        deploy(bed, "unfit", &files, &format!("{EVERYWHERE}\nprogressDeadline: 15s")).await?;
        let message = failing(bed, "unfit", "Unschedulable").await?;
        ensure!(message.starts_with("apps/Deployment/unfit/shop-web: "), "{message}");
        ensure!(message.contains("Pod shop-web-"), "{message}");
        let dig = bed.hub().api::<DeploymentIntentGroup>("unfit").await?.get("shop").await?;
        let ready = refused(dig.status.as_ref(), types::READY, "NotReady").map_err(anyhow::Error::msg)?;
        ensure!(ready.contains("apps/Deployment/unfit/shop-web"), "{ready}");
        // The same for those who type kubectl emco.
        let mut status = Command::new(program()?.with_file_name("kubectl-emco"));
        status.args(["status", "unfit/shop"]).env("KUBECONFIG", kubectl.kubeconfig());
        let output = bed.hear(&mut status).await?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.code() == Some(3), "{said}");
        ensure!(
            said.contains("apps/Deployment/unfit/shop-web  NotReady: ") && said.contains("Unschedulable"),
            "{said}"
        );

        let late = wait(bed, "unfit", "shop", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::READY, "ProgressDeadlineExceeded")
        })
        .await?;
        ensure!(late.contains("no progress for 15 seconds") && late.contains("Unschedulable"), "{late}");
        let dig = bed.hub().api::<DeploymentIntentGroup>("unfit").await?.get("shop").await?;
        let state = dig.status.and_then(|status| status.state);
        ensure!(state == Some(State::InstantiateFailed), "{state:?}");
        told_once(bed).await?;

        let label = ["label", "node", "a-1", "disk=nvme"];
        bed.edge("a").kubectl().run(&label).await?;
        bed.edge("b").kubectl().run(&["label", "node", "b-1", "disk=nvme"]).await?;
        deployed(bed, "unfit", "shop", 1).await?;
        wait(bed, "unfit", "shop", |dig: &DeploymentIntentGroup| {
            is(dig.status.as_ref(), types::READY, "True")
        })
        .await
    }))
    .await;
}

#[tokio::test]
async fn a_hook_that_a_quota_keeps_from_running_is_named_with_the_quota() {
    let (bed, _) = STAGE.get().await.unwrap();
    let _at_work = AT_WORK.read().await;
    bed.explain(async {
        project(bed, "quota").await?;
        wait(bed, "quota", "default", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
            .await?;
        for edge in ["a", "b"] {
            bed.edge(edge).kubectl().apply_to("quota", NO_PODS).await?;
        }
        deploy(bed, "quota", &[("templates/hook.yaml", HOOK)], EVERYWHERE).await?;
        let message = failing(bed, "quota", "exceeded quota").await?;
        ensure!(message.starts_with("batch/Job/quota/prepare: the hook did not end yet"), "{message}");
        for edge in ["a", "b"] {
            bed.edge(edge).kubectl().run(&["delete", "resourcequota", "none", "-n", "quota"]).await?;
        }
        deployed(bed, "quota", "shop", 1).await.map(drop)
    })
    .await;
}
