//! The definition of a kind goes and is made anew, and comes back with fewer versions: what is of the kind is made again.

use anyhow::Result;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, project};
use emco_e2e::wait::wait_for;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use super::{AT_WORK, STAGE};

/// The kind, whose version v2 the cluster prefers where it is served.
fn kind(v2: bool) -> String {
    let schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: gauges.redefined.example.com}}\n\
         spec:\n  group: redefined.example.com\n  scope: Namespaced\n  names: {{kind: Gauge, plural: gauges, singular: gauge, listKind: GaugeList}}\n  \
         versions:\n  - {{name: v1, served: true, storage: true, {schema}}}\n  - {{name: v2, served: {v2}, storage: false, {schema}}}\n"
    )
}

const GAUGE: &str = "
apiVersion: redefined.example.com/v1
kind: Gauge
metadata: {name: {{ .Release.Name }}-gauge}
spec: {unit: bar}
";
const ON_A: &str = "placement: {allOf: [{provider: acme, cluster: a}]}";

/// The UID of the object, once it is another one than this.
async fn another(bed: &Bed, than: Option<&str>) -> Result<String> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("redefined.example.com", "v1", "Gauge"));
    let api: Api<DynamicObject> = Api::namespaced_with(bed.edge("a").client().await?, "redefined", &resource);
    wait_for(api, SOON, "the object is made again", |all| {
        let uid = all.values().find_map(|object| object.metadata.uid.clone());
        let uid = uid.ok_or("it is not there")?;
        if Some(uid.as_str()) == than { Err("it is the one of before".to_owned()) } else { Ok(uid) }
    })
    .await
}

#[tokio::test]
async fn what_is_of_a_kind_is_made_again_when_its_definition_is() {
    let (bed, _) = STAGE.get().await.unwrap();
    let _at_work = AT_WORK.read().await;
    bed.explain(Box::pin(async {
        let edge = bed.edge("a").kubectl();
        project(bed, "redefined").await?;
        edge.apply(&kind(true)).await?;
        let charts = [chart("gauge", "1.0.0", &[("templates/gauge.yaml", GAUGE)])?];
        chart_map(bed, "redefined", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("redefined", "shop", &charts, ON_A)).await?;
        deployed(bed, "redefined", "shop", 1).await?;
        let first = another(bed, None).await?;

        edge.run(&["delete", "crd", "gauges.redefined.example.com"]).await?;
        edge.apply(&kind(true)).await?;
        let second = another(bed, Some(&first)).await?;
        deployed(bed, "redefined", "shop", 1).await?;

        // The version that it is watched in is gone; the object is not.
        edge.apply(&kind(false)).await?;
        edge.run(&["delete", "gauges.v1.redefined.example.com", "shop-gauge", "-n", "redefined"]).await?;
        another(bed, Some(&second)).await?;
        deployed(bed, "redefined", "shop", 1).await.map(drop)
    }))
    .await;
}
