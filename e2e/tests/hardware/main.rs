//! In: two edges with one GPU each, and deployments that need one. Out: each gets its own, a restart moves nothing, and the scheduler agrees.

mod soak;

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, HardwareIntent};
use emco_e2e::bed::{Bed, BedSpec, Capacity, NodeSpec, PlaneSpec};
use emco_e2e::operator::{
    OperatorInTurn, SOON, chart, chart_map, deployed, deployment, is, project, register, says, unless_ended,
    wait,
};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::apps::v1::Deployment;

static IN_TURN: OperatorInTurn = OperatorInTurn::new(|| {
    let edge = |name: &str| {
        let node = NodeSpec::new(&format!("{name}-1")).label("example.com/avx512", "true");
        PlaneSpec::edge(name).nodes(vec![node.capacity(Capacity::default().extended("example.com/gpu", "1"))])
    };
    BedSpec::bare_hub().with(edge("a")).with(edge("b"))
});

const TENANT: &str = "hardware";
const ANYWHERE: &str =
    "placement: {anyOf: [{from: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}]}";
const LISTED: &str = "intents: [{kind: HardwareIntent, name: gpu}]";
const INTENT: &str = r#"
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: gpu, namespace: hardware}
spec:
  consumers:
  - name: web
    app: web
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    container: web
    requirements:
    - {name: gpu, resource: {name: example.com/gpu, request: 1}}
    - {name: avx, nodeSelector: {matchLabels: {example.com/avx512: "true"}}}
"#;
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  selector: {matchLabels: {app: web, release: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: web, release: {{ .Release.Name }}}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

fn web() -> Result<Package> {
    chart("web", "1.0.0", &[("templates/web.yaml", WEB)])
}

async fn apply(bed: &Bed, name: &str) -> Result<()> {
    let spec = format!("{ANYWHERE}\n{LISTED}");
    bed.hub().kubectl().apply(&deployment(TENANT, name, &[web()?], &spec)).await.map(drop)
}

/// Waits until a deployment is as wanted; answers its clusters.
async fn chosen(bed: &Bed, name: &str) -> Result<Vec<String>> {
    let dig = deployed(bed, TENANT, name, 1).await?;
    let status = dig.status.context("no status")?;
    Ok(status.apps.into_iter().flat_map(|app| app.chosen).collect())
}

/// The Pod of a deployment runs: the scheduler found its node.
async fn runs(bed: &Bed, edge: &str, name: &str) -> Result<()> {
    let api = bed.edge(edge).api::<Deployment>(TENANT).await?;
    let ready = |web: &Deployment| web.status.as_ref().and_then(|status| status.ready_replicas) == Some(1);
    wait_for_object(api, &format!("{name}-web"), SOON, ready).await.map(drop)
}

#[tokio::test]
async fn each_deployment_gets_a_gpu_of_its_own_and_a_restart_moves_nothing() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        unless_ended(operator.process(), register(bed, "acme", &["a", "b"])).await?;
        project(bed, TENANT).await?;
        chart_map(bed, TENANT, "charts", &[web()?]).await?;
        bed.hub().kubectl().apply(INTENT).await?;
        wait(bed, TENANT, "gpu", |intent: &HardwareIntent| is(intent.status.as_ref(), types::READY, "True"))
            .await?;
        apply(bed, "shop").await?;
        ensure!(chosen(bed, "shop").await? == ["acme/a"]);
        // At once: what the Pods of a cluster request is read every five minutes.
        apply(bed, "till").await?;
        ensure!(chosen(bed, "till").await? == ["acme/b"]);
        for (edge, name) in [("a", "shop"), ("b", "till")] {
            runs(bed, edge, name).await?;
            let api = bed.edge(edge).api::<Deployment>(TENANT).await?;
            let web = serde_json::to_value(api.get(&format!("{name}-web")).await?)?;
            let pod = &web["spec"]["template"]["spec"];
            ensure!(pod["nodeSelector"]["example.com/avx512"] == "true", "{pod}");
            ensure!(pod["containers"][0]["resources"]["limits"]["example.com/gpu"] == "1", "{pod}");
        }
        apply(bed, "third").await?;
        let message =
            says::<DeploymentIntentGroup, _>(bed, TENANT, "third", types::PLACED, "HardwareUnsatisfiable");
        let message = message.await?;
        ensure!(
            message.contains("1 more example.com/gpu on one node with example.com/avx512=true"),
            "{message}"
        );

        operator.restart(bed).await?;
        // An edit of both, which is planned before or after nodes are listed.
        for name in ["shop", "till"] {
            let patch = r#"{"spec": {"overrideValues": [{"app": "web", "values": {"any": 1}}]}}"#;
            let args = ["patch", "dig", name, "-n", TENANT, "--type=merge", "-p", patch];
            bed.hub().kubectl().run(&args).await?;
        }
        for (name, cluster) in [("shop", "acme/a"), ("till", "acme/b")] {
            let stayed = wait(bed, TENANT, name, |dig: &DeploymentIntentGroup| {
                let status = dig.status.as_ref().ok_or("no status")?;
                if status.observed_generation != dig.metadata.generation {
                    return Err("the edit was not looked at yet".to_owned());
                }
                Ok(status.apps.iter().flat_map(|app| app.chosen.clone()).collect::<Vec<_>>())
            });
            ensure!(stayed.await? == [cluster], "{name}");
        }
        Ok(())
    }))
    .await;
}
