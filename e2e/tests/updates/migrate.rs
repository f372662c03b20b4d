//! A deployment that moves to another CompositeApp, and back by a pin.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::status::Cause;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, says};
use emco_e2e::package::Package;

use super::{change, field, has, pinned, start, uid, writes};

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Chart.Name }}}
data: {release: {{ .Release.Name }}}
";

fn map(name: &str) -> Result<Package> {
    chart(name, "1.0.0", &[("templates/map.yaml", MAP)])
}

#[tokio::test]
async fn another_composite_app_keeps_what_both_have_and_a_pin_goes_back() {
    let web = map("web").unwrap();
    let bed = start("moved", &web).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        let (db, cache) = (map("db")?, map("cache")?);
        let key = cache.file_name();
        chart_map(bed, "moved", "charts", &[cache, map("db")?, map("web")?]).await?;
        let at_a = "placement: {allOf: [{provider: acme, cluster: a}]}";
        kubectl.apply(&deployment("moved", "shop", &[db, map("web")?], at_a)).await?;
        deployed(bed, "moved", "shop", 1).await?;
        let before = uid(bed, "moved", "configmap/web").await?;

        change(bed, "moved", "{compositeAppRef: {name: nowhere}}").await?;
        let reason = "CompositeAppNotFound";
        let said = says::<DeploymentIntentGroup, _>(bed, "moved", "shop", types::READY, reason).await?;
        has(&said, &["nowhere", "the last change "])?;
        uid(bed, "moved", "configmap/db").await?;

        let mark = bed.edge("a").audit_mark()?;
        let web_chart = format!("{{configMapRef: {{name: charts, key: {}}}}}", web.file_name());
        let next = format!(
            "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: next, namespace: moved}}
spec: {{apps: [{{name: web, chart: {web_chart}}}, {{name: cache, chart: {{configMapRef: {{name: charts, key: {key}}}}}}}]}}
"
        );
        kubectl.apply(&next).await?;
        change(bed, "moved", "{compositeAppRef: {name: next}}").await?;
        let gone = ["wait", "configmap/db", "-n", "moved", "--for=delete", "--timeout=60s"];
        bed.edge("a").kubectl().run(&gone).await?;
        let dig = deployed(bed, "moved", "shop", 2).await?;
        let history = dig.status.map(|status| status.history).unwrap_or_default();
        let newest = history.first().context("it has no history")?;
        ensure!((newest.revision, newest.cause) == (2, Cause::Migrate), "{history:?}");
        let moved = writes(bed, "moved", mark)?;
        ensure!(moved == ["patch configmaps cache", "delete configmaps db"], "{moved:?}");
        ensure!(uid(bed, "moved", "configmap/web").await? == before, "it was made again");
        ensure!(field(bed, "moved", "configmap/cache", "{.data.release}").await? == "shop");

        // The way back needs nothing but what is stored.
        kubectl.run(&["delete", "capp", "shop", "-n", "moved", "--timeout=60s"]).await?;
        let mark = bed.edge("a").audit_mark()?;
        change(bed, "moved", "{revision: 1}").await?;
        let back = ["wait", "configmap/cache", "-n", "moved", "--for=delete", "--timeout=60s"];
        bed.edge("a").kubectl().run(&back).await?;
        pinned(bed, "moved").await?;
        let back = writes(bed, "moved", mark)?;
        ensure!(back == ["patch configmaps db", "delete configmaps cache"], "{back:?}");
        ensure!(uid(bed, "moved", "configmap/web").await? == before, "it was made again");
        Ok(())
    }))
    .await;
}
