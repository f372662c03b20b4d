//! Packages the charts that are deployed: one of 20 objects, and one as large as those of monitoring stacks.

use anyhow::Result;
use emco_e2e::operator;
use emco_e2e::package::Package;

/// The small chart and its app.
pub const WEB: &str = "web";
/// The large chart and its app.
pub const LARGE: &str = "large";

const VALUES: &str = "version: \"0\"\nreplicaCount: 2\ndisk: \"\"\n";
const SCHEMA: &str =
    r#"{"type": "object", "properties": {"replicaCount": {"type": "integer", "minimum": 0}}}"#;
/// Eight objects of eight kinds.
const KINDS: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}-web}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-login}
stringData: {user: web, password: not-a-secret}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}-web}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}-web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Release.Name }}-web}
subjects: [{kind: ServiceAccount, name: {{ .Release.Name }}-web, namespace: {{ .Release.Namespace }}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: {{ .Release.Name }}-web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: {{ .Release.Name }}-web}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: {{ .Release.Name }}-web}
spec: {podSelector: {matchLabels: {app: {{ .Release.Name }}-web}}, ingress: [{ports: [{port: 80}]}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: {{ .Release.Name }}-report}
spec:
  schedule: "0 4 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: report, image: registry.example.com/report:1.0.0}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-version}
data: {version: {{ .Values.version | quote }}}
"#;
/// Three workloads; the first one is rolled out by each edit.
const WORKLOADS: &str = r#"
{{- range list "web" "worker" "cache" }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $.Release.Name }}-{{ . }}}
spec:
  replicas: {{ if eq . "web" }}{{ $.Values.replicaCount }}{{ else }}1{{ end }}
  selector: {matchLabels: {app: {{ $.Release.Name }}-{{ . }}}}
  template:
    metadata:
      labels: {app: {{ $.Release.Name }}-{{ . }}}
      {{- if eq . "web" }}
      annotations: {version: {{ $.Values.version | quote }}}
      {{- end }}
    spec:
      {{- if and $.Values.disk (eq . "web") }}
      nodeSelector: {disk: {{ $.Values.disk | quote }}}
      {{- end }}
      containers:
      - name: main
        image: registry.example.com/{{ . }}:1.0.0
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 64Mi}}
{{- end }}
{{- range until 4 }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ $.Release.Name }}-{{ . }}}
spec: {selector: {app: {{ $.Release.Name }}-web}, ports: [{name: http, port: 80, targetPort: http}]}
{{- end }}
{{- range until 5 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-settings-{{ . }}}
data: {number: "{{ . }}"}
{{- end }}
"#;

/// Twenty objects of ten kinds. `version` rolls a workload out, `replicaCount` must be a number, and a `disk` is on no node.
pub fn web() -> Result<Package> {
    let files = [
        ("values.yaml", VALUES),
        ("values.schema.json", SCHEMA),
        ("templates/kinds.yaml", KINDS),
        ("templates/workloads.yaml", WORKLOADS),
    ];
    operator::chart(WEB, "1.0.0", &files)
}

const LARGE_VALUES: &str = "services: 40\nsettings: 40\ndashboards: 12\n";
const LARGE_OBJECTS: &str = r#"
{{- range until (int .Values.services) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $.Release.Name }}-{{ . }}
  labels: {app.kubernetes.io/name: large, app.kubernetes.io/instance: {{ $.Release.Name }}, number: "{{ . }}"}
spec: {selector: {app: {{ $.Release.Name }}-{{ . }}}, ports: [{name: http, port: 80, targetPort: http}]}
{{- end }}
{{- range until (int .Values.settings) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-settings-{{ . }}}
data:
  settings.yaml: |
{{- range until 40 }}
    - {name: setting-{{ . }}, value: {{ . }}, help: a setting among others of the program}
{{- end }}
{{- end }}
{{- range $path, $bytes := .Files.Glob "dashboards/*.json" }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ base $path | trimSuffix ".json" }}}
data:
  dashboard.json: |
{{ $bytes | toString | indent 4 }}
{{- end }}
{{- range list "server" "agent" }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $.Release.Name }}-{{ . }}}
spec:
  selector: {matchLabels: {app: {{ $.Release.Name }}-{{ . }}}}
  template:
    metadata: {labels: {app: {{ $.Release.Name }}-{{ . }}}}
    spec: {containers: [{name: main, image: registry.example.com/{{ . }}:1.0.0}]}
{{- end }}
"#;
/// Objects of the large chart.
pub const LARGE_NUMBER: i64 = 94;
/// Lines of one dashboard: 50 KB.
const DASHBOARD: usize = 500;

/// 94 objects of 0.8 MB together, most of it in 12 dashboards: the size of a large publisher's monitoring stack.
pub fn large() -> Result<Package> {
    let dashboards: Vec<(String, String)> = (0..12)
        .map(|number| {
            let panel = |row: usize| format!(
                "{{\"id\": {row}, \"title\": \"panel {row} of {number}\", \"expr\": \"sum(rate(requests_total{{row=\\\"{row}\\\"}}[5m])) by (code)\"}}"
            );
            let panels: Vec<String> = (0..DASHBOARD).map(panel).collect();
            (format!("dashboards/dashboard-{number}.json"), format!("[\n{}\n]\n", panels.join(",\n")))
        })
        .collect();
    let mut files = vec![("values.yaml", LARGE_VALUES), ("templates/large.yaml", LARGE_OBJECTS)];
    files.extend(dashboards.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    operator::chart(LARGE, "1.0.0", &files)
}
