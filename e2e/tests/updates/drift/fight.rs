//! In: another operator that sets a field back as often as it is put right. Out: it is named with the field, and met with long
//! pauses, until a rule leaves the field to it.

use std::convert::Infallible;

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::operator::{SOON, deployed, deployment, wait};
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{SILENCE, note, says, spec, start, writes};

/// Sets what the note says to its own.
async fn set(maps: &Api<ConfigMap>) -> Result<()> {
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}, "data": {"say": "theirs"}});
    maps.patch("note", &PatchParams::apply("other-operator").force(), &Patch::Apply(&theirs)).await?;
    Ok(())
}

/// Does so whenever it says something else.
async fn fight(maps: &Api<ConfigMap>) -> Result<Infallible> {
    loop {
        set(maps).await?;
        let put_right = |map: &ConfigMap| {
            map.data.as_ref().is_some_and(|data| data.get("say").is_some_and(|s| s == "one"))
        };
        wait_for_object(maps.clone(), "note", SOON, put_right).await?;
    }
}

/// What the deployment says of the fight.
fn told(dig: &DeploymentIntentGroup) -> Result<String, String> {
    let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
    let fight = failing.iter().find(|failing| failing.reason == "DriftFight");
    fight.map(|failing| failing.message.clone()).ok_or_else(|| format!("{failing:?}"))
}

#[tokio::test]
async fn who_sets_a_field_back_again_and_again_is_named_and_not_answered_at_once_any_more() {
    let bed = start("fought", note().unwrap(), &spec("one", "one", "{}")).await.unwrap();
    bed.explain(Box::pin(async {
        let mark = bed.edge("a").audit_mark()?;
        let maps = bed.edge("a").api::<ConfigMap>("fought").await?;
        let message = tokio::select! {
            ended = fight(&maps) => match ended? {},
            message = wait(bed, "fought", "shop", told) => message?,
        };
        let rule = r#"[{group: "", kind: ConfigMap, name: note, jsonPointers: [/data/say]}]"#;
        let line = format!("spec.sync.ignore: {rule}");
        for part in ["ConfigMap/fought/note", "again and again by other-operator", &line] {
            ensure!(message.contains(part), "{part:?} is not in: {message}");
        }
        set(&maps).await?;
        let before = writes(bed, "fought", mark)?;
        ensure!(before.len() >= 5, "no fight: {before:?}");
        tokio::time::sleep(SILENCE).await;
        let after = writes(bed, "fought", mark)?;
        ensure!(after.len() == before.len(), "answered at once: {after:?}");
        // Copied from the message, the rule ends it.
        let sync = format!("{{ignore: {rule}}}");
        let ruled = deployment("fought", "shop", &[note()?], &spec("one", "two", &sync));
        bed.hub().kubectl().apply(&ruled).await?;
        deployed(bed, "fought", "shop", 2).await?;
        says(bed, "fought", ("theirs", "two")).await
    }))
    .await;
}
