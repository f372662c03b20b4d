//! Prepares real clusters for a logical cloud when something is placed there.

use anyhow::ensure;
use emco_crds::names::{annotation, label};
use emco_e2e::operator::{SOON, deployed};
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::{Api, ResourceExt as _};

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "on-demand";
const THERE: &str = "on-demand-there";
/// Another project, whose namespace on clusters outlives its deployments.
const KEEPING: &str = "on-demand-data";
const KEPT: &str = "on-demand-data-there";
/// What a StatefulSet leaves.
const DATA: &str = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: on-demand-data-there}, \
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}";

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

#[tokio::test]
async fn a_namespace_that_keeps_data_is_taken_again_with_the_next_deployment() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(KEEPING, "Standard").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let edge = bed.edge("a");
        let namespaces = Api::<Namespace>::all(edge.client().await?);
        tenant.cloud(", provision: OnDemand").await?;
        tenant.deploy("one", "").await?;
        deployed(bed, KEEPING, "shop", 1).await?;
        edge.kubectl().apply(DATA).await?;
        let before = namespaces.get(KEPT).await?;
        tenant.end_deployment().await?;
        let is_released = |space: &Namespace| {
            !space.labels().contains_key(label::OWNER)
                && space.annotations().contains_key(annotation::MADE_FOR)
        };
        let released = wait_for_object(namespaces.clone(), KEPT, SOON, is_released).await?;
        let ours = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
            entry.manager.as_deref().is_some_and(|name| name.starts_with("emco-") && name != "emco-release")
        };
        ensure!(!released.managed_fields().iter().any(ours), "{:?}", released.metadata);
        tenant.deploy("two", "").await?;
        deployed(bed, KEEPING, "shop", 1).await?;
        let after = namespaces.get(KEPT).await?;
        ensure!(after.labels().contains_key(label::OWNER), "{:?}", after.metadata);
        ensure!(after.uid() == before.uid(), "it is another namespace");
        let claims = edge.api::<PersistentVolumeClaim>(KEPT).await?;
        ensure!(claims.get_opt("data").await?.is_some(), "the data is gone");
        edge.kubectl().run(&["delete", "pvc", "data", "-n", KEPT]).await?;
        tenant.leave().await
    })
    .await;
}
