//! Unions of which a real API server filled in a member, beside Helm: the chart's next member takes its place, with one rollout.

use anyhow::ensure;
use emco_e2e::operator::{chart, deployed};

use super::beside::Beside;
use super::{deploy, field, start, uid};

/// Each object has one member of a union in the first step, and another in the second.
const ALL: &str = r#"
{{- range $name, $strategy := dict
  "silent" (dict "two" (dict "type" "Recreate"))
  "said" (dict "one" (dict "type" "RollingUpdate") "two" (dict "type" "Recreate"))
  "emptied" (dict "two" (dict "type" "Recreate" "rollingUpdate" nil)) }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $name }}}
spec:
  {{- with get $strategy $.Values.step }}
  strategy: {{ toJson . }}
  {{- end }}
  selector: {matchLabels: {app: {{ $name }}}}
  template:
    metadata: {labels: {app: {{ $name }}}}
    spec: {containers: [{name: web, image: example.com/web}]}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sources}
spec:
  selector: {matchLabels: {app: sources}}
  template:
    metadata: {labels: {app: sources}}
    spec:
      containers:
      - name: web
        image: example.com/web:{{ .Values.step }}
        {{- if eq .Values.step "one" }}
        env: [{name: WHO, value: me}]
        livenessProbe: {httpGet: {path: /, port: 80}}
        lifecycle: {preStop: {httpGet: {path: /, port: 80}}}
        {{- else }}
        env: [{name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        livenessProbe: {tcpSocket: {port: 80}}
        lifecycle: {preStop: {exec: {command: ["true"]}}}
        {{- end }}
      volumes:
      - name: work
        {{- if eq .Values.step "two" }}
        configMap: {name: work, optional: true}
        {{- end }}
---
apiVersion: v1
kind: Service
metadata: {name: typed}
spec:
  type: {{ if eq .Values.step "one" }}NodePort{{ else }}ClusterIP{{ end }}
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: of-nothing}
spec: {minAvailable: 1, selector: {matchLabels: {app: nothing}}}
"#;

/// Helm's patches leave here what is in the way, so that it fails.
const HERE_ALONE: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  {{- if eq .Values.step "two" }}
  updateStrategy: {type: OnDelete}
  {{- end }}
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db}]}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  {{- if eq .Values.step "one" }}
  sessionAffinity: ClientIP
  {{- end }}
  selector: {app: web}
  ports: [{port: 80}]
"#;

#[tokio::test]
async fn another_member_of_a_union_is_applied_as_with_helm() {
    let all = chart("web", "1.0.0", &[("values.yaml", "step: one\n"), ("templates/all.yaml", ALL)]).unwrap();
    let bed = start("unions", &all).await.unwrap();
    bed.explain(Box::pin(async {
        let beside = Beside::new(bed, "unions", &all).await?;
        for (step, revision) in [("one", 1), ("two", 2), ("one", 3)] {
            deploy(bed, "unions", &all, &format!("{{step: {step}}}"), "{}").await?;
            deployed(bed, "unions", "shop", revision).await?;
            beside.upgrade(&format!("step={step}")).await?;
            for name in ["silent", "said", "emptied"] {
                beside.agrees("unions", &format!("deploy/{name}"), &["{.spec.strategy}"]).await?;
            }
            let fields = ["{.spec.template.spec.volumes}", "{.spec.template.spec.containers}"];
            beside.agrees("unions", "deploy/sources", &fields).await?;
            beside.agrees("unions", "svc/typed", &["{.spec.type}"]).await?;
            // A change of the template is one rollout, and that of a strategy is none.
            let rollouts = [r"{.metadata.annotations.deployment\.kubernetes\.io/revision}"];
            for name in ["silent", "said", "emptied", "sources"] {
                beside.observed(name).await?;
                beside.agrees("unions", &format!("deploy/{name}"), &rollouts).await?;
            }
        }
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn what_is_filled_in_gives_way_also_where_helm_is_refused() {
    let files = [("values.yaml", "step: one\n"), ("templates/all.yaml", HERE_ALONE)];
    let all = chart("web", "1.0.0", &files).unwrap();
    let bed = start("sticky", &all).await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "sticky", &all, "{step: one}", "{}").await?;
        deployed(bed, "sticky", "shop", 1).await?;
        let before = [uid(bed, "sticky", "sts/db").await?, uid(bed, "sticky", "svc/sticky").await?];
        deploy(bed, "sticky", &all, "{step: two}", "{}").await?;
        deployed(bed, "sticky", "shop", 2).await?;
        ensure!(field(bed, "sticky", "sts/db", "{.spec.updateStrategy}").await? == r#"{"type":"OnDelete"}"#);
        ensure!(field(bed, "sticky", "svc/sticky", "{.spec.sessionAffinity}").await? == "None");
        ensure!(field(bed, "sticky", "svc/sticky", "{.spec.sessionAffinityConfig}").await?.is_empty());
        let after = [uid(bed, "sticky", "sts/db").await?, uid(bed, "sticky", "svc/sticky").await?];
        ensure!(before == after, "made anew without need");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_strategy_that_nobody_knows_is_refused_and_named() {
    let web = ALL.replace("\"Recreate\")", "\"BlueGreen\")");
    let files = [("values.yaml", "step: one\n"), ("templates/all.yaml", web.as_str())];
    let all = chart("web", "1.0.0", &files).unwrap();
    let bed = start("unknown", &all).await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "unknown", &all, "{step: one}", "{}").await?;
        deployed(bed, "unknown", "shop", 1).await?;
        deploy(bed, "unknown", &all, "{step: two}", "{}").await?;
        let message = super::fails(bed, "unknown", "Invalid").await?;
        super::has(&message, &["spec.strategy"])
    }))
    .await;
}
