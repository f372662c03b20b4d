//! The project of the fleet, and what is deployed there.

use anyhow::Result;
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::fake_edges::{SITE, site};
use emco_e2e::operator::{self, is};
use serde_json::{Value, json};

/// Project, its namespace, application and deployment on all clusters.
pub const MANY: &str = "many";
/// Another deployment of it on all clusters.
pub const AGAIN: &str = "again";
/// That this one has on each cluster.
pub const OBJECTS: usize = 10;
/// Deployments beside it.
const SMALL: usize = 99;
/// Clusters of each of those: all of its site.
const ON: usize = 20;

/// Makes a project that may have more deployments than others.
pub async fn roomy(bed: &Bed, name: &str) -> Result<()> {
    operator::project(bed, name).await?;
    let limits = json!({"spec": {"limits": {"deploymentIntentGroups": 1000}}}).to_string();
    bed.hub()
        .kubectl()
        .run(&["patch", "projects.emco.io", name, "--type=merge", "-p", &limits])
        .await
        .map(drop)
}

/// Makes the project with its charts. Nothing is granted to it yet.
pub async fn project(bed: &Bed) -> Result<()> {
    roomy(bed, MANY).await?;
    let of = |count: usize| {
        format!(
            "{{{{- range until {count} }}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {{{{ $.Release.Name }}}}-{{{{ . }}}}}}
data: {{number: {{{{ . | quote }}}}, version: {{{{ $.Values.version | quote }}}}}}
{{{{- end }}}}
"
        )
    };
    let values = ("values.yaml", "version: none\n");
    let chart = |name: &str, objects: usize| {
        operator::chart(name, "1.0.0", &[values, ("templates/maps.yaml", of(objects).as_str())])
    };
    operator::chart_map(bed, MANY, MANY, &[chart("many", OBJECTS)?, chart("small", 1)?]).await
}

/// Deploys to all clusters, or changes what is deployed there.
pub async fn everywhere(bed: &Bed, name: &str, version: &str) -> Result<()> {
    operator::wait::<LogicalCloud, _>(bed, MANY, "default", |cloud| {
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await?;
    let values = json!([{"app": "maps", "values": {"version": version}}]);
    let spec = json!({"compositeAppRef": {"name": MANY}, "placement": {"allOf": [{"selector": {}}]},
        "overrideValues": values});
    let items = json!([composite_app(MANY, MANY, "many-1.0.0.tgz"), deployment(MANY, name, &spec)]);
    apply(bed, &items).await
}

/// Deploys many small applications, each to the clusters of one site, and waits until all are there.
pub async fn small_ones(bed: &Bed) -> Result<()> {
    let mut items = vec![composite_app(MANY, "small", "small-1.0.0.tgz")];
    items.extend((0..SMALL).map(|number| {
        let there = json!({"matchLabels": {SITE: site(number)}});
        let from = json!([{"count": ON, "from": [{"selector": there}]}]);
        let spec = json!({"compositeAppRef": {"name": "small"}, "placement": {"anyOf": from}});
        deployment(MANY, &small(number), &spec)
    }));
    apply(bed, &Value::Array(items)).await?;
    for number in 0..SMALL {
        operator::deployed_within(bed, MANY, &small(number), 1, super::PATIENCE).await?;
    }
    Ok(())
}

fn small(number: usize) -> String {
    format!("small-{number:02}")
}

/// An application of one chart.
pub fn composite_app(namespace: &str, name: &str, file: &str) -> Value {
    let chart = json!({"configMapRef": {"name": namespace, "key": file}});
    json!({"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"apps": [{"name": "maps", "chart": chart}]}})
}

/// A deployment.
pub fn deployment(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// Applies a list of objects on the hub.
pub async fn apply(bed: &Bed, items: &Value) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    bed.hub().kubectl().apply(&list).await.map(drop)
}
