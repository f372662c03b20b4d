//! A List that is marked to stay, beside Helm: its items outlive the release.

use anyhow::ensure;
use emco_crds::DeploymentIntentGroup;
use emco_e2e::operator::{SOON, chart, deployed};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;

use super::beside::Beside;
use super::{deploy, field, start};

const ALL: &str = "
apiVersion: v1
kind: List
metadata: {annotations: {helm.sh/resource-policy: keep}}
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: stays}
  data: {say: {{ .Values.say }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: goes}
";

#[tokio::test]
async fn the_items_of_a_list_that_is_kept_outlive_the_release_as_with_helm() {
    let all = chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/all.yaml", ALL)]).unwrap();
    let bed = start("listed", &all).await.unwrap();
    bed.explain(Box::pin(async {
        let beside = Beside::new(bed, "listed", &all).await?;
        deploy(bed, "listed", &all, "{say: two}", "{}").await?;
        deployed(bed, "listed", "shop", 1).await?;
        beside.upgrade("say=two").await?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "listed", "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("listed").await?, "shop", SOON).await?;
        beside.uninstall().await?;
        beside.agrees("listed", "cm/stays", &["{.data.say}"]).await?;
        ensure!(field(bed, "listed", "cm/stays", "{.data.say}").await? == "two");
        for namespace in ["listed", beside.namespace.as_str()] {
            let maps = bed.edge("a").api::<ConfigMap>(namespace).await?;
            wait_until_gone(maps, "goes", SOON).await?;
        }
        Ok(())
    }))
    .await;
}
