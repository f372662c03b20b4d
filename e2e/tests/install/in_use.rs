//! In: the chart with `policies.refuseDeletionInUse`. Out: what is in use cannot be deleted, what is not can, and a namespace goes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::{ClusterProvider, Project};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, ours, project, wait_in};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::Value;

use super::upgrade;

/// What is deployed in `held`, and what nobody uses.
const MORE: &str = "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: till, namespace: held}
spec: {apps: [{app: note, values: {key: profile}}]}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: spare, namespace: held}
spec: {apps: [{app: note, values: {key: profile}}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: till, namespace: held}
spec: {actions: [{name: more, app: note, type: Add, add: {inline: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}}}]}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: spare, namespace: held}
spec: {actions: []}
---
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: till, namespace: held}
spec: {consumers: []}
---
apiVersion: emco.io/v1alpha1
kind: HardwareIntent
metadata: {name: spare, namespace: held}
spec: {consumers: []}
---
apiVersion: emco.io/v1alpha1
kind: TrafficGroupIntent
metadata: {name: spare, namespace: held}
spec: {servers: [{name: web, app: note, clients: [{name: office, cidrs: [10.1.0.0/16]}]}]}
---
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {name: spare, namespace: held}
spec: {apps: [{name: note, chart: {configMapRef: {name: charts, key: note-1.0.0.tgz}}}]}
---
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: spare, namespace: held}
spec: {level: Standard}
---
apiVersion: v1
kind: Namespace
metadata: {name: spare, labels: {emco.io/provider: spare}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: spare}
spec: {grants: []}
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: spare, namespace: spare}
spec: {access: {kubeconfigSecretRef: {name: nowhere}}}
";

/// Everything of one deployment that something else needs, and by what.
const USED: [(&[&str], &str); 9] = [
    (&["clusters.emco.io", "a", "-n", "acme"], "DeploymentIntentGroup/held/till, and perhaps by others"),
    (&["clusterproviders.emco.io", "acme"], "Cluster/acme/a"),
    (&["clusterproviders.emco.io", "spare"], "Cluster/spare/spare"),
    (&["projects.emco.io", "held"], "DeploymentIntentGroup/held/till"),
    (&["logicalclouds.emco.io", "default", "-n", "held"], "DeploymentIntentGroup/held/till"),
    (&["compositeapps.emco.io", "till", "-n", "held"], "DeploymentIntentGroup/held/till"),
    (&["compositeprofiles.emco.io", "till", "-n", "held"], "DeploymentIntentGroup/held/till"),
    (&["genericactionintents.emco.io", "till", "-n", "held"], "DeploymentIntentGroup/held/till"),
    (&["hardwareintents.emco.io", "till", "-n", "held"], "DeploymentIntentGroup/held/till"),
];

const POLICY: [&str; 2] = ["get", "validatingadmissionpolicies.admissionregistration.k8s.io"];

/// At length, for every kind: that a Cluster in use stays is seen in each run, when an installation is removed.
mod soak {
    use std::collections::BTreeSet;

    use emco_e2e::bed::Bed;
    use emco_e2e::operator::{Operator, as_account, program, register};

    use crate::{bed, install, rights};

    #[tokio::test]
    async fn nothing_that_is_in_use_can_be_deleted_where_the_chart_says_so() {
        let bed = Bed::start(bed()).await.unwrap();
        bed.explain(Box::pin(async {
            let told = install(&bed).await?;
            let operator = Operator::start_as(&bed, &program()?, as_account(&bed).await?, told).await?;
            register(&bed, "acme", &["a"]).await?;
            super::deletion_is_refused(&bed).await?;
            operator.kill().await?;
            let events = rights::everything_asked(&bed, &["syncshards", "projects", "namespaces"]).await?;
            assert_eq!(rights::refused(&events), BTreeSet::new(), "rights that are missing");
            Ok(())
        }))
        .await;
    }
}

async fn deletion_is_refused(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    project(bed, "held").await?;
    let note =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {key: {{ .Values.key | quote }}}\n";
    let charts = [chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", note)])?];
    chart_map(bed, "held", "charts", &charts).await?;
    kubectl.apply(MORE).await?;
    let spec = "placement: {allOf: [{provider: acme, cluster: a}]}\ncompositeProfileRef: {name: till}\nintents: [{kind: GenericActionIntent, name: till}, {kind: HardwareIntent, name: till}]";
    kubectl.apply(&deployment("held", "till", &charts, spec)).await?;
    deployed(bed, "held", "till", 1).await?;
    upgrade(bed, "policies.refuseDeletionInUse=true").await?;

    for (object, holders) in USED {
        let wait = ["--for=jsonpath={.status.inUse}", "--timeout=60s"];
        kubectl.run(&[&["wait"], object, &wait].concat()).await?;
        in_force(bed, object).await?;
        let refused = kubectl.output(&[&["delete"], object, &["--wait=false"]].concat(), "").await?;
        ensure!(!refused.is_ok(), "{object:?} was deleted: {}", refused.stdout);
        let said = format!("it is used by {holders}");
        ensure!(
            refused.stderr.contains(&said) && refused.stderr.contains("Delete them first"),
            "{}",
            refused.stderr
        );
    }
    the_api_server_understands_all_policies(bed).await?;
    // An object made of many, as a controller deletes a collection, is refused as well.
    let refused = kubectl.output(&["delete", "capp", "-n", "held", "--all", "--dry-run=server"], "").await?;
    ensure!(!refused.is_ok() && refused.stderr.contains("it is used by"), "{}", refused.stderr);
    for kind in [
        "compositeapps.emco.io",
        "compositeprofiles.emco.io",
        "genericactionintents.emco.io",
        "hardwareintents.emco.io",
        "trafficgroupintents.emco.io",
        "logicalclouds.emco.io",
    ] {
        kubectl.run(&["delete", kind, "spare", "-n", "held"]).await?;
    }
    kubectl.run(&["delete", "clusters.emco.io", "spare", "-n", "spare"]).await?;
    let providers = Api::<ClusterProvider>::all(bed.hub().client().await?);
    wait_in(providers.clone(), "spare", |provider: &ClusterProvider| {
        let used = provider.status.as_ref().and_then(|status| status.in_use.as_ref());
        used.map_or(Ok(()), |used| Err(format!("{used:?}")))
    })
    .await?;
    kubectl.run(&["delete", "clusterproviders.emco.io", "spare", "--wait=false"]).await?;
    wait_until_gone(providers, "spare", SOON).await?;

    // Whoever empties the namespace is not refused: finalizers hold what has to wait.
    kubectl.run(&["delete", "namespace", "held", "--wait=false"]).await?;
    wait_until_gone(Api::<Namespace>::all(bed.hub().client().await?), "held", SOON).await?;
    ensure!(ours(bed, "a", "configmaps", None).await?.is_empty(), "something is left on the edge");
    let projects = Api::<Project>::all(bed.hub().client().await?);
    wait_in(projects.clone(), "held", |project: &Project| {
        let used = project.status.as_ref().and_then(|status| status.in_use.as_ref());
        used.map_or(Ok(()), |used| Err(format!("{used:?}")))
    })
    .await?;
    kubectl.run(&["delete", "projects.emco.io", "held", "--wait=false"]).await?;
    wait_until_gone(projects, "held", SOON).await?;
    upgrade(bed, "policies.refuseDeletionInUse=false").await
}

/// Waits until the API server has read the new policy.
pub async fn in_force(bed: &Bed, object: &[&str]) -> Result<()> {
    let args = [&["delete"], object, &["--dry-run=server"]].concat();
    bed.hub().kubectl().until(&args, "", false).await
}

/// No expression of any policy names a field that a kind does not have.
pub async fn the_api_server_understands_all_policies(bed: &Bed) -> Result<()> {
    let deadline = Instant::now() + SOON;
    loop {
        let list: Value =
            serde_json::from_str(&bed.hub().kubectl().run(&[&POLICY[..], &["-o", "json"]].concat()).await?)?;
        let policies: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        ensure!(policies.len() == 9, "{} policies", policies.len());
        let read =
            |policy: &&Value| policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        if policies.iter().all(read) {
            for policy in policies {
                let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
                ensure!(warnings.is_null(), "{}: {warnings}", policy["metadata"]["name"]);
            }
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "nobody has checked the policies");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
