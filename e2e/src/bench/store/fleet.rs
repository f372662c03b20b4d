//! Writes the YAML of an administrator and a tenant for a number of clusters.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_e2e::operator::chart;
use serde_json::json;

pub const PROVIDER: &str = "acme";
pub const PROJECT: &str = "shop";
pub const DEPLOYMENT: &str = "shop";

pub fn cluster(number: usize) -> String {
    format!("edge-{number:04}")
}

/// Twenty objects of the usual kinds; two of them differ per cluster, one by a password.
fn template() -> String {
    let mut all = String::from(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: {{ randAlphaNum 32 | quote }}}\n",
    );
    for n in 0..19 {
        let site = if n == 0 { "{{ .Values.site | quote }}" } else { "everywhere" };
        all.push_str(&format!(
            "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-{n}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web-{n}}}}}
  template:
    metadata: {{labels: {{app: web-{n}}}}}
    spec:
      containers:
      - name: web
        image: registry.example.com/shop/web:1.0.{n}
        env: [{{name: SITE, value: {site}}}, {{name: MODE, value: production}}]
        resources: {{requests: {{cpu: 100m, memory: 64Mi}}, limits: {{memory: 128Mi}}}}
        readinessProbe: {{httpGet: {{path: /ready, port: 8080}}, periodSeconds: 5}}
"
        ));
    }
    all
}

/// Everything but the deployment.
pub fn objects(clusters: usize) -> Result<String> {
    let package =
        chart("web", "1.0.0", &[("values.yaml", "site: none\n"), ("templates/web.yaml", &template())])?;
    let emco = |kind: &str, namespace: Option<&str>, name: &str, spec: serde_json::Value| json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    let namespace = |name: &str, labels: serde_json::Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let mut all = vec![
        namespace("emco-system", json!({})),
        namespace(PROVIDER, json!({"emco.io/provider": PROVIDER})),
        namespace(PROJECT, json!({"emco.io/project": PROJECT})),
        emco(
            "ClusterProvider",
            None,
            PROVIDER,
            json!({"grants": [{"name": "all", "projects": [PROJECT], "maxLevel": "Admin"}]}),
        ),
        emco(
            "Project",
            None,
            PROJECT,
            json!({"limits": {"deploymentIntentGroups": 10_000, "totalStoredBytes": "64Gi"}}),
        ),
        emco(
            "LogicalCloud",
            Some(PROJECT),
            "default",
            json!({"level": "Admin", "clusters": [{"provider": PROVIDER, "selector": {}}]}),
        ),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": PROJECT},
            "binaryData": {"web.tgz": STANDARD.encode(&package.bytes)}}),
        emco(
            "CompositeApp",
            Some(PROJECT),
            "shop",
            json!({"apps": [{"name": "web", "chart": {"configMapRef": {"name": "charts", "key": "web.tgz"}}}]}),
        ),
    ];
    let access = json!({"access": {"kubeconfigSecretRef": {"name": "none"}}});
    all.extend((0..clusters).map(|n| emco("Cluster", Some(PROVIDER), &cluster(n), access.clone())));
    Ok(all.iter().map(|object| format!("---\n{object}\n")).collect())
}

/// The deployment on all of them; each number has other values.
pub fn deployment(number: usize) -> String {
    let values = json!({"site": format!("{{{{cluster.name}}}}-v{number}")});
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": DEPLOYMENT, "namespace": PROJECT, "finalizers": ["emco.io/terminate"]},
        "spec": {
            "compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]},
            "overrideValues": [{"app": "web", "templating": "Handlebars", "values": values}],
        },
    })
    .to_string()
}
