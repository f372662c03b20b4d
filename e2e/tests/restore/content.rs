//! In: stored manifests that somebody deletes or damages while nobody looks. Out: what can be planned again is stored again, and nothing
//! is removed for what is lost until somebody says so.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    SOON, chart, chart_map, deployed, deployment, do_as_told, has_maps, ours, project, register, says,
    unless_ended, written,
};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};

use super::{EDGES, IN_TURN};

const TENANT: &str = "content";

/// A ConfigMap that stays, and one whose name its values say.
fn named() -> Result<Package> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always}\n---\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.say }}}\n";
    chart("web", "1.0.0", &[("values.yaml", "say: first\n"), ("templates/note.yaml", template)])
}

async fn apply(bed: &Bed, say: &str) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{selector: {{matchLabels: {{tier: edge}}}}}}]}}\n\
         overrideValues: [{{app: web, values: {{say: {say}}}}}]"
    );
    bed.hub().kubectl().apply(&deployment(TENANT, "shop", &[named()?], &spec)).await.map(drop)
}

async fn here(bed: &Bed, edge: &str) -> Result<Vec<String>> {
    ours(bed, edge, "configmaps", Some(TENANT)).await
}

/// Packs with the manifests of the deployment's revisions, in JSON. Which cluster has which of them is in one of its own, without
/// which a revision is not worth keeping: it would be made anew.
async fn packs(bed: &Bed) -> Result<Vec<Value>> {
    let args = ["get", "appcontexts.emco.io", "-n", TENANT, "-l", "emco.io/owner-name=shop", "-o", "json"];
    let contexts: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
    let mut names: BTreeSet<(String, String)> = BTreeSet::new();
    for context in contexts["items"].as_array().into_iter().flatten() {
        for pack in context["spec"]["packs"].as_array().into_iter().flatten() {
            let text = |key: &str| pack[key].as_str().unwrap_or_default().to_owned();
            if pack["name"] != context["spec"]["assignment"]["pack"] {
                names.insert((text("kind").to_lowercase(), text("name")));
            }
        }
    }
    let mut packs = Vec::new();
    for (kind, name) in names {
        let args = ["get", &kind, &name, "-n", "emco-system", "-o", "json"];
        packs.push(serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?);
    }
    Ok(packs)
}

async fn delete(bed: &Bed, packs: &[Value]) -> Result<()> {
    for pack in packs {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&pack["kind"]), text(&pack["metadata"]["name"]));
        bed.hub().kubectl().run(&["delete", &kind, &name, "-n", "emco-system"]).await?;
    }
    Ok(())
}

/// Waits until a pack in a ConfigMap is as it was.
async fn is_again(bed: &Bed, before: &Value) -> Result<()> {
    let maps: Api<ConfigMap> = bed.hub().api("emco-system").await?;
    let name = before["metadata"]["name"].as_str().context("it has no name")?;
    let as_before = |map: &ConfigMap| json!(map.binary_data) == before["binaryData"];
    wait_for_object(maps, name, SOON, as_before).await.map(drop)
}

#[tokio::test]
async fn stored_manifests_that_are_deleted_or_damaged_come_back_and_nothing_is_removed_for_them() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let test = async {
        let operator = turn.start(&[]).await?;
        // Where another test failed, the line may still be bad.
        bed.edge("b").restore().await?;
        register(bed, "acme", &EDGES).await?;
        project(bed, TENANT).await?;
        chart_map(bed, TENANT, "charts", &[named()?]).await?;
        apply(bed, "first").await?;
        unless_ended(operator.process(), deployed(bed, TENANT, "shop", 1)).await?;
        let stored = packs(bed).await?;
        let pack = stored.iter().find(|pack| pack["kind"] == "ConfigMap").context("nothing is stored")?;

        // Deleted, then damaged: planned again, stored again, and the edges are not written to.
        let marks = [("a", bed.edge("a").audit_mark()?), ("b", bed.edge("b").audit_mark()?)];
        for damaged in [None, Some("bm90IGEgcGFjaw==")] {
            operator.kill().await?;
            delete(bed, &stored).await?;
            if let Some(damaged) = damaged {
                let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
                    "metadata": {"name": pack["metadata"]["name"], "namespace": "emco-system", "labels": pack["metadata"]["labels"]},
                    "binaryData": {"pack": damaged}});
                bed.hub().kubectl().apply(&other.to_string()).await?;
            }
            operator.restart(bed).await?;
            unless_ended(operator.process(), is_again(bed, pack)).await?;
            deployed(bed, TENANT, "shop", 1).await?;
        }
        for (edge, mark) in marks {
            let writes: Vec<_> = written(bed, edge, mark, "emco")?
                .into_iter()
                .filter(|write| write.contains(TENANT))
                .collect();
            ensure!(writes.is_empty(), "{edge}: {writes:?}");
        }

        // What an earlier revision put on an edge that was away, and that no plan of today gives.
        bed.edge("b").refuse().await?;
        apply(bed, "second").await?;
        unless_ended(operator.process(), has_maps(bed, "a", TENANT, &["always", "second"])).await?;
        operator.kill().await?;
        delete(bed, &packs(bed).await?).await?;
        operator.restart(bed).await?;
        bed.edge("b").restore().await?;
        let lost = says::<DeploymentIntentGroup, _>(bed, TENANT, "shop", types::DEPLOYED, "ContentLost");
        let message = unless_ended(operator.process(), lost).await?;
        ensure!(message.contains("revision 1"), "{message}");
        has_maps(bed, "b", TENANT, &["always", "first", "second"]).await?;
        ensure!(here(bed, "a").await?.len() == 2, "{:?}", here(bed, "a").await?);
        do_as_told(bed, &message).await?;
        unless_ended(operator.process(), has_maps(bed, "b", TENANT, &["always", "second"])).await?;
        deployed(bed, TENANT, "shop", 2).await?;
        let remove = ["delete", "dig", "shop", "-n", TENANT, "--timeout=60s"];
        bed.hub().kubectl().run(&remove).await.map(drop)
    };
    bed.explain(Box::pin(test)).await;
}
