//! Makes the same objects as a chart for the operator and as JSON for a client that applies them itself.
//!
//! Half of them ConfigMaps, a quarter Services, a quarter Deployments, 0.6 to 1.3 KB each, as applications have them.

use anyhow::Result;
use emco_e2e::operator;
use emco_e2e::package::Package;
use serde_json::{Value, json};

/// The app, its chart and the release: objects are called `mix-0`, `mix-1` and so on, and what is added `mix-extra-1`.
pub const APP: &str = "mix";

/// The object `number` of `prefix`.
pub fn object(prefix: &str, number: usize) -> Value {
    let name = format!("{prefix}-{number}");
    let labels = json!({
        "app.kubernetes.io/name": APP, "app.kubernetes.io/instance": prefix, "app.kubernetes.io/component": name,
        "app.kubernetes.io/part-of": "bench", "app.kubernetes.io/managed-by": "Helm",
    });
    let metadata = json!({"name": name, "labels": labels});
    match number % 4 {
        0 | 2 => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"number": number.to_string(), "settings.yaml": format!("level: info\nname: {name}\n").repeat(12)}}),
        1 => json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"type": "ClusterIP", "selector": {"app.kubernetes.io/component": name},
                "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
                    {"name": "metrics", "port": 9090, "targetPort": "metrics", "protocol": "TCP"}]}}),
        _ => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app.kubernetes.io/component": name}},
                "template": {"metadata": {"labels": {"app.kubernetes.io/component": name}}, "spec": {"containers": [{
                    "name": "main", "image": "registry.example.com/mix:1.0.0", "imagePullPolicy": "IfNotPresent",
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": "NUMBER", "value": number.to_string()}],
                    "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}}}]}}}}),
    }
}

/// A chart of `objects` of these. The value `extra` adds so many small ConfigMaps.
pub fn chart(objects: usize) -> Result<Package> {
    let documents: String =
        (0..objects).map(|number| format!("---\n{}\n", object("{{ .Release.Name }}", number))).collect();
    let extra = r"{{- range until (int .Values.extra) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-extra-{{ add1 . }}}
data: {number: {{ . | quote }}}
{{- end }}
";
    let files = [
        ("templates/mix.yaml", documents.as_str()),
        ("templates/extra.yaml", extra),
        ("values.yaml", "extra: 0\n"),
    ];
    operator::chart(APP, "1.0.0", &files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_as_large_as_those_of_applications() {
        let sizes: Vec<usize> = (0..200).map(|number| object("mix", number).to_string().len()).collect();
        assert!(sizes.iter().all(|size| (450..1400).contains(size)), "{sizes:?}");
    }
}
