//! Prepares real clusters for a logical cloud when something is placed there.

use anyhow::ensure;
use emco_e2e::operator::{SOON, deployed};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "on-demand";
const THERE: &str = "on-demand-there";

#[tokio::test]
async fn a_cloud_on_demand_is_on_clusters_while_a_deployment_is() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(SPACE, "Standard").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.cloud(", provision: OnDemand").await?;
        tenant.ready().await?;
        let namespaces = Api::<Namespace>::all(bed.edge("a").client().await?);
        ensure!(namespaces.get_opt(THERE).await?.is_none(), "nothing is placed yet");
        tenant.deploy("one", "").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        tenant.end_deployment().await?;
        wait_until_gone(namespaces.clone(), THERE, SOON).await?;
        tenant.ready().await?;
        tenant.deploy("two", "").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        tenant.leave().await
    })
    .await;
}
