//! Fields that a real API server does not let anybody change.

use std::collections::BTreeMap;

use anyhow::ensure;
use emco_e2e::operator::{chart, deployed};
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use super::{deploy, fails, field, has, start, uid, writes};

const ALL: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web, tier: {{ .Values.tier }}}}
  template:
    metadata: {labels: {app: web, tier: {{ .Values.tier }}}}
    spec: {containers: [{name: web, image: example.com/web}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: load}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: load, image: "example.com/load:{{ .Values.tier }}"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  {{- if eq .Values.tier "two" }}
  clusterIP: None
  {{- end }}
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: typed}
spec:
  {{- if eq .Values.tier "one" }}
  clusterIP: None
  {{- else }}
  type: NodePort
  {{- end }}
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: out}
spec:
  {{- if eq .Values.tier "one" }}
  selector: {app: web}
  ports: [{port: 80}]
  {{- else }}
  type: ExternalName
  externalName: web.example.com
  {{- end }}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
type: example.com/{{ .Values.tier }}
stringData: {key: {{ .Values.tier }}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: {{ .Values.tier }}
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: updates-fast}
provisioner: example.com/disk
parameters: {tier: {{ .Values.tier }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Values.tier }}}
subjects: [{kind: ServiceAccount, name: default, namespace: {{ .Release.Namespace }}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
immutable: true
data: {tier: {{ .Values.tier }}}
"#;

/// The objects that cannot be changed, as kubectl and the audit log name them.
const OBJECTS: [(&str, &str); 8] = [
    ("deployments", "web"),
    ("jobs", "load"),
    ("services", "web"),
    ("services", "typed"),
    ("secrets", "key"),
    ("statefulsets", "db"),
    ("rolebindings", "web"),
    ("configmaps", "fixed"),
];

#[tokio::test]
async fn what_cannot_be_changed_is_made_again_and_volumes_stay() {
    let all = chart("web", "1.0.0", &[("values.yaml", "tier: one\n"), ("templates/all.yaml", ALL)]).unwrap();
    let bed = start("anew", &all).await.unwrap();
    bed.explain(async {
        deploy(bed, "anew", &all, "{tier: one}", "{}").await?;
        deployed(bed, "anew", "shop", 1).await?;
        let claims = bed.edge("a").api::<PersistentVolumeClaim>("anew").await?;
        wait_for_object(claims, "data-db-0", emco_e2e::operator::SOON, |_| true).await?;
        let mut before = BTreeMap::new();
        for (kind, name) in OBJECTS {
            before.insert((kind, name), uid(bed, "anew", &format!("{kind}/{name}")).await?);
        }
        let class = uid(bed, "anew", "storageclasses/updates-fast").await?;
        let claim = uid(bed, "anew", "pvc/data-db-0").await?;
        let out = uid(bed, "anew", "services/out").await?;
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "anew", &all, "{tier: two}", "{}").await?;
        let message = fails(bed, "anew", "ImmutableField").await?;
        has(&message, &["a field cannot be changed", "spec.sync.immutableFields: Recreate"])?;
        let deleted = |writes: &[String]| -> Vec<String> {
            let mut deleted: Vec<String> =
                writes.iter().filter(|w| w.starts_with("delete ")).cloned().collect();
            deleted.sort();
            deleted
        };
        ensure!(deleted(&writes(bed, "anew", mark)?).is_empty());
        deploy(bed, "anew", &all, "{tier: two}", "{immutableFields: Recreate}").await?;
        deployed(bed, "anew", "shop", 2).await?;
        for ((kind, name), before) in &before {
            let now = uid(bed, "anew", &format!("{kind}/{name}")).await?;
            ensure!(now != *before, "{kind}/{name} is the same object");
        }
        ensure!(uid(bed, "anew", "storageclasses/updates-fast").await? != class);
        ensure!(uid(bed, "anew", "pvc/data-db-0").await? == claim, "the claim was lost");
        ensure!(field(bed, "anew", "services/typed", "{.spec.type}").await? == "NodePort");
        // A type that the API server can change is changed in place.
        ensure!(field(bed, "anew", "services/out", "{.spec.type}").await? == "ExternalName");
        ensure!(uid(bed, "anew", "services/out").await? == out, "deleted without need");
        let mut wanted: Vec<String> =
            OBJECTS.iter().map(|(kind, name)| format!("delete {kind} {name}")).collect();
        wanted.sort();
        let deleted = deleted(&writes(bed, "anew", mark)?);
        ensure!(deleted == wanted, "each once: {deleted:?}");
        Ok(())
    })
    .await;
}

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [{{ .Values.mode }}]
  resources: {requests: {storage: {{ .Values.size }}}}
";

#[tokio::test]
async fn a_claim_is_never_made_again_and_says_why() {
    let values = "mode: ReadWriteOnce\nsize: 2Gi\n";
    let claim = chart("web", "1.0.0", &[("values.yaml", values), ("templates/claim.yaml", CLAIM)]).unwrap();
    let bed = start("claimed", &claim).await.unwrap();
    bed.explain(async {
        deploy(bed, "claimed", &claim, "{mode: ReadWriteOnce}", "{immutableFields: Recreate}").await?;
        let claims = bed.edge("a").api::<PersistentVolumeClaim>("claimed").await?;
        wait_for_object(claims, "data", emco_e2e::operator::SOON, |_| true).await?;
        let before = uid(bed, "claimed", "pvc/data").await?;
        for values in ["{mode: ReadWriteMany}", "{size: 1Gi}"] {
            deploy(bed, "claimed", &claim, values, "{immutableFields: Recreate}").await?;
            let message = fails(bed, "claimed", "ImmutableField").await?;
            has(
                &message,
                &["PersistentVolumeClaim/claimed/data", "never made anew, for its data would be lost"],
            )?;
            ensure!(uid(bed, "claimed", "pvc/data").await? == before);
            // Taken back, the deployment is well again.
            deploy(bed, "claimed", &claim, "{mode: ReadWriteOnce}", "{immutableFields: Recreate}").await?;
            super::well(bed, "claimed").await?;
        }
        Ok(())
    })
    .await;
}
