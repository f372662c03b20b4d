//! Measures what traffic intents cost: a plan with twenty servers and sixty clients on a thousand clusters, and the proof alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_crds::cluster::PolicySupport;
use emco_crds::logical_cloud::Isolation;
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::cloud::CloudFacts;
use emco_engine::identity::ClusterId;
use emco_engine::plan::{Plan, plan};
use emco_engine::role::Reach;
use emco_engine::snapshot::{ChartFacts, ClusterFacts, Installation, Running, Scheduling, Snapshot};
use emco_engine::traffic::Group;
use emco_engine::traffic::proof::Question;
use emco_helm::{Chart, Compiled, Limits};
use serde_json::{Value, json};

use super::intents::object;
use super::record::Entry;

const HOW: &str = "make bench-traffic";
const APPS: usize = 20;
/// Clients of each server.
const CLIENTS: usize = 3;
const CLUSTERS: usize = 1000;
const ROUNDS: usize = 5;

const TEMPLATE: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}}
    spec: {containers: [{name: c, image: example.com/c, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}
spec:
  selector: {app: {{ .Chart.Name }}, app.kubernetes.io/instance: {{ .Release.Name }}}
  ports: [{name: http, port: 80, targetPort: http}]
";

/// Measures in this process; no control plane is started.
pub fn measure() -> Result<Vec<Entry>> {
    let charts = (0..APPS).map(chart).collect::<Result<BTreeMap<_, _>>>()?;
    let before = planned(&snapshot(&charts, false, None)?)?;
    let running = running(&before);
    let (mut with, mut without, mut proofs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let plain = snapshot(&charts, false, Some(running.clone()))?;
        let (_, took) = timed(&plain)?;
        without.push(took);
        let fenced = snapshot(&charts, true, Some(running.clone()))?;
        let (plan, took) = timed(&fenced)?;
        with.push(took);
        let made = plan.assignment.values().filter(|apps| apps.contains_key("tgi.mesh")).count();
        ensure!(made == CLUSTERS, "{made} clusters have policies");
        proofs.push(proved(&fenced, &plan)?);
    }
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    let more = least(&with) - least(&without);
    let entry = |name: &str, samples| Entry::median(name, "ms", samples, HOW).context("nothing was measured");
    Ok(vec![
        Entry::one("plan_traffic_ms", "ms", more, HOW).at_most(150.0),
        entry("proof_ms", proofs)?.at_most(100.0),
        entry("plan_with_traffic_ms", with)?,
        entry("plan_without_traffic_ms", without)?,
    ])
}

fn planned(snapshot: &Snapshot) -> Result<Plan> {
    plan(snapshot).map_err(|refusal| anyhow!("{refusal}"))
}

/// A plan, and its milliseconds.
fn timed(snapshot: &Snapshot) -> Result<(Plan, f64)> {
    let start = Instant::now();
    let plan = planned(snapshot)?;
    Ok((plan, start.elapsed().as_secs_f64() * 1000.0))
}

/// Milliseconds of the proof of a plan.
fn proved(snapshot: &Snapshot, plan: &Plan) -> Result<f64> {
    let groups: Vec<Group<'_>> =
        snapshot.traffic.iter().map(|(name, intent)| Group { name, spec: &intent.spec }).collect();
    let start = Instant::now();
    let question = Question {
        groups: &groups,
        clusters: &snapshot.clusters,
        assignment: &plan.assignment,
        waiting: &plan.waiting,
        sets: &plan.sets,
        namespace: "shop",
        isolation: Isolation::Closed,
        release: "shop",
    };
    let proof = question.proof().map_err(|refusal| anyhow!("{refusal}"))?;
    let took = start.elapsed().as_secs_f64() * 1000.0;
    ensure!(proof.violations.is_empty(), "{:?}", proof.violations);
    ensure!(proof.pairs >= CLUSTERS * APPS * CLIENTS, "{} pairs", proof.pairs);
    Ok(took)
}

fn running(plan: &Plan) -> Running {
    Running {
        revision: 1,
        plan_digest: plan.plan_digest.clone(),
        inputs_digest: plan.inputs_digest.clone(),
        composite_app: "shop".to_owned(),
        assignment: plan.assignment.clone(),
        sets: plan.sets.clone(),
        parts: BTreeMap::new(),
        waves: None,
    }
}

fn name(app: usize) -> String {
    format!("app-{app:02}")
}

fn chart(app: usize) -> Result<(String, ChartFacts)> {
    let name = name(app);
    let files = vec![
        ("Chart.yaml".to_owned(), format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n").into_bytes()),
        ("templates/all.yaml".to_owned(), TEMPLATE.as_bytes().to_vec()),
    ];
    let chart = Chart::from_files(files, &Limits::default()).map_err(|error| anyhow!("{error}"))?;
    let compiled = Compiled::new(chart).map_err(|error| anyhow!("{error}"))?;
    Ok((name.clone(), ChartFacts { digest: format!("sha256:{name}"), compiled: Arc::new(compiled) }))
}

/// Every app is a server of the three before it.
fn intent() -> Value {
    let client = |app: usize, n: usize| {
        let name = name((app + APPS - n) % APPS);
        json!({"name": name, "app": name})
    };
    let server = |app: usize| {
        let clients: Vec<Value> = (1..=CLIENTS).map(|n| client(app, n)).collect();
        json!({"name": name(app), "app": name(app), "ports": ["http"], "clients": clients})
    };
    json!({"servers": (0..APPS).map(server).collect::<Vec<_>>()})
}

fn snapshot(
    charts: &BTreeMap<String, ChartFacts>,
    fenced: bool,
    running: Option<Running>,
) -> Result<Snapshot> {
    let intents = if fenced { json!([{"kind": "TrafficGroupIntent", "name": "mesh"}]) } else { json!([]) };
    let spec = json!({
        "compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "edge"},
        "placement": {"allOf": [{"selector": {}}]}, "intents": intents,
    });
    let apps: Vec<Value> =
        charts.keys().map(|app| json!({"name": app, "chart": {"configMapRef": {"name": app}}})).collect();
    let clusters = fleet();
    let cells = clusters.keys().flat_map(|id| charts.keys().map(move |app| (id.clone(), app.clone())));
    let installed = running.iter().flat_map(|_| cells.clone()).collect();
    let traffic = fenced.then(|| object("TrafficGroupIntent", "mesh", &intent())).transpose()?;
    Ok(Snapshot {
        installation: Arc::new(Installation {
            id: "bench".to_owned(),
            digest_key: [1; 32],
            random_key: [2; 32],
        }),
        project: "shop".to_owned(),
        objects_per_app: None,
        dig: object("DeploymentIntentGroup", "shop", &spec)?,
        composite_app: Some(object("CompositeApp", "shop", &json!({"apps": apps}))?),
        profile: None,
        intents: BTreeMap::new(),
        hardware: BTreeMap::new(),
        traffic: traffic.into_iter().map(|intent| ("mesh".to_owned(), intent)).collect(),
        cloud: Some(CloudFacts {
            name: "edge".to_owned(),
            level: "Admin".to_owned(),
            namespace: "shop".to_owned(),
            reach: Reach { cluster: true, ..Reach::default() },
            derived: None,
            isolation: Isolation::Closed,
            clusters: clusters.keys().cloned().collect(),
        }),
        clusters,
        charts: charts.clone(),
        sources: BTreeMap::new(),
        running,
        waiting: None,
        installed,
        leaving: BTreeMap::new(),
        now: 1_800_000_000,
    })
}

fn fleet() -> BTreeMap<ClusterId, ClusterFacts> {
    let kinds =
        [("", "v1", "Service"), ("apps", "v1", "Deployment"), ("networking.k8s.io", "v1", "NetworkPolicy")];
    let resource = |(group, version, kind): (&str, &str, &str)| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        listable: true,
        watchable: true,
    };
    let apis = Arc::new(ApiList { resources: kinds.into_iter().map(resource).collect() });
    let facts = |number: usize| {
        let id = ClusterId::new("acme", &format!("c{number:04}"));
        let facts = ClusterFacts {
            id: id.clone(),
            labels: BTreeMap::new(),
            properties: BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: Some(format!("uid-{number}")),
            kubernetes_version: Some("v1.36.3".to_owned()),
            apis: Some(Arc::clone(&apis)),
            nodes: None,
            network_policy: Some(PolicySupport::Enforced),
        };
        (id, facts)
    };
    (0..CLUSTERS).map(facts).collect()
}
