//! In: everything that a project and a provider have, deleted in orders that nobody planned. Out: clean edges, no inventory that
//! was forgotten, nothing touched that is not ours.

mod order;
mod provider;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec};
use emco_e2e::operator::{SOON, SharedOperator, chart, chart_map, deployed, deployment, ours, project};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_some;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::ListParams;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Nothing runs on these edges: what is deployed here is ready when it is there. Each test registers them under a provider of its
/// own, and takes them back.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name| PlaneSpec::light(name, &[]).audit(Audit::Writes).proxied();
        BedSpec::default().with(PlaneSpec::light("hub", &[])).with(edge("a")).with(edge("b"))
    },
    &[],
);

const EDGES: [&str; 2] = ["a", "b"];
const KINDS: &str = "configmaps,secrets,serviceaccounts,namespaces";
const THINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {say: {{ .Values.say | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.say | quote }}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}-account}
";

fn web() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/things.yaml", THINGS)])
}

fn placed(provider: &str, say: &str) -> String {
    format!(
        "placement: {{allOf: [{{provider: {provider}, selector: {{matchLabels: {{tier: edge}}}}}}]}}\n\
         overrideValues: [{{app: web, values: {{say: {say}}}}}]"
    )
}

/// A project with two deployments on both edges.
async fn populate(bed: &Bed, provider: &str, tenant: &str) -> Result<()> {
    project(bed, tenant).await?;
    chart_map(bed, tenant, "charts", &[web()?]).await?;
    for name in ["shop", "till"] {
        bed.hub().kubectl().apply(&deployment(tenant, name, &[web()?], &placed(provider, "one"))).await?;
    }
    for name in ["shop", "till"] {
        deployed(bed, tenant, name, 1).await?;
    }
    Ok(())
}

/// What is somebody else's on an edge, some of it in the project's own namespace there.
async fn strangers(bed: &Bed, edge: &str, tenant: &str) -> Result<()> {
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("not-{tenant}")}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": format!("not-{tenant}")}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another-hubs", "namespace": format!("not-{tenant}"),
            "labels": {"emco.io/owner": "00000000000000000000000000000000"}}}),
    ];
    if edge == "a" {
        all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": tenant}}));
    }
    let yaml: String = all.iter().map(|object| format!("---\n{object}\n")).collect();
    bed.edge(edge).kubectl().apply(&yaml).await.map(drop)
}

/// What `strangers` made, with versions: written to, it would have another.
async fn untouched(bed: &Bed, edge: &str, tenant: &str) -> Result<Value> {
    let client = bed.edge(edge).client().await?;
    let mut all = Vec::new();
    for namespace in [tenant.to_owned(), format!("not-{tenant}")] {
        let maps = versions::<ConfigMap>(&client, &namespace).await?;
        let secrets = versions::<Secret>(&client, &namespace).await?;
        all.push(json!([namespace, maps, secrets]));
    }
    Ok(Value::from(all))
}

/// Of what `strangers` made of a kind in a namespace, by name.
async fn versions<K>(client: &Client, namespace: &str) -> Result<BTreeMap<String, Option<String>>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let list = Api::<K>::namespaced(client.clone(), namespace).list(&ListParams::default()).await?;
    let theirs =
        list.items.into_iter().filter(|o| ["theirs", "another-hubs"].contains(&o.name_any().as_str()));
    Ok(theirs.map(|object| (object.name_any(), object.resource_version())).collect())
}

/// Waits until nothing of ours is on an edge, and looks at all kinds.
async fn cleaned(bed: &Bed, edge: &str) -> Result<()> {
    without_deployments(bed, edge).await?;
    none_of::<Namespace>(bed, edge).await?;
    let left: Vec<_> =
        ours(bed, edge, KINDS, None).await?.into_iter().filter(|name| !foreign(name)).collect();
    ensure!(left.is_empty(), "on {edge}: {left:?}");
    Ok(())
}

/// Waits until nothing is left there that deployments made.
async fn without_deployments(bed: &Bed, edge: &str) -> Result<()> {
    none_of::<ConfigMap>(bed, edge).await?;
    none_of::<Secret>(bed, edge).await?;
    none_of::<ServiceAccount>(bed, edge).await
}

fn foreign(name: &str) -> bool {
    name.ends_with("/another-hubs")
}

async fn none_of<K>(bed: &Bed, edge: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<K> = Api::all(bed.edge(edge).client().await?);
    let what = format!("the end of what is ours on {edge}, {}s", K::kind(&()));
    wait_for_some(api, Config::default().labels("emco.io/owner"), SOON, &what, |objects| {
        let left: Vec<_> = objects.keys().filter(|name| !foreign(name)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
}
