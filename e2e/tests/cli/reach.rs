//! Who reaches the servers of a deployment, as `reach` and `plan -f` say.

use anyhow::{Context as _, Result};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, project};
use emco_e2e::package::Package;

use super::looks::EVERYWHERE;
use super::rig::{STAGE, file, run};

const TEMPLATE: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Chart.Name }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}}
    spec: {containers: [{name: c, image: example.com/c}]}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Chart.Name }}}
spec:
  selector: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}
  ports: [{name: http, port: 80, targetPort: 8080}]
{{ if .Values.open }}---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: open}
spec: {podSelector: {matchLabels: {app: {{ .Chart.Name }}}}, ingress: [{ports: [{port: 8080}]}]}
{{ end }}";
const INTENT: &str = "
apiVersion: emco.io/v1alpha1
kind: TrafficGroupIntent
metadata: {name: front, namespace: reached}
spec: {servers: [{name: api, app: api, clients: [{name: ui, app: ui}]}]}
";

fn packages() -> Result<[Package; 2]> {
    let files = [("values.yaml", "open: false\n"), ("templates/all.yaml", TEMPLATE)];
    Ok([chart("api", "1.0.0", &files)?, chart("ui", "1.0.0", &files)?])
}

fn shop(open: bool) -> Result<String> {
    let spec = format!(
        "{EVERYWHERE}\nintents: [{{kind: TrafficGroupIntent, name: front}}]\noverrideValues: [{{app: api, values: {{open: {open}}}}}]"
    );
    Ok(deployment("reached", "shop", &packages()?, &spec))
}

async fn deploy(bed: &Bed) -> Result<()> {
    project(bed, "reached").await?;
    chart_map(bed, "reached", "charts", &packages()?).await?;
    bed.hub().kubectl().apply(INTENT).await?;
    bed.hub().kubectl().apply(&shop(false)?).await?;
    deployed(bed, "reached", "shop", 1).await.map(drop)
}

#[tokio::test]
async fn every_pair_has_its_rule_and_a_plan_that_opens_more_is_refused() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed).await?;
        run(bed, &["reach", "reached/shop"]).await?.is(
            0,
            &[
                "open     NetworkPolicy reached/shop-front-api ingress[0] (TrafficGroupIntent front)",
                "any other pod of its namespace   closed   no rule of NetworkPolicy reached/shop-front-api",
            ],
        );
        run(bed, &["reach", "reached/shop", "--from", "nobody"]).await?.is(1, &["has no such pair"]);
        let path = file(bed, "reached.yaml", &shop(true)?).await?;
        let path = path.to_str().context("no text")?;
        run(bed, &["plan", "-f", path]).await?.is(
            4,
            &[
                "api:8080 on",
                "NetworkPolicy reached/open ingress[0] (app api, api/templates/all.yaml); turn it off",
            ],
        );
        Ok(())
    }))
    .await;
}
