//! A chart that renders as an installation and fails as an upgrade.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::operator::{chart, deployed, deployment, says};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{AT_WORK, EVERYWHERE, start};

const NOTE: &str = r#"
{{- if and .Release.IsUpgrade (not .Values.token) }}
{{- fail "TOKEN ERROR: give the token in use: token" }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {size: {{ .Values.size | quote }}, token: {{ .Values.token | default "drawn" | quote }}}
"#;

#[tokio::test]
async fn a_chart_that_fails_only_on_upgrade_keeps_running_until_it_is_cured() {
    let _working = AT_WORK.read().await;
    let files = [("values.yaml", "size: 1\n"), ("templates/note.yaml", NOTE)];
    let note = chart("note", "1.0.0", &files).unwrap();
    let bed = start("failing-upgrade", std::slice::from_ref(&note)).await.unwrap();
    bed.explain(Box::pin(async {
        let deploy = async |values: &str| {
            let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{{values}}}}}]");
            let objects = deployment("failing-upgrade", "shop", std::slice::from_ref(&note), &spec);
            bed.hub().kubectl().apply(&objects).await
        };
        let there = async |size: &str, token: &str| -> Result<()> {
            let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            let wanted = BTreeMap::from([pair("size", size), pair("token", token)]);
            for edge in ["a", "b"] {
                let map = bed.edge(edge).api::<ConfigMap>("failing-upgrade").await?.get("note").await?;
                ensure!(map.data.as_ref() == Some(&wanted), "{edge} has {:?}", map.data);
            }
            Ok(())
        };
        deploy("size: 1").await?;
        deployed(bed, "failing-upgrade", "shop", 1).await?;
        there("1", "drawn").await?;

        deploy("size: 2").await?;
        for condition in [types::RENDERED, types::READY] {
            let words =
                says::<DeploymentIntentGroup, _>(bed, "failing-upgrade", "shop", condition, "TemplateError")
                    .await?;
            let wanted = "(note/templates/note.yaml:3:4): TOKEN ERROR: give the token in use: token";
            ensure!(words.contains(wanted), "{condition}: {words}");
        }
        there("1", "drawn").await?;
        let dig = bed.hub().api::<DeploymentIntentGroup>("failing-upgrade").await?.get("shop").await?;
        let status = dig.status.context("no status")?;
        ensure!(status.revision == Some(1), "it runs revision {:?}", status.revision);
        let clusters = status.clusters.context("no clusters")?;
        ensure!((clusters.ready, clusters.total) == (2, 2), "{clusters:?}");

        deploy("size: 2, token: mine").await?;
        deployed(bed, "failing-upgrade", "shop", 2).await?;
        there("2", "mine").await
    }))
    .await;
}
