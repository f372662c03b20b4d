//! Old objects that go first.

use anyhow::ensure;
use emco_e2e::operator::{chart, deployed};

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
