//! Old objects that go first, or before the new ones are ready.

use anyhow::ensure;
use emco_crds::DeploymentIntentGroup;
use emco_e2e::operator::{SOON, chart, deployed, wait};
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{deploy, fails, has, start, writes};

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.name }}
  {{- if .Values.hold }}
  finalizers: [example.com/hold]
  {{- end }}
data: {say: hello}
";

#[tokio::test]
async fn nothing_new_comes_before_what_must_go_first_is_gone() {
    let note =
        chart("web", "1.0.0", &[("values.yaml", "name: old\nhold: false\n"), ("templates/note.yaml", NOTE)])
            .unwrap();
    let bed = start("first", &note).await.unwrap();
    bed.explain(async {
        deploy(bed, "first", &note, "{name: old, hold: true}", "{prune: Before}").await?;
        deployed(bed, "first", "shop", 1).await?;
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "first", &note, "{name: new}", "{prune: Before}").await?;
        let message = fails(bed, "first", "BlockedByPrune").await?;
        has(&message, &["ConfigMap/first/old", "example.com/hold", "spec.sync.prune: Before"])?;
        let before = writes(bed, "first", mark)?;
        ensure!(before == ["delete configmaps old"], "{before:?}");
        let free = [
            "patch",
            "cm",
            "old",
            "-n",
            "first",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ];
        bed.edge("a").kubectl().run(&free).await?;
        deployed(bed, "first", "shop", 2).await?;
        let all = writes(bed, "first", mark)?;
        ensure!(all == ["delete configmaps old", "patch configmaps new"], "{all:?}");
        Ok(())
    })
    .await;
}

/// Its Pod fits on no node.
const STUCK: &str = "
{{- if .Values.stuck }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec:
      nodeSelector: {example.com/rack: nowhere}
      containers: [{name: web, image: example.com/web}]
{{- end }}
";

#[tokio::test]
async fn old_objects_go_once_the_new_ones_are_applied_ready_or_not() {
    let values = "name: old\nhold: false\nstuck: false\n";
    let files = [("values.yaml", values), ("templates/note.yaml", NOTE), ("templates/stuck.yaml", STUCK)];
    let note = chart("web", "1.0.0", &files).unwrap();
    let bed = start("applied", &note).await.unwrap();
    bed.explain(async {
        deploy(bed, "applied", &note, "{name: old}", "{}").await?;
        deployed(bed, "applied", "shop", 1).await?;
        deploy(bed, "applied", &note, "{name: new, stuck: true}", "{}").await?;
        let notes = bed.edge("a").api::<ConfigMap>("applied").await?;
        wait_for_object(notes.clone(), "new", SOON, |_| true).await?;
        wait(bed, "applied", "shop", |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref();
            let counts = status.and_then(|status| Some((status.deployed.as_ref()?, status.ready.as_ref()?)));
            match counts {
                Some((deployed, ready)) if (deployed.applied, ready.not_ready) == (2, 1) => Ok(()),
                _ => Err(format!("{counts:?}")),
            }
        })
        .await?;
        ensure!(notes.get_opt("old").await?.is_some(), "its successor is not ready");
        deploy(bed, "applied", &note, "{name: new, stuck: true}", "{prune: AfterApply}").await?;
        wait_until_gone(notes, "old", SOON).await
    })
    .await;
}
