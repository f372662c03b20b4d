//! What opens the gate of an app that waits for another one: its state, its delay, and that it is to change at all.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed};
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;

use super::depends::{db, deploy, label, waits, web};
use super::{start, writes};

const AT_A: &str = "placement: {allOf: [{provider: acme, cluster: a}]}";
const LOG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: log}\n";

async fn edit_app(bed: &Bed, tenant: &str, patch: &str) -> Result<()> {
    let args = ["patch", "capp", "shop", "-n", tenant, "--type=json", "-p", patch];
    bed.hub().kubectl().run(&args).await.map(drop)
}

#[tokio::test]
async fn deployed_is_enough_where_asked_for_and_a_new_app_touches_no_other() {
    let bed = start("enough", &web().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "enough", "{app: db, state: Deployed}", ("late", "one"), AT_A).await?;
        let maps = bed.edge("a").api::<ConfigMap>("enough").await?;
        wait_for_object(maps, "web", SOON, |_| true).await.context("db is there, and runs nowhere")?;
        label(bed, "a", "enough", "late").await?;
        deployed(bed, "enough", "shop", 1).await?;
        let made = writes(bed, "enough", mark)?;
        ensure!(made == ["patch deployments db", "patch configmaps web"], "{made:?}");

        // What runs does not wait for what comes beside it.
        let log = chart("log", "1.0.0", &[("templates/log.yaml", LOG)])?;
        let key = log.file_name();
        chart_map(bed, "enough", "charts", &[db()?, web()?, log]).await?;
        let mark = bed.edge("a").audit_mark()?;
        let app = format!(
            r#"{{"name": "log", "chart": {{"configMapRef": {{"name": "charts", "key": "{key}"}}}}}}"#
        );
        let patch = format!(
            r#"[{{"op": "add", "path": "/spec/apps/-", "value": {app}}},
                {{"op": "add", "path": "/spec/apps/1/dependsOn/-", "value": {{"app": "log"}}}}]"#
        );
        edit_app(bed, "enough", &patch).await?;
        deployed(bed, "enough", "shop", 2).await?;
        let made = writes(bed, "enough", mark)?;
        ensure!(made == ["patch configmaps log"], "{made:?}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_delay_is_named_and_never_shorter_than_it_is_written() {
    let bed = start("delayed", &web().unwrap()).await.unwrap();
    bed.explain(Box::pin(async {
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "delayed", "{app: db, delay: 1h}", ("late", "one"), AT_A).await?;
        waits(bed, "delayed", "waits until this revision of app db is Ready on acme/a").await?;
        label(bed, "a", "delayed", "late").await?;
        waits(bed, "delayed", "app db is Ready, and the delay of 1h after that runs").await?;
        let made = writes(bed, "delayed", mark)?;
        ensure!(made == ["patch deployments db"], "{made:?}");

        // Another delay is another revision, and changes no manifest.
        let shorter = r#"[{"op": "replace", "path": "/spec/apps/1/dependsOn/0/delay", "value": "3s"}]"#;
        edit_app(bed, "delayed", shorter).await?;
        deployed(bed, "delayed", "shop", 2).await?;
        let made = writes(bed, "delayed", mark)?;
        ensure!(made == ["patch deployments db", "patch configmaps web"], "{made:?}");
        let events = bed.edge("a").audit_since(mark)?;
        let sent = events
            .iter()
            .find(|event| event.verb == "patch" && event.namespace == "delayed" && event.name == "web")
            .context("web was not sent")?
            .received;
        let live = bed.edge("a").api::<Deployment>("delayed").await?.get("db").await?;
        let conditions = live.status.and_then(|status| status.conditions).unwrap_or_default();
        let available = conditions.iter().find(|condition| condition.type_ == "Available");
        let since = available.and_then(|condition| condition.last_transition_time.clone());
        let since = since.context("db was never available")?.0;
        let passed = sent.duration_since(since).as_secs();
        ensure!(passed >= 3, "web was sent {passed} s after db was ready");
        Ok(())
    }))
    .await;
}
