//! Hooks of charts on real clusters: order, events, failures, and Jobs that delete themselves.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::audit::AuditMark;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed, has_maps, ours};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::batch::v1::Job;

use super::{B_ANSWERS, change, deploy, fails, field, has, pinned, start, writes};

pub const PAGE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {page: {{ .Values.page | quote }}}
";
/// It ends where its Pod gets a node, and fails after so many seconds where it gets none.
const MIGRATE: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-failed"}
spec:
  activeDeadlineSeconds: {{ .Values.seconds }}
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: {{ .Values.node }}}
      containers: [{name: migrate, image: example.com/migrate}]
"#;
/// The first one is gone as soon as it ends; the second one never ends where its Pod gets no node.
const SEED_AND_WARM: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: seed, annotations: {helm.sh/hook: post-install}}
spec:
  ttlSecondsAfterFinished: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: seed, image: example.com/seed}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: warm, annotations: {helm.sh/hook: pre-upgrade}}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: {{ .Values.node }}}
      containers: [{name: warm, image: example.com/warm}]
";

/// A Job that ends, with annotations.
fn job(name: &str, annotations: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, annotations: {{ {annotations} }}}}
spec:
  template:
    spec: {{restartPolicy: Never, containers: [{{name: {name}, image: example.com/{name}}}]}}
"
    )
}

/// A page, and hooks of every event of its life. Names are in no order, weights are.
fn life() -> Result<Package> {
    let hooks = [
        job("early", r#"helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "5""#),
        job("check", r#"helm.sh/hook: pre-install, helm.sh/hook-weight: "-5""#),
        job("told", "helm.sh/hook: post-install, helm.sh/hook-delete-policy: hook-succeeded"),
        job("back", "helm.sh/hook: pre-rollback"),
        job("again", "helm.sh/hook: post-rollback"),
        job("save", "helm.sh/hook: pre-delete"),
        job("bye", "helm.sh/hook: post-delete"),
    ];
    let hooks = hooks.join("---");
    let values = ("values.yaml", "page: none\n");
    chart("web", "1.0.0", &[values, ("templates/web.yaml", PAGE), ("templates/hooks.yaml", &hooks)])
}

/// What was sent to the edge `a`, without what made room for it. What met a change by others is sent once more.
fn sent(bed: &Bed, namespace: &str, mark: AuditMark) -> Result<Vec<String>> {
    let mut sent = writes(bed, namespace, mark)?;
    sent.retain(|write| write.starts_with("patch "));
    sent.dedup();
    Ok(sent.iter().filter_map(|write| write.rsplit(' ').next()).map(str::to_owned).collect())
}

pub fn succeeded(job: &Job) -> bool {
    job.status.as_ref().and_then(|status| status.succeeded) == Some(1)
}

#[tokio::test]
async fn hooks_run_by_event_and_weight_as_each_cluster_needs_them() {
    let _b_answers = B_ANSWERS.read().await;
    let chart = life().unwrap();
    let bed = start("hooks", &chart).await.unwrap();
    bed.explain(Box::pin(async {
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "hooks", &chart, "{page: one}", "{}").await?;
        deployed(bed, "hooks", "shop", 1).await?;
        let installed = sent(bed, "hooks", mark)?;
        ensure!(installed == ["check", "early", "web", "told"], "{installed:?}");
        wait_until_gone(bed.edge("a").api::<Job>("hooks").await?, "told", SOON).await?;

        // What is an upgrade on one cluster is an installation on another one.
        let mark = bed.edge("a").audit_mark()?;
        let both = "{allOf: [{provider: acme, cluster: a}, {provider: acme, cluster: b}]}";
        let two = format!("{{placement: {both}, overrideValues: [{{app: web, values: {{page: two}}}}]}}");
        change(bed, "hooks", &two).await?;
        deployed(bed, "hooks", "shop", 2).await?;
        let upgraded = sent(bed, "hooks", mark)?;
        ensure!(upgraded == ["early", "web"], "{upgraded:?}");
        let on_b = ours(bed, "b", "jobs", Some("hooks")).await?;
        ensure!(on_b == ["Job/hooks/check", "Job/hooks/early"], "{on_b:?}");

        // The way back is a rollback where the revision was, and a removal where it was not.
        let mark = bed.edge("a").audit_mark()?;
        change(bed, "hooks", "{revision: 1}").await?;
        wait_for_object(bed.edge("a").api::<Job>("hooks").await?, "again", SOON, succeeded).await?;
        has_maps(bed, "b", "hooks", &[]).await?;
        pinned(bed, "hooks").await?;
        let back = sent(bed, "hooks", mark)?;
        ensure!(back == ["back", "web", "again"], "{back:?}");
        ensure!(field(bed, "hooks", "configmap/web", "{.data.page}").await? == "one");

        let mark = bed.edge("a").audit_mark()?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "hooks", "--wait=false"]).await?;
        let digs = bed.hub().api::<DeploymentIntentGroup>("hooks").await?;
        wait_until_gone(digs, "shop", SOON).await?;
        let mut ended = writes(bed, "hooks", mark)?;
        ended.dedup();
        let watched = ["patch jobs save", "delete configmaps web", "patch jobs bye"];
        ended.retain(|write| watched.contains(&write.as_str()));
        ensure!(ended == watched, "{ended:?}");
        for edge in ["a", "b"] {
            let left = ours(bed, edge, "jobs,configmaps", Some("hooks")).await?;
            ensure!(left.is_empty(), "{edge}: {left:?}");
        }
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_hook_that_fails_holds_its_cluster_until_an_update_changes_it() {
    let values = ("values.yaml", "page: none\nnode: none\nseconds: 1\n");
    let files = [values, ("templates/web.yaml", PAGE), ("templates/migrate.yaml", MIGRATE)];
    let chart = chart("web", "1.0.0", &files).unwrap();
    let bed = start("migrates", &chart).await.unwrap();
    bed.explain(Box::pin(async {
        let (fails_there, ends_there) = ("node: nowhere, seconds: 1", "node: a-1, seconds: 600");
        let jobs = bed.edge("a").api::<Job>("migrates").await?;
        let deploy = async |page: &str, job: &str| {
            deploy(bed, "migrates", &chart, &format!("{{page: {page}, {job}}}"), "{}").await
        };
        let page = async || {
            let get =
                ["get", "cm", "web", "-n", "migrates", "--ignore-not-found", "-o", "jsonpath={.data.page}"];
            bed.edge("a").kubectl().run(&get).await
        };
        deploy("one", fails_there).await?;
        let message = fails(bed, "migrates", "HookFailed").await?;
        has(&message, &["the hook failed: the job failed", "deadline"])?;
        wait_until_gone(jobs.clone(), "migrate", SOON).await?;
        ensure!(page().await?.is_empty(), "it was applied before its hook ended");

        // No API server lets the template of a Job be changed.
        deploy("one", ends_there).await?;
        deployed(bed, "migrates", "shop", 2).await?;
        wait_for_object(jobs.clone(), "migrate", SOON, succeeded).await?;
        ensure!(page().await? == "one");

        deploy("two", fails_there).await?;
        fails(bed, "migrates", "HookFailed").await?;
        ensure!(page().await? == "one", "it was updated before its hook ended");
        deploy("two", ends_there).await?;
        deployed(bed, "migrates", "shop", 4).await?;
        wait_for_object(jobs, "migrate", SOON, succeeded).await?;
        ensure!(page().await? == "two");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_hook_that_never_ends_fails_in_time_and_one_that_goes_ran_once() {
    let values = ("values.yaml", "page: none\nnode: none\n");
    let files = [values, ("templates/web.yaml", PAGE), ("templates/jobs.yaml", SEED_AND_WARM)];
    let chart = chart("web", "1.0.0", &files).unwrap();
    let bed = start("endless", &chart).await.unwrap();
    bed.explain(Box::pin(async {
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "endless", &chart, "{page: one, node: nowhere}", "{}").await?;
        deployed(bed, "endless", "shop", 1).await?;
        wait_until_gone(bed.edge("a").api::<Job>("endless").await?, "seed", SOON).await?;

        let two = "{hookTimeout: 2s, overrideValues: [{app: web, values: {page: two, node: nowhere}}]}";
        change(bed, "endless", two).await?;
        let message = fails(bed, "endless", "HookFailed").await?;
        has(&message, &["the hook did not end within 2s (spec.hookTimeout)"])?;
        ensure!(field(bed, "endless", "configmap/web", "{.data.page}").await? == "one");

        let longer = "{hookTimeout: 5m, overrideValues: [{app: web, values: {page: two, node: a-1}}]}";
        change(bed, "endless", longer).await?;
        deployed(bed, "endless", "shop", 3).await?;
        ensure!(field(bed, "endless", "configmap/web", "{.data.page}").await? == "two");
        let seeds = writes(bed, "endless", mark)?.into_iter().filter(|write| write == "patch jobs seed");
        ensure!(seeds.count() == 1, "it was carried out again");
        Ok(())
    }))
    .await;
}
