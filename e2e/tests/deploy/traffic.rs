//! Policies of servers on real clusters: EMCO's example, their order around Pods, and charts that open what they close.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed, deployment, refused, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};

use super::generated::{of, written};
use super::{AT_WORK, EVERYWHERE, start};

const WORKLOAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}, annotations: {page: {{ .Values.page | quote }}}}
    spec: {containers: [{name: c, image: example.com/c, ports: [{name: http, containerPort: 5000}, {name: ssh, containerPort: 22}]}]}
";
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: {{ .Chart.Name }}}
spec:
  selector: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}
  ports: [{name: http, port: 5000, targetPort: http}]
";
/// As many charts ship it: everybody reaches the port.
const OPEN: &str = "{{ if .Values.open }}apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: http-server}
spec:
  podSelector: {matchLabels: {app: http-server}}
  ingress: [{ports: [{port: 5000}]}]
{{ end }}";

fn package(name: &str) -> Result<Package> {
    let files = [
        ("values.yaml", "page: one\nopen: false\n"),
        ("templates/workload.yaml", WORKLOAD),
        ("templates/service.yaml", SERVICE),
        ("templates/networkpolicy.yaml", OPEN),
    ];
    chart(name, "1.0.0", &files)
}

fn packages() -> Result<[Package; 2]> {
    Ok([package("http-server")?, package("http-client")?])
}

/// EMCO's example `network_policy`: http-client reaches http-server on port 5000.
fn intent(namespace: &str, more: &Value) -> String {
    let client = json!({"name": "client", "app": "http-client"});
    let mut clients = vec![client];
    clients.extend(more["clients"].as_array().into_iter().flatten().cloned());
    let mut spec = json!({
        "unsupported": "Ignore",
        "servers": [{"name": "server", "app": "http-server", "ports": [5000], "clients": clients}],
    });
    if let Some(on) = more.get("onViolation") {
        spec["onViolation"] = on.clone();
    }
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "TrafficGroupIntent",
        "metadata": {"name": "example", "namespace": namespace}, "spec": spec,
    })
    .to_string()
}

fn shop(namespace: &str, values: &str) -> Result<String> {
    let spec = format!(
        "{EVERYWHERE}\nintents: [{{kind: TrafficGroupIntent, name: example}}]\noverrideValues: [{{app: http-server, values: {values}}}]"
    );
    Ok(deployment(namespace, "net", &packages()?, &spec))
}

/// States whether policies have an effect on an edge.
async fn state(bed: &Bed, edge: &str, networkpolicy: Value) -> Result<()> {
    let patch = json!({"spec": {"network": {"networkPolicy": networkpolicy}}}).to_string();
    bed.hub().kubectl().run(&["patch", "ecl", edge, "-n", "acme", "--type=merge", "-p", &patch]).await?;
    Ok(())
}

/// Waits until the server has this page on both edges.
async fn says(bed: &Bed, namespace: &str, page: &str) -> Result<()> {
    for edge in ["a", "b"] {
        let api = bed.edge(edge).api::<Deployment>(namespace).await?;
        wait_for_object(api, "net-http-server", SOON, |found: &Deployment| {
            let template = found.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
            let notes = template.and_then(|metadata| metadata.annotations.as_ref());
            notes.and_then(|notes| notes.get("page")).is_some_and(|said| said == page)
        })
        .await?;
    }
    Ok(())
}

fn marks(bed: &Bed) -> Result<[AuditMark; 2]> {
    Ok([bed.edge("a").audit_mark()?, bed.edge("b").audit_mark()?])
}

async fn policies(bed: &Bed, edge: &str, namespace: &str) -> Result<Vec<NetworkPolicy>> {
    let api = bed.edge(edge).api::<NetworkPolicy>(namespace).await?;
    Ok(api.list(&kube::api::ListParams::default()).await?.items)
}

/// The first policy was answered before the first workload was asked for.
fn ordered(events: &[AuditEvent], edge: &str) -> Result<()> {
    let policy = *of(events, "patch", "networkpolicies").first().context("no policy was made")?;
    let workload = *of(events, "patch", "deployments").first().context("no workload was made")?;
    ensure!(policy.answered <= workload.received, "{edge}: {policy:?} {workload:?}");
    Ok(())
}

#[tokio::test]
async fn a_policy_is_where_the_server_is_and_where_it_has_an_effect() {
    // What is said of a cluster counts for all tests.
    let _working = AT_WORK.write().await;
    let bed = start("traffic", &packages().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        state(bed, "a", json!("Enforced")).await?;
        state(bed, "b", json!("NotEnforced")).await?;
        kubectl.apply(&intent("traffic", &json!({}))).await?;
        kubectl.apply(&shop("traffic", "{page: one}")?).await?;
        let dig = deployed(bed, "traffic", "net", 1).await?;
        let status = serde_json::to_value(dig.status.context("no status")?)?;
        ensure!(status["reachability"]["verdict"] == "Assumed", "{status:#}");
        let assumed = "acme/b: spec.network.networkPolicy is NotEnforced: its servers are open to everybody";
        ensure!(status["reachability"]["assumptions"] == json!([assumed]), "{status:#}");
        ensure!(policies(bed, "b", "traffic").await?.is_empty(), "the policy is where it has no effect");
        let [policy] = &policies(bed, "a", "traffic").await?[..] else { anyhow::bail!("one policy is on a") };
        let spec = serde_json::to_value(policy.spec.as_ref().context("no spec")?)?;
        let ports = json!([{"protocol": "TCP", "port": "http"}]);
        ensure!(
            spec["ingress"][0]["ports"] == ports,
            "one entry with both, so that port 22 is closed: {spec:#}"
        );
        for edge in ["a", "b"] {
            state(bed, edge, Value::Null).await?;
        }
        super::delete_dig(bed, "traffic", "net").await
    }))
    .await;
}

#[tokio::test]
async fn no_server_runs_without_its_policy_at_installation_upgrade_and_rollback() {
    let _working = AT_WORK.read().await;
    let bed = start("fenced", &packages().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&intent("fenced", &json!({}))).await?;
        kubectl.apply(&shop("fenced", "{page: one}")?).await?;
        deployed(bed, "fenced", "net", 1).await?;
        for edge in ["a", "b"] {
            ordered(&written(bed, edge, "fenced", AuditMark::default())?, edge)?;
        }
        // Another client and another page at once: the policy changes first.
        let before = marks(bed)?;
        let office = json!({"clients": [{"name": "office", "cidrs": ["10.1.0.0/16"]}]});
        kubectl
            .apply(&format!("{}\n---\n{}", intent("fenced", &office), shop("fenced", "{page: two}")?))
            .await?;
        says(bed, "fenced", "two").await?;
        deployed(bed, "fenced", "net", 2).await?;
        for (edge, mark) in ["a", "b"].into_iter().zip(before) {
            ordered(&written(bed, edge, "fenced", mark)?, edge)?;
        }
        // Back to the first revision: its policy first.
        let before = marks(bed)?;
        let pin =
            ["patch", "dig", "net", "-n", "fenced", "--type=merge", "-p", "{\"spec\": {\"revision\": 1}}"];
        kubectl.run(&pin).await?;
        says(bed, "fenced", "one").await?;
        for (edge, mark) in ["a", "b"].into_iter().zip(before) {
            ordered(&written(bed, edge, "fenced", mark)?, edge)?;
        }
        super::delete_dig(bed, "fenced", "net").await?;
        for edge in ["a", "b"] {
            let events = written(bed, edge, "fenced", AuditMark::default())?;
            let opened = *of(&events, "delete", "networkpolicies").last().context("no policy was deleted")?;
            let gone = *of(&events, "delete", "pods").last().context("no Pod was deleted")?;
            ensure!(gone.answered <= opened.received, "{edge}: {gone:?} {opened:?}");
        }
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn an_open_policy_of_a_chart_is_refused_by_name_and_nothing_is_written() {
    let _working = AT_WORK.read().await;
    let bed = start("opened", &packages().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&intent("opened", &json!({}))).await?;
        kubectl.apply(&shop("opened", "{page: one}")?).await?;
        deployed(bed, "opened", "net", 1).await?;
        kubectl.apply(&shop("opened", "{page: one, open: true}")?).await?;
        let message = wait(bed, "opened", "net", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::RENDERED, "ReachabilityViolated")
        })
        .await?;
        let named = "NetworkPolicy opened/http-server ingress[0] (app http-server, http-server/templates/networkpolicy.yaml)";
        ensure!(message.contains(named), "{message}");
        for edge in ["a", "b"] {
            ensure!(policies(bed, edge, "opened").await?.len() == 1, "{edge}");
        }
        // Reported, it runs.
        kubectl.apply(&intent("opened", &json!({"onViolation": "Report"}))).await?;
        let dig = deployed(bed, "opened", "net", 2).await?;
        let proof = dig.status.and_then(|status| status.reachability).context("nothing is proved")?;
        ensure!(proof.verdict.as_str() == "Violated" && proof.violations.len() == 1, "{proof:?}");
        super::delete_dig(bed, "opened", "net").await
    }))
    .await;
}
