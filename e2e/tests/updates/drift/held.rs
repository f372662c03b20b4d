//! A suspended deployment writes nothing to its edge, and a pinned one only what differs: by the edge's audit log.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, wait};
use emco_e2e::package::Package;
use serde_json::json;

use super::{SILENCE, counted, note, patch, says, spec, start, writes};

/// Waits until Ready has this reason, and answers the revision that runs and the one that is pending.
async fn ready(bed: &Bed, namespace: &str, reason: &str) -> Result<(i64, Option<i64>)> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let Some(status) = &dig.status else { return Err("it has no status".to_owned()) };
        let ready =
            status.condition(types::READY).filter(|_| status.observed_generation == dig.metadata.generation);
        let said = ready.map(|ready| (ready.status.clone(), ready.reason.clone())).unwrap_or_default();
        let pending = status.pending.as_ref().map(|pending| pending.revision);
        if said == ("True".to_owned(), reason.to_owned()) {
            Ok((status.revision.unwrap_or_default(), pending))
        } else {
            Err(format!("{said:?}"))
        }
    })
    .await
}

async fn second_is_pending(bed: &Bed, namespace: &str) -> Result<()> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        match pending.map(|pending| pending.revision) {
            Some(2) => Ok(()),
            other => Err(format!("pending: {other:?}")),
        }
    })
    .await
}

async fn apply(bed: &Bed, namespace: &str, chart: Package, spec: &str) -> Result<()> {
    bed.hub().kubectl().apply(&deployment(namespace, "shop", &[chart], spec)).await.map(drop)
}

#[tokio::test]
async fn drift_and_edits_of_a_suspended_deployment_wait_until_it_is_resumed() {
    let bed = start("held", note().unwrap(), &spec("one", "one", "{}")).await.unwrap();
    bed.explain(async {
        apply(bed, "held", note()?, &format!("{}\nsuspend: true", spec("one", "one", "{}"))).await?;
        ensure!(ready(bed, "held", "Suspended").await? == (1, None));
        let mark = bed.edge("a").audit_mark()?;
        patch(bed, "held", "note", &json!({"data": {"say": "theirs"}})).await?;
        counted(bed, "held", (0, 1)).await?;
        apply(bed, "held", note()?, &format!("{}\nsuspend: true", spec("one", "two", "{}"))).await?;
        second_is_pending(bed, "held").await?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "held", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        says(bed, "held", ("theirs", "one")).await?;
        apply(bed, "held", note()?, &spec("one", "two", "{}")).await?;
        deployed(bed, "held", "shop", 2).await?;
        says(bed, "held", ("one", "two")).await?;
        ensure!(ready(bed, "held", "Ready").await? == (2, None));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn drift_and_edits_of_a_suspended_project_wait_until_it_is_resumed() {
    let bed = start("stopped", note().unwrap(), &spec("one", "one", "{}")).await.unwrap();
    bed.explain(async {
        let suspend = async |value: &str| {
            let spec = format!("{{\"spec\":{{\"suspend\":{value}}}}}");
            let args = ["patch", "project", "stopped", "--type=merge", "-p", &spec];
            bed.hub().kubectl().run(&args).await.map(drop)
        };
        // Nothing but the project wakes what differs.
        suspend("true").await?;
        ensure!(ready(bed, "stopped", "Suspended").await? == (1, None));
        patch(bed, "stopped", "note", &json!({"data": {"say": "theirs"}})).await?;
        counted(bed, "stopped", (0, 1)).await?;
        suspend("null").await?;
        says(bed, "stopped", ("one", "one")).await?;
        counted(bed, "stopped", (1, 0)).await?;
        suspend("true").await?;
        ensure!(ready(bed, "stopped", "Suspended").await? == (1, None));
        let mark = bed.edge("a").audit_mark()?;
        patch(bed, "stopped", "note", &json!({"data": {"say": "theirs"}})).await?;
        counted(bed, "stopped", (1, 1)).await?;
        apply(bed, "stopped", note()?, &spec("one", "two", "{}")).await?;
        second_is_pending(bed, "stopped").await?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "stopped", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        says(bed, "stopped", ("theirs", "one")).await?;
        suspend("null").await?;
        deployed(bed, "stopped", "shop", 2).await?;
        says(bed, "stopped", ("one", "two")).await?;
        ensure!(ready(bed, "stopped", "Ready").await? == (2, None));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pinned_revision_and_the_newest_after_it_write_only_what_differs() {
    let same = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\ndata: {say: nothing}\n";
    let note = || {
        let values = ("values.yaml", "say: one\nmore: one\n");
        chart("web", "1.0.0", &[values, ("templates/note.yaml", super::NOTE), ("templates/same.yaml", same)])
    };
    let bed = start("pinned", note().unwrap(), &spec("one", "one", "{}")).await.unwrap();
    bed.explain(async {
        apply(bed, "pinned", note()?, &spec("two", "two", "{}")).await?;
        deployed(bed, "pinned", "shop", 2).await?;
        let mark = bed.edge("a").audit_mark()?;
        // Values that no chart takes keep nothing from going back.
        let broken = "placement: {allOf: [{provider: acme, cluster: a}]}\noverrideValues: [{app: none, values: {}}]\nrevision: 1";
        apply(bed, "pinned", note()?, broken).await?;
        ensure!(ready(bed, "pinned", "Pinned").await? == (1, None));
        says(bed, "pinned", ("one", "one")).await?;
        tokio::time::sleep(SILENCE).await;
        let back = writes(bed, "pinned", mark)?;
        ensure!(back == ["patch note"], "{back:?}");
        apply(bed, "pinned", note()?, &format!("{}\nrevision: 1", spec("two", "two", "{}"))).await?;
        second_is_pending(bed, "pinned").await?;
        apply(bed, "pinned", note()?, &spec("two", "two", "{}")).await?;
        ensure!(ready(bed, "pinned", "Ready").await? == (2, None));
        says(bed, "pinned", ("two", "two")).await?;
        tokio::time::sleep(SILENCE).await;
        let both = writes(bed, "pinned", mark)?;
        ensure!(both == ["patch note", "patch note"], "{both:?}");
        Ok(())
    })
    .await;
}
