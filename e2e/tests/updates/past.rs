//! Revisions: what counts as one for a chart, what renders again, what is kept, and what can be pinned.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{AppContext, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, says};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;

use super::{change, deploy, field, has, pinned, start, writes};

/// It says how often the release of the chart was changed, as Helm counts it.
const COUNTED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Chart.Name }}}
data: {page: {{ .Values.page | quote }}, revision: {{ .Release.Revision | quote }}}
";
const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";

fn counted(name: &str) -> Result<Package> {
    chart(name, "1.0.0", &[("values.yaml", "page: none\n"), ("templates/map.yaml", COUNTED)])
}

async fn revision(bed: &Bed, namespace: &str, map: &str) -> Result<String> {
    field(bed, namespace, &format!("configmap/{map}"), "{.data.revision}").await
}

#[tokio::test]
async fn release_revisions_count_by_app_and_another_serial_renders_all() {
    let web = counted("web").unwrap();
    let bed = start("counted", &web).await.unwrap();
    bed.explain(Box::pin(async {
        let plain = chart("plain", "1.0.0", &[("templates/map.yaml", PLAIN)])?;
        let charts = [counted("db")?, plain, web];
        chart_map(bed, "counted", "charts", &charts).await?;
        let at_a = "placement: {allOf: [{provider: acme, cluster: a}]}";
        bed.hub().kubectl().apply(&deployment("counted", "shop", &charts, at_a)).await?;
        deployed(bed, "counted", "shop", 1).await?;
        let counts = async || {
            Ok::<_, anyhow::Error>([
                revision(bed, "counted", "db").await?,
                revision(bed, "counted", "web").await?,
            ])
        };
        ensure!(counts().await? == ["1", "1"], "each was installed once");

        let mark = bed.edge("a").audit_mark()?;
        change(bed, "counted", "{overrideValues: [{app: web, values: {page: two}}]}").await?;
        deployed(bed, "counted", "shop", 2).await?;
        ensure!(counts().await? == ["1", "2"], "an app that does not change keeps its count");
        let changed = writes(bed, "counted", mark)?;
        ensure!(changed == ["patch configmaps web"], "{changed:?}");

        // What says how often it was rendered differs; what comes out the same is not written.
        let mark = bed.edge("a").audit_mark()?;
        change(bed, "counted", "{renderSerial: 1}").await?;
        deployed(bed, "counted", "shop", 3).await?;
        ensure!(counts().await? == ["2", "3"], "both were rendered again");
        let mut changed = writes(bed, "counted", mark)?;
        changed.sort();
        ensure!(changed == ["patch configmaps db", "patch configmaps web"], "{changed:?}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn revisions_beyond_the_limit_are_gone_and_no_pin_brings_them_back() {
    let web = counted("web").unwrap();
    let bed = start("short", &web).await.unwrap();
    bed.explain(Box::pin(async {
        for (at, page) in ["one", "two", "three"].into_iter().enumerate() {
            deploy(bed, "short", &web, &format!("{{page: {page}}}"), "{}").await?;
            deployed(bed, "short", "shop", i64::try_from(at)? + 1).await?;
        }
        let four = "{revisionHistoryLimit: 1, overrideValues: [{app: web, values: {page: four}}]}";
        change(bed, "short", four).await?;
        deployed(bed, "short", "shop", 4).await?;
        for gone in ["dig-shop-1", "dig-shop-2"] {
            wait_until_gone(bed.hub().api::<AppContext>("short").await?, gone, SOON).await?;
        }

        let mark = bed.edge("a").audit_mark()?;
        for (number, why) in [
            (1, "spec.revision 1: revision 1 is not stored any more (spec.revisionHistoryLimit is 1): pin one of 4, 3 instead"),
            (9, "spec.revision 9: there is no such revision, the newest is 4: pin one of 4, 3 instead"),
        ] {
            change(bed, "short", &format!("{{revision: {number}}}")).await?;
            let reason = "RevisionUnavailable";
            let said = says::<DeploymentIntentGroup, _>(bed, "short", "shop", types::READY, reason).await?;
            has(&said, &["revision 4 runs on ", "; the last change is refused: ", why])?;
            ensure!(field(bed, "short", "configmap/web", "{.data.page}").await? == "four");
        }
        let none = writes(bed, "short", mark)?;
        ensure!(none.is_empty(), "{none:?}");

        // What is stored comes back as it was, with the count that it had.
        change(bed, "short", "{revision: 3}").await?;
        pinned(bed, "short").await?;
        ensure!(field(bed, "short", "configmap/web", "{.data.page}").await? == "three");
        ensure!(revision(bed, "short", "web").await? == "3");
        change(bed, "short", "{revision: null}").await?;
        deployed(bed, "short", "shop", 4).await?;
        ensure!(revision(bed, "short", "web").await? == "4");
        Ok(())
    }))
    .await;
}
