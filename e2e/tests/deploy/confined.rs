//! Confines the pods of a logical cloud on real clusters: what these refuse, what is put back, and what others keep.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::fields::Failing;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployment, is, wait};
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;

use super::{AT_WORK, EVERYWHERE, start};

const SPACE: &str = "confined";
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: {{ .Release.Name }}}
spec:
  {{- with .Values.hostNetwork }}
  hostNetwork: {{ . }}
  {{- end }}
  containers: [{name: web, image: example.com/web}]
";
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

fn cloud(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: {name}, namespace: {SPACE}}}, \
         spec: {{level: Admin, namespace: {namespace}{more}}}}}"
    )
}

async fn namespaces(bed: &Bed, edge: &str) -> Result<Api<Namespace>> {
    Ok(Api::all(bed.edge(edge).client().await?))
}

#[tokio::test]
async fn pods_beyond_the_standard_are_refused_by_the_clusters() {
    let _working = AT_WORK.read().await;
    let files = [("values.yaml", "hostNetwork: false\n"), ("templates/pod.yaml", POD)];
    let web = chart("web", "1.0.0", &files).unwrap();
    let bed = start(SPACE, std::slice::from_ref(&web)).await.unwrap();
    bed.explain(async {
        let hub = bed.hub().kubectl();
        let ready = |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True");
        let says = |rows: &[Failing], cluster: &str, words: &str| {
            let told = |row: &&Failing| row.cluster == cluster && row.message.contains(words);
            if rows.iter().any(|row| told(&row)) { Ok(()) } else { Err(format!("{rows:?}")) }
        };
        hub.apply(&cloud("strict", "confined-pods", ", podSecurity: Baseline, isolation: DefaultDeny")).await?;
        wait(bed, SPACE, "strict", ready).await?;
        for edge in ["a", "b"] {
            let policies = bed.edge(edge).api::<NetworkPolicy>("confined-pods").await?;
            let spec = policies.get("emco-isolation").await?.spec.context("no spec")?;
            ensure!(spec.policy_types.as_deref() == Some(&["Ingress".to_owned()]), "{spec:?}");
        }
        let deploy = async |host: bool| {
            let spec = format!(
                "{EVERYWHERE}\nlogicalCloudRef: {{name: strict}}\noverrideValues: [{{app: web, values: {{hostNetwork: {host}}}}}]"
            );
            hub.apply(&deployment(SPACE, "shop", std::slice::from_ref(&web), &spec)).await
        };
        deploy(true).await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            says(rows, "acme/b", "violates PodSecurity \"baseline")
        })
        .await?;
        deploy(false).await?;
        let pods = bed.edge("b").api::<Pod>("confined-pods").await?;
        wait_for_object(pods, "shop", SOON, |_| true).await?;

        // A label that opens the namespace is set back, and the policy comes back.
        let edge = bed.edge("a");
        let label = format!("{ENFORCE}=privileged");
        edge.kubectl().run(&["label", "namespace", "confined-pods", &label, "--overwrite"]).await?;
        edge.kubectl().run(&["delete", "networkpolicy", "emco-isolation", "-n", "confined-pods"]).await?;
        let enforced = |namespace: &Namespace| namespace.metadata.labels.as_ref()?.get(ENFORCE).cloned();
        let back = |namespace: &Namespace| enforced(namespace).as_deref() == Some("baseline");
        wait_for_object(namespaces(bed, "a").await?, "confined-pods", SOON, back).await?;
        let policies = edge.api::<NetworkPolicy>("confined-pods").await?;
        wait_for_object(policies, "emco-isolation", SOON, |_| true).await?;

        // A namespace that was there before keeps what it allows, and the cloud says so.
        edge.kubectl().run(&["create", "namespace", "theirs"]).await?;
        hub.apply(&cloud("late", "theirs", ", podSecurity: Restricted")).await?;
        wait(bed, SPACE, "late", |cloud: &LogicalCloud| {
            let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            says(rows, "acme/a", "nothing on it says that EMCO made it")
        })
        .await?;
        let theirs = namespaces(bed, "a").await?.get("theirs").await?;
        ensure!(enforced(&theirs).is_none(), "{:?}", theirs.metadata.labels);

        for cloud in ["late", "strict"] {
            if cloud == "strict" {
                hub.run(&["delete", "dig", "shop", "-n", SPACE, "--wait=false"]).await?;
            }
            hub.run(&["delete", "lc", cloud, "-n", SPACE, "--wait=false"]).await?;
            wait_until_gone(bed.hub().api::<LogicalCloud>(SPACE).await?, cloud, SOON).await?;
        }
        ensure!(namespaces(bed, "a").await?.get_opt("theirs").await?.is_some(), "it was theirs");
        wait_until_gone(namespaces(bed, "a").await?, "confined-pods", SOON).await
    })
    .await;
}
