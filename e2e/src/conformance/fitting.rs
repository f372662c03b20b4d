//! Lives the hpa examples of the first EMCO with their charts: apps that wait for hardware, go where it is, and ask for it there.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator;
use emco_e2e::package::Package;
use serde_json::{Value, json};

use super::corpus::Corpus;
use super::{EDGES, PROJECT, PROVIDER, all, hand_over, left, remove};

/// Labels of nodes.
const QAT: &str = "intel_qat=true";
const HUGEPAGES: &str = "hugepages=true";
/// The charts of the firewall have a node affinity for it.
const VIRTLET: &str = "extraRuntime=virtlet";

/// The charts of the examples.
pub struct Charts {
    client: Package,
    server: Package,
    /// The virtual firewall and what is beside it.
    firewall: [Package; 3],
}

impl Charts {
    /// Packages them.
    pub fn of(corpus: &Corpus) -> Result<Self> {
        let package = |folder| Package::of_folder(&corpus.chart(folder)?);
        Ok(Self {
            client: package("emco-http-client_helm_http-client")?,
            server: package("emco-http-server_helm_http-server")?,
            firewall: [
                package("emco-composite-firewall_helm_firewall")?,
                package("emco-composite-firewall_helm_packetgen")?,
                package("emco-composite-firewall_helm_sink")?,
            ],
        })
    }
}

/// From clean edges to clean edges. Answers what was seen.
pub async fn fit(bed: &Bed, charts: &Charts) -> Result<String> {
    let before = all(bed).await?;
    let lived = Box::pin(async {
        simple(bed, charts).await.context("simple")?;
        advanced(bed, charts).await.context("advanced")?;
        firewall(bed, charts).await.context("vfw")
    })
    .await;
    if lived.is_err() {
        // Now, while everything is still as it failed.
        println!("{}", bed.diagnostics().await);
    }
    for name in ["simple", "advanced", "vfw"] {
        remove(bed, name).await?;
        let object = format!("hardwareintents.emco.io/{name}");
        let args = ["delete", &object, "-n", PROJECT, "--ignore-not-found", "--timeout=60s"];
        bed.hub().kubectl().run(&args).await?;
    }
    for edge in EDGES {
        for label in [QAT, HUGEPAGES, VIRTLET] {
            let key = label.split_once('=').map_or(label, |(key, _)| key);
            label_node(bed, edge, &format!("{key}-")).await?;
        }
    }
    lived?;
    let left = left(bed, &before).await?;
    Ok(format!("none qualified, then one of two did, and both had to; afterwards {left}"))
}

/// The client needs a label and CPUs, which no edge has and then one.
async fn simple(bed: &Bed, charts: &Charts) -> Result<()> {
    let two = EDGES[1];
    apply(bed, "simple", &[&charts.client], &any(), &json!([client()])).await?;
    refused(bed, "simple", QAT).await?;
    label_node(bed, two, QAT).await?;
    deployed(bed, "simple", &[two]).await?;
    asks(bed, two, "simple").await
}

/// Beside the client, the server needs memory: both go to the edge that has both.
async fn advanced(bed: &Bed, charts: &Charts) -> Result<()> {
    let two = EDGES[1];
    let server = consumer(
        "http-server",
        &json!([
            {"name": "memory", "resource": {"name": "memory", "request": "500M", "limit": "800M"}},
            {"name": "qat", "nodeSelector": selector(QAT)},
        ]),
    );
    let consumers = json!([client(), server]);
    apply(bed, "advanced", &[&charts.client, &charts.server], &any(), &consumers).await?;
    deployed(bed, "advanced", &[two]).await?;
    asks(bed, two, "advanced").await?;
    let pod = pod(bed, two, "advanced-http-server").await?;
    let resources = &pod["containers"][0]["resources"];
    let wanted = json!({"requests": {"memory": "500M"}, "limits": {"memory": "800M"}});
    ensure!(*resources == wanted, "the server has {resources}");
    Ok(())
}

/// The firewall has to go to both edges, one of which lacks what it needs.
async fn firewall(bed: &Bed, charts: &Charts) -> Result<()> {
    let [one, two] = EDGES;
    for edge in EDGES {
        label_node(bed, edge, VIRTLET).await?;
    }
    label_node(bed, one, HUGEPAGES).await?;
    let consumers =
        json!([consumer("firewall", &json!([{"name": "pages", "nodeSelector": selector(HUGEPAGES)}]))]);
    let [firewall, generator, sink] = &charts.firewall;
    let every = json!({"allOf": [{"selector": {}}]});
    apply(bed, "vfw", &[firewall, generator, sink], &every, &consumers).await?;
    let message = refused(bed, "vfw", HUGEPAGES).await?;
    ensure!(message.contains(&format!("{PROVIDER}/{two}")), "{two} is not named: {message}");
    label_node(bed, two, HUGEPAGES).await?;
    deployed(bed, "vfw", &EDGES).await?;
    for edge in EDGES {
        let pod = pod(bed, edge, "vfw-firewall").await?;
        ensure!(pod["nodeSelector"] == json!({"hugepages": "true"}), "{}", pod["nodeSelector"]);
    }
    Ok(())
}

fn any() -> Value {
    json!({"anyOf": [{"from": [{"provider": PROVIDER, "selector": {}}]}]})
}

fn selector(label: &str) -> Value {
    let (key, value) = label.split_once('=').unwrap_or((label, ""));
    json!({"matchLabels": {key: value}})
}

/// Of the app's only workload, whose container is called as its chart.
fn consumer(app: &str, requirements: &Value) -> Value {
    let target =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("{{{{release}}}}-{app}")});
    json!({"name": app, "app": app, "target": target, "container": app, "requirements": requirements})
}

fn client() -> Value {
    let mut client = consumer(
        "http-client",
        &json!([
            {"name": "qat", "nodeSelector": selector(QAT)},
            {"name": "cpu", "resource": {"name": "cpu", "request": 1, "limit": 2}},
        ]),
    );
    client["replicas"] = json!(2);
    client
}

async fn apply(
    bed: &Bed,
    name: &str,
    charts: &[&Package],
    placement: &Value,
    consumers: &Value,
) -> Result<()> {
    let mut apps = Vec::new();
    for chart in charts {
        apps.push(json!({"name": chart.name, "chart": hand_over(bed, chart, name).await?}));
    }
    let metadata = json!({"name": name, "namespace": PROJECT});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "HardwareIntent", "metadata": metadata,
         "spec": {"consumers": consumers}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata, "spec": {"apps": apps}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata, "spec": {
            "compositeAppRef": {"name": name}, "placement": placement,
            "intents": [{"kind": "HardwareIntent", "name": name}],
        }},
    ]});
    bed.hub().kubectl().apply(&objects.to_string()).await.map(drop)
}

/// Refused for this label; answers the message.
async fn refused(bed: &Bed, name: &str, label: &str) -> Result<String> {
    let says = operator::says::<DeploymentIntentGroup, _>(
        bed,
        PROJECT,
        name,
        types::PLACED,
        "HardwareUnsatisfiable",
    );
    let message = says.await?;
    ensure!(message.contains(label), "{label} is not named: {message}");
    Ok(message)
}

/// Deployed, each app on these edges.
async fn deployed(bed: &Bed, name: &str, edges: &[&str]) -> Result<()> {
    let dig = operator::deployed(bed, PROJECT, name, 1).await?;
    let wanted: Vec<String> = edges.iter().map(|edge| format!("{PROVIDER}/{edge}")).collect();
    for app in dig.status.into_iter().flat_map(|status| status.apps) {
        ensure!(app.chosen == wanted, "{} is on {:?}, not {wanted:?}", app.name, app.chosen);
    }
    Ok(())
}

/// The client asks for what the intent says.
async fn asks(bed: &Bed, edge: &str, deployment: &str) -> Result<()> {
    let name = format!("{deployment}-http-client");
    let replicas = workload(bed, edge, &name).await?["spec"]["replicas"].clone();
    ensure!(replicas == 2, "the client has {replicas} replicas");
    let pod = pod(bed, edge, &name).await?;
    ensure!(pod["nodeSelector"] == json!({"intel_qat": "true"}), "{}", pod["nodeSelector"]);
    let resources = &pod["containers"][0]["resources"];
    let wanted = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}});
    ensure!(*resources == wanted, "the client has {resources}");
    Ok(())
}

/// Gives the node of an edge a label, or takes it: `KEY-`.
async fn label_node(bed: &Bed, edge: &str, label: &str) -> Result<()> {
    let node = format!("{edge}-1");
    bed.edge(edge).kubectl().run(&["label", "node", &node, label, "--overwrite"]).await.map(drop)
}

async fn pod(bed: &Bed, edge: &str, name: &str) -> Result<Value> {
    Ok(workload(bed, edge, name).await?["spec"]["template"]["spec"].clone())
}

async fn workload(bed: &Bed, edge: &str, name: &str) -> Result<Value> {
    let object = format!("deployment/{name}");
    let found = bed.edge(edge).kubectl().run(&["get", &object, "-n", PROJECT, "-o", "json"]).await;
    let found = found.with_context(|| format!("{name} on {edge}"))?;
    serde_json::from_str(&found).with_context(|| format!("{name} on {edge}: no JSON"))
}
