//! What a tenant writes: two charts, a profile that reads a ConfigMap and a Secret, and a deployment of them.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rig::{cluster_object, emco, namespace, secret};

/// The tenant's namespace, and path of the kinds in it.
pub const TENANT: &str = "/apis/emco.io/v1alpha1/namespaces/team-a";

/// A ConfigMap with the page, and a Deployment.
pub const PAGE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {text: {{ .Values.page | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.com/web}
";
const OLD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
";
const HOOK: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: prepare, image: example.com/prepare}]
"#;
const STORE: &str = "
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: {{ .Values.key | quote }}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: example.com/db}
";

/// A packaged chart.
pub fn packed(name: &str, version: &str, files: &[(&str, &str)]) -> String {
    let mut tar = tar::Builder::new(Vec::new());
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    for (path, text) in [("Chart.yaml", chart.as_str())].iter().chain(files) {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("{name}/{path}"), text.as_bytes()).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar.into_inner().unwrap()).unwrap();
    STANDARD.encode(gzip.finish().unwrap())
}

/// The charts: `web` in two versions, of which the second has no ConfigMap `old` any more, and `db`.
pub fn charts() -> Value {
    let values = ("values.yaml", "page: none\nreplicas: 1\n");
    let (hook, page, old) =
        (("templates/hook.yaml", HOOK), ("templates/page.yaml", PAGE), ("templates/old.yaml", OLD));
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": "team-a"}, "binaryData": {
        "web-1.0.0.tgz": packed("web", "1.0.0", &[values, hook, page, old]),
        "web-1.1.0.tgz": packed("web", "1.1.0", &[values, hook, page]),
        "db-1.0.0.tgz": packed("db", "1.0.0", &[("templates/store.yaml", STORE)]),
    }})
}

pub fn composite_app(web: &str) -> Value {
    let chart = |key: &str| json!({"configMapRef": {"name": "charts", "key": key}});
    emco(
        "CompositeApp",
        Some("team-a"),
        "shop",
        &json!({"apps": [
            {"name": "web", "chart": chart(&format!("web-{web}.tgz"))},
            {"name": "db", "chart": chart("db-1.0.0.tgz")},
        ]}),
    )
}

fn profile() -> Value {
    emco(
        "CompositeProfile",
        Some("team-a"),
        "shop",
        &json!({"apps": [
            {"app": "web", "valuesFrom": [{"kind": "ConfigMap", "name": "values"}], "values": {"replicas": 2}},
            {"app": "db", "valuesFrom": [{"kind": "Secret", "name": "values"}]},
        ]}),
    )
}

/// Values of `web`, in the ConfigMap that the profile reads.
pub fn values(page: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": "team-a"},
        "data": {"values.yaml": format!("page: {page}\n")}})
}

fn hidden() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "values", "namespace": "team-a"},
        "data": {"values.yaml": STANDARD.encode("key: hidden\n")}})
}

/// The deployment: `web` where `tier` is this, `db` on one cluster with a fast disk.
pub fn deployment(tier: &str) -> Value {
    emco(
        "DeploymentIntentGroup",
        Some("team-a"),
        "shop",
        &json!({
            "compositeAppRef": {"name": "shop"}, "compositeProfileRef": {"name": "shop"},
            "logicalCloudRef": {"name": "default"},
            "placement": {
                "allOf": [{"selector": {"matchLabels": {"tier": tier}}}],
                "apps": [{"app": "db", "anyOf": [{"count": 1, "from": [{"selector": {"matchLabels": {"disk": "fast"}}}]}]}],
            },
        }),
    )
}

pub fn labelled(name: &str, labels: &Value) -> Value {
    let mut cluster = cluster_object(name);
    cluster["metadata"]["labels"] = labels.clone();
    cluster
}

/// What an administrator and a tenant write: a provider with the clusters `a` and `b`, a project, and the shop.
pub fn objects() -> Vec<Value> {
    let grants = json!({"grants": [{"name": "all", "projects": ["team-a"], "maxLevel": "Admin"}]});
    vec![
        namespace("acme", &json!({"emco.io/provider": "acme"})),
        namespace("team-a", &json!({"emco.io/project": "team-a"})),
        emco("ClusterProvider", None, "acme", &grants),
        secret("a"),
        secret("b"),
        labelled("a", &json!({"tier": "edge"})),
        labelled("b", &json!({"tier": "edge", "disk": "fast"})),
        emco("Project", None, "team-a", &json!({"logicalCloud": {"level": "Admin"}})),
        charts(),
        values("red"),
        hidden(),
        profile(),
        composite_app("1.0.0"),
        deployment("edge"),
    ]
}
