//! Makes the hub's objects of an administrator and a tenant: provider, clusters, project, charts, deployment.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{Cluster, CompositeApp};
use serde_json::json;

use super::{is, refused, wait};
use crate::bed::Bed;
use crate::package::Package;

/// Makes a provider of its own namespace that grants everything to everyone.
pub async fn provider(bed: &Bed, name: &str) -> Result<()> {
    bed.hub()
        .kubectl()
        .apply(&format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/provider: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {{name: {name}}}
spec: {{grants: [{{name: everyone, projectSelector: {{}}, maxLevel: Admin}}]}}
"
        ))
        .await
        .map(drop)
}

/// Makes a provider that grants everything to everyone, and registers planes of the bed with it under their own names, each
/// with the labels `tier: edge` and `edge: NAME`.
pub async fn register(bed: &Bed, name: &str, edges: &[&str]) -> Result<()> {
    provider(bed, name).await?;
    let (kubectl, provider) = (bed.hub().kubectl(), name);
    for edge in edges {
        secret(bed, provider, edge, &bed.edge(edge).kubeconfig()?).await?;
        kubectl.apply(&cluster(provider, edge)).await?;
    }
    for edge in edges {
        wait::<Cluster, _>(bed, provider, edge, |cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
    }
    Ok(())
}

/// A Cluster whose kubeconfig is in the Secret `NAME-kubeconfig`, as YAML.
pub fn cluster(provider: &str, name: &str) -> String {
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {{name: {name}, namespace: {provider}, labels: {{tier: edge, edge: {name}}}}}
spec: {{access: {{kubeconfigSecretRef: {{name: {name}-kubeconfig}}}}}}
"
    )
}

/// Makes or changes the Secret `NAME-kubeconfig` of a cluster.
pub async fn secret(bed: &Bed, provider: &str, cluster: &str, kubeconfig: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{cluster}-kubeconfig"), "namespace": provider},
        "stringData": {"kubeconfig": kubeconfig},
    });
    bed.hub().kubectl().apply(&secret.to_string()).await.map(drop)
}

/// Makes a project of its own namespace, with the logical cloud `default` of level Admin.
pub async fn project(bed: &Bed, name: &str) -> Result<()> {
    bed.hub()
        .kubectl()
        .apply(&format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/project: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {name}}}
spec: {{logicalCloud: {{level: Admin}}}}
"
        ))
        .await
        .map(drop)
}

/// Packages a chart of these files; `Chart.yaml` is made from `name` and `version`.
pub fn chart(name: &str, version: &str, files: &[(&str, &str)]) -> Result<Package> {
    let dir = tempfile::tempdir().context("no folder for a chart")?;
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    for (path, text) in [("Chart.yaml", chart.as_str())].iter().chain(files) {
        let file = dir.path().join(path);
        let folder = file.parent().context("a file of a chart is in its folder")?;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Package::of_folder(dir.path())
}

/// Makes or replaces the ConfigMap `name` that holds packaged charts under their file names.
pub async fn chart_map(bed: &Bed, namespace: &str, name: &str, charts: &[Package]) -> Result<()> {
    let files = charts.iter().map(|chart| (chart.file_name(), chart.bytes.clone()));
    binary_map(bed, namespace, name, files.collect()).await
}

/// Makes or replaces a ConfigMap of any bytes.
pub async fn binary_map(
    bed: &Bed,
    namespace: &str,
    name: &str,
    data: BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    use base64::Engine as _;
    let encode = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
    let data: BTreeMap<_, _> = data.into_iter().map(|(key, bytes)| (key, encode(bytes))).collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "binaryData": data,
    });
    bed.hub().kubectl().apply(&map.to_string()).await.map(drop)
}

/// A CompositeApp and a DeploymentIntentGroup, both called `name`, as YAML: each chart of the ConfigMap `charts` is an app of
/// its own name. `spec` is what the group says beside them, in YAML without indentation, such as a placement.
pub fn deployment(namespace: &str, name: &str, charts: &[Package], spec: &str) -> String {
    let apps: String = charts
        .iter()
        .map(|chart| {
            let (app, key) = (&chart.name, chart.file_name());
            format!("  - {{name: {app}, chart: {{configMapRef: {{name: charts, key: {key}}}}}}}\n")
        })
        .collect();
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  apps:
{apps}---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  compositeAppRef: {{name: {name}}}
{spec}"
    )
}

/// Asks the operator to look at the sources of a CompositeApp again; `when` is any text that was not said before.
pub async fn look_again(bed: &Bed, namespace: &str, app: &str, when: &str) -> Result<()> {
    let request = format!("emco.io/requestedAt={when}");
    let args = ["annotate", "capp", app, "-n", namespace, "--overwrite", &request];
    bed.hub().kubectl().run(&args).await.map(drop)
}

/// The CompositeApp after the operator reconciled it once more for another reason: what it says then stays. One more deployment
/// named `other`, which no cluster matches, uses it from here on.
pub async fn reconciled_again(bed: &Bed, namespace: &str, app: &str, other: &str) -> Result<CompositeApp> {
    let group = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": other, "namespace": namespace},
        "spec": {
            "compositeAppRef": {"name": app},
            "placement": {"allOf": [{"provider": "acme", "selector": {"matchLabels": {"tier": "nowhere"}}}]},
        },
    });
    bed.hub().kubectl().apply(&group.to_string()).await?;
    wait(bed, namespace, app, |app: &CompositeApp| {
        let in_use = app.status.as_ref().and_then(|status| status.in_use.as_ref());
        let holder = format!("DeploymentIntentGroup/{namespace}/{other}");
        let named = in_use.is_some_and(|in_use| in_use.holders.contains(&holder));
        if named { Ok(app.clone()) } else { Err(format!("in use: {in_use:?}")) }
    })
    .await
}

/// As [`reconciled_again`]; an error unless the CompositeApp is still refused for `reason`.
pub async fn still_says(bed: &Bed, namespace: &str, app: &str, reason: &str) -> Result<()> {
    let again = reconciled_again(bed, namespace, app, &format!("{app}-again")).await?;
    refused(again.status.as_ref(), types::READY, reason).map(drop).map_err(anyhow::Error::msg)
}
