//! In: fields of a chart that others have on a cluster: an autoscaler of somebody else, a platform's pull secrets, an injector of
//! bundles. Out: they stay theirs, and nobody fights; Helm stands beside.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed, deployment};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

use super::super::beside::Beside;
use super::{HERE, SILENCE, counted, start, writes};

const ALL: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:{{ .Values.say }}"}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
imagePullSecrets: [{name: "{{ .Values.say }}"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "{{ .Release.Namespace }}-empty", labels: {say: "{{ .Values.say }}"}}
webhooks:
- name: empty.example.com
  clientConfig: {caBundle: "", service: {name: none, namespace: {{ .Release.Namespace }}}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
  sideEffects: None
  admissionReviewVersions: [v1]
"#;

const SCALER: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: outside}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
";

fn all() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/all.yaml", ALL)])
}

fn values(say: &str) -> String {
    format!("{HERE}\noverrideValues: [{{app: web, values: {{say: {say}}}}}]")
}

/// An autoscaler of somebody else has set its least.
async fn scaled(bed: &Bed, namespace: &str) -> Result<()> {
    bed.edge("a").kubectl().run_with(&["apply", "-n", namespace, "-f", "-"], SCALER).await?;
    replicas(bed, namespace, 3).await
}

async fn replicas(bed: &Bed, namespace: &str, wanted: i32) -> Result<()> {
    let webs = bed.edge("a").api::<Deployment>(namespace).await?;
    let has = |web: &Deployment| web.spec.as_ref().and_then(|spec| spec.replicas) == Some(wanted);
    wait_for_object(webs, "web", SOON, has).await.map(drop)
}

/// Writes as a platform and an injector do, which know nothing of other managers.
async fn theirs(bed: &Bed, namespace: &str, said: &str) -> Result<()> {
    let edge = bed.edge("a").kubectl();
    let list = format!(r#"{{"imagePullSecrets":[{{"name":"{said}"}},{{"name":"theirs"}}]}}"#);
    edge.run(&["patch", "sa", "web", "-n", namespace, "--type=merge", "-p", &list]).await?;
    let bundle = r#"[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"$CA"}]"#;
    let path = r"jsonpath={.data.ca\.crt}";
    let ca = edge.run(&["get", "cm", "kube-root-ca.crt", "-n", namespace, "-o", path]).await?;
    let bundle = bundle.replace("$CA", &STANDARD.encode(ca));
    let hook = format!("{namespace}-empty");
    let patch = ["patch", "validatingwebhookconfiguration", &hook, "--type=json", "-p", &bundle];
    edge.run(&patch).await.map(drop)
}

#[tokio::test]
async fn what_others_have_of_a_charts_fields_stays_theirs_through_updates() {
    let bed = start("outside", all().unwrap(), &values("one")).await.unwrap();
    bed.explain(Box::pin(async {
        let beside = Beside::new(bed, "outside", &all()?).await?;
        beside.upgrade("say=one").await?;
        for namespace in ["outside", beside.namespace.as_str()] {
            scaled(bed, namespace).await?;
            theirs(bed, namespace, "one").await?;
        }
        deployed(bed, "outside", "shop", 1).await?;
        let mark = bed.edge("a").audit_mark()?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "outside", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        bed.hub().kubectl().apply(&deployment("outside", "shop", &[all()?], &values("two"))).await?;
        deployed(bed, "outside", "shop", 2).await?;
        beside.upgrade("say=two").await?;
        beside.agrees("outside", "deploy/web", &["{.spec.template.spec.containers}"]).await?;
        let field = async |namespace: &str, object: &str, path: &str| {
            super::super::field(bed, namespace, object, path).await
        };
        // Helm sets replicas, pull secrets and bundles with each upgrade, and their owners set them again.
        ensure!(field("outside", "deploy/web", "{.spec.replicas}").await? == "3");
        let names = field("outside", "sa/web", "{.imagePullSecrets[*].name}").await?;
        let mut names: Vec<&str> = names.split(' ').collect();
        names.sort_unstable();
        ensure!(names == ["theirs", "two"], "{names:?}");
        let hook = "validatingwebhookconfiguration/outside-empty";
        ensure!(field("outside", hook, "{.metadata.labels.say}").await? == "two");
        ensure!(!field("outside", hook, "{.webhooks[0].clientConfig.caBundle}").await?.is_empty());
        counted(bed, "outside", (0, 0)).await.map(drop)
    }))
    .await;
}

#[tokio::test]
async fn replicas_return_to_the_charts_when_an_outside_autoscaler_is_deleted() {
    let bed = start("released-web", all().unwrap(), &values("one")).await.unwrap();
    bed.explain(async {
        scaled(bed, "released-web").await?;
        deployed(bed, "released-web", "shop", 1).await?;
        let scalers = bed.edge("a").api::<HorizontalPodAutoscaler>("released-web").await?;
        bed.edge("a").kubectl().run(&["delete", "hpa", "outside", "-n", "released-web"]).await?;
        wait_until_gone(scalers, "outside", SOON).await?;
        replicas(bed, "released-web", 1).await?;
        counted(bed, "released-web", (1, 0)).await.map(drop)
    })
    .await;
}
