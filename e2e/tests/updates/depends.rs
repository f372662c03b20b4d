//! Apps that wait for others: at the installation, at an update, at the removal, and for another cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, program, refused, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::process::Command;

use super::{B_ANSWERS, SILENCE, field, has, message, start, writes};

const WAITS: &str = "WaitingForDependency";
/// Longer than the deadline of a deployment, and what follows of it.
const PATIENCE: Duration = Duration::from_mins(2);
/// Its Pod runs on nodes in this zone of the tenant alone.
const DB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {example.com/{{ .Release.Namespace }}: {{ .Values.zone | quote }}}
      containers: [{name: db, image: example.com/db}]
";
const WEB: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {page: {{ .Values.page }}}
";

pub fn db() -> Result<Package> {
    chart("db", "1.0.0", &[("values.yaml", "zone: none\n"), ("templates/db.yaml", DB)])
}

pub fn web() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "page: none\n"), ("templates/web.yaml", WEB)])
}

/// Applies the deployment `shop`: `web` depends on `db` in these words, `db` runs in this zone, `web` has this page.
pub async fn deploy(
    bed: &Bed,
    tenant: &str,
    depends: &str,
    (zone, page): (&str, &str),
    spec: &str,
) -> Result<()> {
    let charts = [db()?, web()?];
    chart_map(bed, tenant, "charts", &charts).await?;
    let spec = format!(
        "{spec}\noverrideValues: [{{app: db, values: {{zone: {zone}}}}}, {{app: web, values: {{page: {page}}}}}]"
    );
    let yaml = deployment(tenant, "shop", &charts, &spec);
    let key = charts[1].file_name();
    let plain = format!("key: {key}}}}}}}\n");
    ensure!(yaml.contains(&plain), "{yaml}");
    let yaml = yaml.replace(&plain, &format!("key: {key}}}}}, dependsOn: [{depends}]}}\n"));
    bed.hub().kubectl().apply(&yaml).await.map(drop)
}

pub async fn label(bed: &Bed, edge: &str, tenant: &str, zone: &str) -> Result<()> {
    let (node, label) = (format!("{edge}-1"), format!("example.com/{tenant}={zone}"));
    bed.edge(edge).kubectl().run(&["label", "node", &node, "--overwrite", &label]).await.map(drop)
}

pub async fn waits(bed: &Bed, tenant: &str, words: &str) -> Result<String> {
    wait(bed, tenant, "shop", |dig: &DeploymentIntentGroup| {
        let said = message(dig, WAITS)?;
        if said.contains(words) { Ok(said) } else { Err(said) }
    })
    .await
}

#[tokio::test]
async fn apps_come_in_order_are_updated_in_order_and_leave_in_reverse() {
    let bed = start("ordered", &web().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let at_a = "placement: {allOf: [{provider: acme, cluster: a}]}";
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "ordered", "{app: db}", ("first", "one"), at_a).await?;
        waits(bed, "ordered", "waits until this revision of app db is Ready on acme/a").await?;
        let mut status = Command::new(program()?.with_file_name("kubectl-emco"));
        status.args(["status", "ordered/shop"]).env("KUBECONFIG", bed.hub().kubectl().kubeconfig());
        let output = bed.hear(&mut status).await?;
        has(
            &String::from_utf8_lossy(&output.stdout),
            &[WAITS, "this revision of app db is Ready on acme/a"],
        )?;
        label(bed, "a", "ordered", "first").await?;
        deployed(bed, "ordered", "shop", 1).await?;
        let made = writes(bed, "ordered", mark)?;
        ensure!(made == ["patch deployments db", "patch configmaps web"], "{made:?}");

        deploy(bed, "ordered", "{app: db}", ("second", "two"), at_a).await?;
        waits(bed, "ordered", "waits until this revision of app db is Ready on acme/a").await?;
        let page = field(bed, "ordered", "configmap/web", "{.data.page}").await?;
        ensure!(page == "one", "it was updated before db: {page}");
        label(bed, "a", "ordered", "second").await?;
        deployed(bed, "ordered", "shop", 2).await?;
        let page = field(bed, "ordered", "configmap/web", "{.data.page}").await?;
        ensure!(page == "two", "{page}");

        let hold = |finalizers: &str| format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
        let patch = |body: String| async move {
            let args = ["patch", "cm", "web", "-n", "ordered", "--type=merge", "-p", &body];
            bed.edge("a").kubectl().run(&args).await.map(drop)
        };
        patch(hold(r#"["example.com/hold"]"#)).await?;
        let mark = bed.edge("a").audit_mark()?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "ordered", "--wait=false"]).await?;
        let maps = bed.edge("a").api::<ConfigMap>("ordered").await?;
        wait_for_object(maps.clone(), "web", SOON, |map| map.metadata.deletion_timestamp.is_some()).await?;
        tokio::time::sleep(SILENCE).await;
        // A delete that met a change by others is sent once more.
        let deletes = || {
            let mut gone = writes(bed, "ordered", mark)?;
            gone.dedup();
            anyhow::Ok(gone)
        };
        let gone = deletes()?;
        ensure!(gone == ["delete configmaps web"], "db waits for the end of web: {gone:?}");
        patch(hold("null")).await?;
        let digs = bed.hub().api::<DeploymentIntentGroup>("ordered").await?;
        wait_until_gone(digs, "shop", SOON).await?;
        let gone = deletes()?;
        ensure!(gone == ["delete configmaps web", "delete deployments db"], "{gone:?}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn scope_all_waits_for_another_cluster_and_skips_it_once_it_is_away() {
    let _alone_with_b = B_ANSWERS.write().await;
    let bed = start("all", &web().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let everywhere = "placement: {allOf: [{provider: acme, cluster: a}, {provider: acme, cluster: b}]}";
        deploy(bed, "all", "{app: db, scope: All}", ("all", "one"), everywhere).await?;
        label(bed, "a", "all", "all").await?;
        waits(bed, "all", "Ready on all its clusters: not yet on acme/b").await?;
        bed.edge("b").refuse().await?;
        let shorter = r#"{"spec":{"progressDeadline":"20s"}}"#;
        bed.hub()
            .kubectl()
            .run(&["patch", "dig", "shop", "-n", "all", "--type=merge", "-p", shorter])
            .await?;
        let maps = bed.edge("a").api::<ConfigMap>("all").await?;
        wait_for_object(maps, "web", PATIENCE, |_| true)
            .await
            .context("acme/b is away for longer than 20 s")?;
        bed.edge("b").restore().await?;
        label(bed, "b", "all", "all").await?;
        deployed(bed, "all", "shop", 1).await
    }))
    .await;
}

#[tokio::test]
async fn a_cycle_of_three_stalls_the_app_and_its_deployments() {
    let bed = start("circle", &web().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let at_a = "placement: {allOf: [{provider: acme, cluster: a}]}";
        deploy(bed, "circle", "{app: db}", ("none", "one"), at_a).await?;
        let patch = r#"[
            {"op": "add", "path": "/spec/apps/0/dependsOn", "value": [{"app": "log"}]},
            {"op": "copy", "from": "/spec/apps/1", "path": "/spec/apps/2"},
            {"op": "replace", "path": "/spec/apps/2/name", "value": "log"},
            {"op": "replace", "path": "/spec/apps/2/dependsOn", "value": [{"app": "web"}]}
        ]"#;
        bed.hub()
            .kubectl()
            .run(&["patch", "capp", "shop", "-n", "circle", "--type=json", "-p", patch])
            .await?;
        let circle = "db waits for log, log waits for web, web waits for db";
        let said = wait(bed, "circle", "shop", |app: &CompositeApp| {
            refused(app.status.as_ref(), types::READY, "DependencyCycle")
        })
        .await?;
        has(&said, &[circle, "remove one of these dependencies"])?;
        let said = wait(bed, "circle", "shop", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::RESOLVED, "DependencyCycle")
        })
        .await?;
        has(&said, &["CompositeApp shop", circle])
    }))
    .await;
}
