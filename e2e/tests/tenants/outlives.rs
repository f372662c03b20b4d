//! A chart that would have its workloads outlive their tenant, and what confined them.

use anyhow::{Result, ensure};
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::apps::v1::Deployment;

use super::world::{ON_A, Tenant};

const NAME: &str = "lodger";
const THERE: &str = "lodger-there";
const CLOUD: &str = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: room}
spec:
  level: Standard
  namespace: lodger-there
  isolation: DefaultDeny
  podSecurity: Baseline
  quotas: [{name: all, hard: {pods: '4'}}]
  limitRanges: [{name: small, limits: [{type: Container, default: {memory: 64Mi}}]}]
";

/// Marked by its author as if it had been there before, and as what Helm keeps.
const STAYS: &str = "
{{- range $name, $marks := dict \"adopted\" (dict \"emco.io/adopted\" \"true\") \"kept\" (dict \"helm.sh/resource-policy\" \"keep\") }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $name }}, annotations: {{ $marks | toJson }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ $name }}}}
  template:
    metadata: {labels: {app: {{ $name }}}}
    spec: {containers: [{name: web, image: example.com/web}]}
{{- end }}
";

#[tokio::test]
async fn what_a_chart_keeps_stays_confined_and_is_named() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], "").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.apply(CLOUD).await?;
        tenant.ready("room").await?;
        let stays = chart("stays", "1.0.0", &[("templates/stays.yaml", STAYS)])?;
        chart_map(bed, NAME, "charts", std::slice::from_ref(&stays)).await?;
        let spec = format!("{ON_A}\nlogicalCloudRef: {{name: room}}");
        bed.hub().kubectl().apply(&deployment(NAME, "stays", &[stays], &spec)).await?;
        deployed(bed, NAME, "stays", 1).await?;

        tenant.kubectl.run(&["delete", "dig", "stays", "-n", NAME, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(NAME).await?, "stays", SOON).await?;
        let there = bed.edge("a").api::<Deployment>(THERE).await?;
        ensure!(there.get_opt("adopted").await?.is_none(), "a mark of a chart is not ours");
        ensure!(there.get_opt("kept").await?.is_some(), "what a chart keeps stays");
        said(&tenant, "Deployment/lodger-there/kept (helm.sh/resource-policy: keep)").await?;

        tenant.kubectl.run(&["delete", "lc", "room", "-n", NAME, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<LogicalCloud>(NAME).await?, "room", SOON).await?;
        said(&tenant, "Namespace/lodger-there (it holds Deployment/kept)").await?;
        let edge = bed.edge("a").kubectl();
        for confines in ["resourcequota/emco-all", "limitrange/emco-small", "networkpolicy/emco-isolation"] {
            edge.run(&["get", confines, "-n", THERE]).await?;
        }
        let label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}";
        ensure!(edge.run(&["get", "namespace", THERE, "-o", label]).await? == "baseline");
        let bindings = edge.run(&["get", "rolebindings", "-n", THERE, "-o", "name"]).await?;
        ensure!(!bindings.contains("emco"), "its rights are gone: {bindings}");

        // It has its room again, with what bounds it.
        tenant.apply(CLOUD).await?;
        tenant.ready("room").await
    })
    .await;
}

/// An Event outlives the object that it is about.
async fn said(tenant: &Tenant, words: &str) -> Result<()> {
    let events = [
        "get",
        "events.events.k8s.io",
        "-n",
        NAME,
        "-o",
        "jsonpath={.items[?(@.reason=='NotRemoved')].note}",
    ];
    let said = tenant.bed.hub().kubectl().run(&events).await?;
    ensure!(said.contains(words), "{words:?} was wanted of {said:?}");
    Ok(())
}
