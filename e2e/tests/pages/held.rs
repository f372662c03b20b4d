//! `suspend-and-rollback.md`, `dependencies.md`, `health-rules.md` and `moving-in.md`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, failing, wait};

use super::approving::{gone, note, say};
use super::page::{Page, folder};

/// Waits until `Ready` of a deployment has this reason.
async fn ready(bed: &Bed, name: &str, reason: &str) -> Result<()> {
    wait(bed, "shop", name, |dig: &DeploymentIntentGroup| {
        let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
        if ready.is_some_and(|ready| ready.reason == reason) { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await
}

pub async fn suspend(bed: &Bed) -> Result<()> {
    say(bed, "shop", "one", "").await?;
    deployed(bed, "shop", "shop", 1).await?;
    let mut page = Page::read(bed, "suspend-and-rollback.md")?;
    page.run("kubectl patch project shop --type merge -p '{\"spec\":{\"suspend\":true}}'").await?;
    ready(bed, "shop", "Suspended").await?;
    page.run("kubectl patch project shop --type merge -p '{\"spec\":{\"suspend\":null}}'").await?;
    ready(bed, "shop", "Ready").await?;
    page.end()?;
    gone(bed, "shop").await
}

/// Nobody runs its Pod.
const DB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db}]}
";

/// Two apps on one cluster, of which one waits for the other.
const ORDERED: &str = "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {name: till, namespace: shop}
spec:
  apps:
  - {name: db, chart: {configMapRef: {name: charts, key: db-1.0.0.tgz}}}
  - {name: web, chart: {configMapRef: {name: charts, key: web-1.0.0.tgz}}, dependsOn: [{app: db, state: Ready}]}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: till, namespace: shop}
spec:
  compositeAppRef: {name: till}
  placement: {allOf: [{provider: acme, cluster: berlin}]}
";

pub async fn dependencies(bed: &Bed) -> Result<()> {
    let db = chart("db", "1.0.0", &[("templates/db.yaml", DB)])?;
    chart_map(bed, "shop", "charts", &[db, note()?]).await?;
    bed.hub().kubectl().apply(ORDERED).await?;
    ready(bed, "till", "WaitingForDependency").await?;
    let mut page = Page::read(bed, "dependencies.md")?;
    // 3: something is not as asked for.
    let said = page.run_to("hub", "kubectl emco status shop/till", 3).await?;
    for line in [
        "shop/till  Instantiating  ready: False (WaitingForDependency)  revision: 1  clusters: 0/1  objects: 0/2",
        "├─ db  0/1 cluster ready",
        "└─ web  0/1 cluster ready",
        "         WaitingForDependency: waits until this revision of app db is Ready on acme/berlin",
    ] {
        ensure!(said.contains(line), "{line}: {said}");
    }
    page.end()?;
    gone(bed, "till").await
}

/// A rule of which the expression answers a text.
fn rules(list: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: emco-health-rules, namespace: emco-system}}\ndata:\n  elastic.yaml: |\n    {list}\n"
    )
}

pub async fn health_rules(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let wrong = "- {apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, current: \"'yes'\"}";
    kubectl.apply(&rules(wrong)).await?;
    let sentence = "key elastic.yaml, rule of Elasticsearch (elasticsearch.k8s.elastic.co/v1), field current: the expression answers text, \
                    not true or false. What it judges is Unknown, not ready, until it is corrected";
    let deadline = Instant::now() + SOON;
    let told = ["get", "events", "-n", "emco-system", "-o", "jsonpath={.items[*].message}"];
    while !kubectl.run(&told).await?.contains(sentence) {
        ensure!(Instant::now() < deadline, "no Event tells of the rule");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut page = Page::read(bed, "health-rules.md")?;
    let said = page.run("kubectl get events -n emco-system").await?;
    ensure!(said.contains("HealthRuleInvalid") && said.contains(sentence), "{said}");
    page.end()?;
    kubectl.apply(&rules("[]")).await.map(drop)
}

/// Commands of other tools, which cannot run here.
const OF_FLUX_AND_ARGO_CD: [&str; 6] = [
    "flux suspend helmrelease web -n shop",
    "flux delete helmrelease web -n shop",
    "flux suspend kustomization apps -n flux-system",
    "flux delete kustomization apps -n flux-system",
    "argocd app set web --sync-policy none",
    "argocd app delete web --cascade=false",
];

pub async fn moving_in(bed: &Bed) -> Result<()> {
    let mut page = Page::read(bed, "moving-in.md")?;
    let note = note()?;
    std::fs::write(folder(bed)?.join("web-1.0.0.tgz"), &note.bytes)?;
    page.execute("berlin", "helm install web web-1.0.0.tgz -n shop --create-namespace", 0).await?;
    chart_map(bed, "shop", "charts", std::slice::from_ref(&note)).await?;
    let spec =
        "release: web\nplacement: {allOf: [{provider: acme, cluster: berlin}]}\nsync: {conflicts: Fail}";
    bed.hub().kubectl().apply(&deployment("shop", "till", &[note], spec)).await?;
    failing(bed, "shop", "till", "acme/berlin", "NotOurs").await?;
    // 3: something is to be taken over.
    let said = page.run_to("hub", "kubectl emco adopt shop/till", 3).await?;
    ensure!(said.contains("ConfigMap/shop/note (app web) of Helm release shop/web"), "{said}");
    page.run("kubectl emco adopt shop/till --conflicts Force").await?;
    page.run("kubectl emco wait shop/till --for=applied").await?;
    page.run("kubectl emco adopt shop/till --conflicts Fail").await?;
    page.run_on("berlin", "kubectl delete secret -n shop -l owner=helm,name=web").await?;
    let said = page.run_on("berlin", "helm list -n shop").await?;
    ensure!(said.starts_with("NAME") && !said.contains("web"), "{said}");
    for command in OF_FLUX_AND_ARGO_CD {
        page.take_exactly(command).await?;
    }
    page.end()?;
    gone(bed, "till").await
}
