//! In: an operator with the rights of its chart. Out: everything that it does, asked of it once.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::view::ViewState;
use emco_crds::{
    Cluster, ClusterProvider, DeploymentIntentGroup, DeploymentView, GitTarget, LogicalCloud, Project,
};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, ours, project, register, says, wait};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {}}]}";

/// Everything the operator does: from clusters to deployments and back, with a Secret among the manifests.
pub async fn life(bed: &Bed) -> Result<()> {
    register(bed, "acme", &["a"]).await?;
    project(bed, "shop").await?;
    let template = "
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.key | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}}
";
    let note = chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", template)])?;
    chart_map(bed, "shop", "charts", std::slice::from_ref(&note)).await?;
    let kubectl = bed.hub().kubectl();
    let values =
        |value: &str| format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{key: {value}}}}}]");
    let profile = "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: till, namespace: shop}
spec: {apps: [{app: note, values: {key: profile}}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: till, namespace: shop}
spec:
  actions:
  - {name: more, app: note, type: Add, add: {inline: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}}}
  - name: door
    app: note
    type: Add
    add: {inline: {apiVersion: v1, kind: Service, metadata: {name: door}, spec: {selector: {app: note}, ports: [{port: 80}]}}}
---
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: till, namespace: shop}
spec: {consumers: []}
---
apiVersion: emco.io/v1alpha1
kind: TrafficGroupIntent
metadata: {name: till, namespace: shop}
spec:
  networkPolicy: None
  onViolation: Report
  servers: [{name: note, app: note, clients: [{name: office, cidrs: [10.1.0.0/16]}]}]
---
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {name: fleet, namespace: acme}
spec: {url: 'https://git.example.com/fleet.git', branch: main, secretRef: {name: nowhere}}
";
    kubectl.apply(profile).await?;
    says::<GitTarget, _>(bed, "acme", "fleet", types::READY, "SecretNotFound").await?;
    for (revision, value) in [(1, "one"), (2, "two"), (3, "three")] {
        let spec = format!(
            "{}\ncompositeProfileRef: {{name: till}}\nintents: [{{kind: GenericActionIntent, name: till}}, {{kind: HardwareIntent, name: till}}, {{kind: TrafficGroupIntent, name: till}}]\nrevisionHistoryLimit: 1",
            values(value)
        );
        kubectl.apply(&deployment("shop", "till", std::slice::from_ref(&note), &spec)).await?;
        deployed(bed, "shop", "till", revision).await?;
    }
    kubectl.apply(QUESTION).await?;
    wait(bed, "shop", "look", |view: &DeploymentView| {
        let state = view.status.as_ref().and_then(|status| status.state);
        if state == Some(ViewState::Answered) { Ok(()) } else { Err(format!("{:?}", view.status)) }
    })
    .await?;
    credentials_of_a_person(bed).await?;
    rights_that_are_taken_away_come_back(bed).await?;
    a_rollout_that_fails_goes_back(bed).await?;
    wait_until_gone(bed.hub().api::<DeploymentView>("shop").await?, "look", SOON).await?;
    let refused = kubectl.output(&["apply", "-f", "-"], APPROVAL).await?;
    assert!(refused.stderr.contains("spec.approvedBy must be your own user name"), "{}", refused.stderr);
    kubectl.apply(&APPROVAL.replace("somebody-else", "tester").replace("of-another", "of-mine")).await?;
    kubectl.run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await?;
    assert_eq!(ours(bed, "a", "configmaps,secrets", None).await?, Vec::<String>::new());
    Ok(())
}

/// Secrets with kubeconfigs of a person are made, emptied, and collected after their logical cloud.
async fn credentials_of_a_person(bed: &Bed) -> Result<()> {
    let cloud = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: team, namespace: shop}
spec: {level: Standard, namespace: shop-team, user: {name: ann}}
";
    let kubectl = bed.hub().kubectl();
    kubectl.apply(cloud).await?;
    wait(bed, "shop", "team-kubeconfig", |secret: &Secret| {
        let filled = secret.data.as_ref().is_some_and(|data| data.contains_key("kubeconfig"));
        if filled { Ok(()) } else { Err("it holds no kubeconfig".to_owned()) }
    })
    .await?;
    kubectl.run(&["delete", "lc", "team", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<LogicalCloud>("shop").await?, "team", SOON).await?;
    for name in ["team-kubeconfig", "team-kubeconfig-0"] {
        wait_until_gone(bed.hub().api::<Secret>("shop").await?, name, SOON).await?;
    }
    Ok(())
}

/// The second revision never becomes ready, so that its rollout takes it back by itself.
async fn a_rollout_that_fails_goes_back(bed: &Bed) -> Result<()> {
    let template = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";
    let files = [("values.yaml", "replicas: 0\n"), ("templates/web.yaml", template)];
    let charts = [chart("web", "1.0.0", &files)?];
    chart_map(bed, "shop", "back", &charts).await?;
    let waves =
        "rollout: {onFailure: Rollback, waves: [{name: all, clusters: [{provider: acme, cluster: a}]}]}";
    for replicas in [0, 1] {
        let values = format!("overrideValues: [{{app: web, values: {{replicas: {replicas}}}}}]");
        let spec = format!("{EVERYWHERE}\n{waves}\nprogressDeadline: 5s\n{values}");
        // Charts of its own, beside those of the other deployment.
        let text = deployment("shop", "back", &charts, &spec).replace("name: charts,", "name: back,");
        bed.hub().kubectl().apply(&text).await?;
        if replicas == 0 {
            deployed(bed, "shop", "back", 1).await?;
        }
    }
    wait(bed, "shop", "back", |dig: &DeploymentIntentGroup| {
        let rollout = dig.status.as_ref().and_then(|status| status.rollout.as_ref());
        let is_back = rollout.is_some_and(|rollout| rollout.taken_back);
        if is_back { Ok(()) } else { Err(format!("{rollout:?}")) }
    })
    .await?;
    bed.hub().kubectl().run(&["delete", "dig", "back", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "back", SOON).await
}

/// Somebody deletes the binding by which the operator reads kubeconfigs, finalizer and all.
async fn rights_that_are_taken_away_come_back(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let binding = ["rolebinding", "emco-operator", "-n", "acme"];
    let words = |first: &[&'static str], last: &[&'static str]| [first, &binding, last].concat();
    kubectl.run(&words(&["patch"], &["--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#])).await?;
    kubectl.run(&words(&["delete"], &[])).await?;
    kubectl.run(&["annotate", "ecl", "a", "-n", "acme", "emco.io/requestedAt=without-rights"]).await?;
    wait(bed, "acme", "a", |cluster: &Cluster| {
        let echoed = cluster.status.as_ref().and_then(|status| status.last_handled_request.as_deref());
        if echoed == Some("without-rights") { Ok(()) } else { Err(format!("it answered {echoed:?}")) }
    })
    .await?;
    kubectl.run(&words(&["get"], &[])).await.map(drop)
}

const QUESTION: &str = "
apiVersion: emco.io/v1alpha1
kind: DeploymentView
metadata: {name: look, namespace: shop}
spec: {deploymentIntentGroupRef: {name: till}, question: {what: Objects}}
";

const APPROVAL: &str = "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {name: of-another, namespace: shop}
spec:
  deploymentIntentGroupRef: {name: till}
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  approvedBy: somebody-else
";

/// What is gone leaves nothing on the hub.
pub async fn removal(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    kubectl
        .run(&[
            "delete",
            "compositeapps.emco.io,compositeprofiles.emco.io,genericactionintents.emco.io,hardwareintents.emco.io,trafficgroupintents.emco.io",
            "--all",
            "-n",
            "shop",
        ])
        .await?;
    kubectl.run(&["delete", "projects.emco.io", "shop", "--wait=false"]).await?;
    wait_until_gone(Api::<Project>::all(bed.hub().client().await?), "shop", SOON).await?;
    kubectl.run(&["delete", "clusters.emco.io", "a", "-n", "acme"]).await?;
    kubectl.run(&["delete", "gittargets.emco.io", "fleet", "-n", "acme"]).await?;
    kubectl.run(&["delete", "clusterproviders.emco.io", "acme", "--wait=false"]).await?;
    wait_until_gone(Api::<ClusterProvider>::all(bed.hub().client().await?), "acme", SOON).await?;
    let bindings = kubectl.run(&["get", "rolebindings", "-A", "-o", "name"]).await?;
    assert_eq!(
        bindings.matches("/emco-operator\n").count(),
        1,
        "only its own namespace's is left: {bindings}"
    );
    Ok(())
}

/// Nothing is left of the manifests of what is gone.
pub async fn packs_are_collected(bed: &Bed) -> Result<()> {
    let deadline = Instant::now() + SOON;
    let args = ["get", "configmaps,secrets", "-n", "emco-system", "-l", "emco.io/owner", "-o", "name"];
    loop {
        let left = bed.hub().kubectl().run(&args).await?;
        if left.trim().is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "packs that nobody names are still there: {left}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
