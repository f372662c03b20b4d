//! A suspension in the middle of an update and of a removal: both stand still, and go on from there.

use anyhow::{Result, ensure};
use emco_crds::{DeploymentIntentGroup, State};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed, ours, wait};
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;

use super::depends::label;
use super::hooks::{PAGE, succeeded};
use super::{SILENCE, change, deploy, field, start, uid, writes};

/// It ends once there is a node for this tenant.
const WARM: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: warm, annotations: {helm.sh/hook: pre-upgrade}}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {example.com/{{ .Release.Namespace }}: go}
      containers: [{name: warm, image: example.com/warm}]
";

async fn state(bed: &Bed, wanted: State) -> Result<()> {
    wait(bed, "halted", "shop", |dig: &DeploymentIntentGroup| {
        let state = dig.status.as_ref().and_then(|status| status.state);
        if state == Some(wanted) { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await
}

#[tokio::test]
async fn a_suspension_halts_an_update_and_a_removal_where_they_are() {
    let files =
        [("values.yaml", "page: none\n"), ("templates/web.yaml", PAGE), ("templates/warm.yaml", WARM)];
    let web = chart("web", "1.0.0", &files).unwrap();
    let bed = start("halted", &web).await.unwrap();
    bed.explain(Box::pin(async {
        let jobs = bed.edge("a").api::<Job>("halted").await?;
        let maps = bed.edge("a").api::<ConfigMap>("halted").await?;
        deploy(bed, "halted", &web, "{page: one}", "{}").await?;
        deployed(bed, "halted", "shop", 1).await?;
        change(bed, "halted", "{overrideValues: [{app: web, values: {page: two}}]}").await?;
        wait_for_object(jobs.clone(), "warm", SOON, |_| true).await?;
        change(bed, "halted", "{suspend: true}").await?;
        state(bed, State::InstantiateStopped).await?;
        let mark = bed.edge("a").audit_mark()?;
        label(bed, "a", "halted", "go").await?;
        wait_for_object(jobs, "warm", SOON, succeeded).await?;
        let hook = uid(bed, "halted", "job/warm").await?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "halted", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        change(bed, "halted", "{suspend: null}").await?;
        deployed(bed, "halted", "shop", 2).await?;
        ensure!(field(bed, "halted", "configmap/web", "{.data.page}").await? == "two");
        ensure!(uid(bed, "halted", "job/warm").await? == hook, "the hook ran again");

        let hold = async |finalizers: &str| {
            let patch = format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
            let args = ["patch", "cm", "web", "-n", "halted", "--type=merge", "-p", &patch];
            bed.edge("a").kubectl().run(&args).await.map(drop)
        };
        hold(r#"["example.com/hold"]"#).await?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "halted", "--wait=false"]).await?;
        let goes = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
        wait_for_object(maps.clone(), "web", SOON, goes).await?;
        change(bed, "halted", "{suspend: true}").await?;
        state(bed, State::TerminateStopped).await?;
        hold("null").await?;
        wait_until_gone(maps, "web", SOON).await?;
        tokio::time::sleep(SILENCE).await;
        state(bed, State::TerminateStopped).await?;
        change(bed, "halted", "{suspend: null}").await?;
        let digs = bed.hub().api::<DeploymentIntentGroup>("halted").await?;
        wait_until_gone(digs, "shop", SOON).await?;
        let left = ours(bed, "a", "jobs,configmaps", Some("halted")).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }))
    .await;
}
